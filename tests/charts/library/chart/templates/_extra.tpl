{{- define "user.extra" -}}
metadata:
  labels:
    extra: {{ .Release.Name }}
data:
  {{- range $k, $v := .Values.data }}
  {{ $k }}: {{ $v | quote }}
  {{- end }}
{{- end -}}
