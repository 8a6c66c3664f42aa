{{/* Ichor's records, lock and Lease have one place, which other programs know. */}}
{{- define "ichor.namespace" -}}
{{- if ne .Release.Namespace "ichor-system" -}}
{{- fail (printf "install this chart into namespace ichor-system, not %s: ichor's records and lock are there" .Release.Namespace) -}}
{{- end -}}
{{- .Release.Namespace -}}
{{- end -}}

{{- define "ichor.selector" -}}
app.kubernetes.io/name: ichor-controller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ichor.labels" -}}
{{ include "ichor.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "ichor.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}
