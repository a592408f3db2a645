{{/*
What the operator may do: its own table is operator/src/cluster/permissions.rs, and `fencepost rbac` prints the same.
It refuses to be ready while a verb is missing.
*/}}

{{/* In each watched namespace, or in all of them. */}}
{{- define "fencepost.watchedRules" -}}
# patch is for the finalizer, on the kinds on whose behalf generations are opened.
- apiGroups: [fencepost.dev]
  resources: [mcpservers, mcpsubjects, watchedresources]
  verbs: [list, watch, patch]
- apiGroups: [fencepost.dev]
  resources: [resourcecatalogs, derivedindexes]
  verbs: [list, watch]
- apiGroups: [fencepost.dev]
  resources: [mcpservers/status, mcpsubjects/status, watchedresources/status, resourcecatalogs/status, derivedindexes/status]
  verbs: [patch]
# Only metadata is listed and watched; the Secrets that a manifest names are read one by one.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [services]
  verbs: [list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [referencegrants]
  verbs: [list, watch]
# Objects of other operators that publish an address (spec.serverRef).
- apiGroups: [mcp.x-k8s.io, toolhive.stacklok.dev, kagent.dev]
  resources: [mcpservers]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{/* Asking the API server who a caller is and what they may. */}}
{{- define "fencepost.reviewRules" -}}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
