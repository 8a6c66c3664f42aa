{{- define "common.base" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-{{ .Chart.Name }}
  {{- with .Values.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
data:
  shared: {{ .Values.common.shared }}
{{- end -}}

{{- define "common.configmap" -}}
{{- $top := first . -}}
{{- $overrides := fromYaml (include (index . 1) $top) | default dict -}}
{{- $base := fromYaml (include "common.base" $top) | default dict -}}
{{- toYaml (merge $overrides $base) -}}
{{- end -}}
