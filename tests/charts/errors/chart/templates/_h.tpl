{{- define "inner" -}}
{{ required "deep: inside" .Values.nothing }}
{{- end -}}
{{- define "outer" -}}
x: {{ include "inner" . }}
{{- end -}}
