{{/* Names and labels. */}}

{{- define "fencepost.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Bounded to 45: names made of it, such as <name>-content-reader, stay below 63. */}}
{{- define "fencepost.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 45 | trimSuffix "-" }}
{{- else }}
{{- $name := include "fencepost.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 45 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 45 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "fencepost.selector" -}}
app.kubernetes.io/name: {{ include "fencepost.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "fencepost.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "fencepost.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: fencepost
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "fencepost.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "fencepost.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "fencepost.leaseName" -}}
{{- default (include "fencepost.fullname" .) .Values.operator.leaseName }}
{{- end }}

{{- define "fencepost.image" -}}
{{- with .Values.image }}
{{- if .digest }}
{{- printf "%s@%s" .repository .digest }}
{{- else }}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The restricted Pod Security Standard, for every container. */}}
{{- define "fencepost.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The Secret with the token that Prometheus sends. */}}
{{- define "fencepost.metricsTokenCreated" -}}
{{- $monitor := .Values.monitoring.serviceMonitor }}
{{- if and $monitor.enabled (eq .Values.access.mode "kubernetes") $monitor.authorization.create (not $monitor.authorization.existingSecret.name) }}yes{{ end }}
{{- end }}
