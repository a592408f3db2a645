{{/* Values that contradict each other. All are named at once, each with what to set instead. */}}

{{- define "fencepost.problems" -}}
{{- $database := .Values.database }}
{{- if and (not $database.existingSecret.name) (not $database.cloudNativePG.cluster) }}
- no database is given: set database.existingSecret.name (a Secret whose key has a postgres:// URL) or database.cloudNativePG.cluster
{{- end }}
{{- if and $database.existingSecret.name $database.cloudNativePG.cluster }}
- two databases are given: set one of database.existingSecret.name and database.cloudNativePG.cluster
{{- end }}
{{- if and $database.cloudNativePG.create (not $database.cloudNativePG.cluster) }}
- database.cloudNativePG.create needs a name: set database.cloudNativePG.cluster
{{- end }}
{{- if and (has $database.tls.mode (list "verify-ca" "verify-full")) (not $database.tls.caSecret.name) }}
- database.tls.mode {{ $database.tls.mode }} needs the authority to verify with: set database.tls.caSecret.name
{{- end }}
{{- if and $database.tls.caSecret.name (not (has $database.tls.mode (list "verify-ca" "verify-full"))) }}
- database.tls.caSecret verifies nothing without a mode that asks for it: set database.tls.mode to verify-full
{{- end }}
{{- if not .Values.rbac.clusterRoles }}
{{- if and .Values.rbac.create (not .Values.watch.namespaces) }}
- rbac.clusterRoles is false, and watching the whole cluster needs a ClusterRole: set watch.namespaces, or rbac.clusterRoles to true
{{- end }}
{{- if .Values.userRoles.create }}
- rbac.clusterRoles is false, and the roles for people are ClusterRoles: set userRoles.create to false
{{- end }}
{{- if include "fencepost.metricsTokenCreated" . }}
- rbac.clusterRoles is false, and a token that may get /metrics needs a ClusterRole: set monitoring.serviceMonitor.authorization.existingSecret.name
{{- end }}
{{- end }}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) }}
- no ServiceAccount is given: set serviceAccount.name, or serviceAccount.create to true
{{- end }}
{{- with .Values.monitoring.serviceMonitor }}
{{- if and .enabled (eq $.Values.access.mode "kubernetes") (not .authorization.create) (not .authorization.existingSecret.name) }}
- the ServiceMonitor would be refused, since access.mode kubernetes asks scrapes for a token: set monitoring.serviceMonitor.authorization.create to true, or authorization.existingSecret.name
{{- end }}
{{- end }}
{{- with .Values.podDisruptionBudget }}
{{- if .enabled }}
{{- $replicas := int $.Values.replicas }}
{{- if and .minAvailable .maxUnavailable }}
- a PodDisruptionBudget takes one bound: set podDisruptionBudget.minAvailable or podDisruptionBudget.maxUnavailable to null
{{- end }}
{{- if and .minAvailable (gt $replicas 0) }}
{{- $minimum := int .minAvailable }}
{{- if hasSuffix "%" (toString .minAvailable) }}
{{- /* The disruption controller rounds up. */}}
{{- $minimum = div (add (mul $replicas (trimSuffix "%" .minAvailable | int)) 99) 100 | int }}
{{- end }}
{{- if ge $minimum $replicas }}
- podDisruptionBudget.minAvailable {{ .minAvailable }} of {{ $replicas }} replicas lets no pod be evicted, and no node be drained: lower it, or raise replicas
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "fencepost.checks" -}}
{{- $problems := include "fencepost.problems" . | trim }}
{{- if $problems }}
{{- fail (printf "these values cannot be installed:\n%s" $problems) }}
{{- end }}
{{- end }}
