{{/* Where the database's URL and certificates come from. */}}

{{- define "fencepost.databaseEnv" -}}
{{- $database := .Values.database }}
- name: FENCEPOST_DATABASE_URL
  valueFrom:
    secretKeyRef:
      {{- if $database.cloudNativePG.cluster }}
      name: {{ $database.cloudNativePG.cluster }}-app
      key: uri
      {{- else }}
      name: {{ $database.existingSecret.name }}
      key: {{ $database.existingSecret.key }}
      {{- end }}
{{- with $database.tls.mode }}
- name: PGSSLMODE
  value: {{ . }}
{{- end }}
{{- if $database.tls.caSecret.name }}
- name: PGSSLROOTCERT
  value: /etc/fencepost/database/ca.crt
{{- end }}
{{- end }}

{{- define "fencepost.databaseMounts" -}}
{{- if .Values.database.tls.caSecret.name }}
volumeMounts:
  - name: database-ca
    mountPath: /etc/fencepost/database
    readOnly: true
{{- end }}
{{- end }}

{{- define "fencepost.databaseVolumes" -}}
{{- with .Values.database.tls.caSecret }}
{{- if .name }}
volumes:
  - name: database-ca
    secret:
      secretName: {{ .name }}
      items:
        - key: {{ .key }}
          path: ca.crt
{{- end }}
{{- end }}
{{- end }}
