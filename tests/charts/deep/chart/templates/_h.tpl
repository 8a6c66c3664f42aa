{{- define "count" -}}
{{- if gt (int .n) 0 }}{{ .n }} {{ include "count" (dict "n" (sub (int .n) 1)) }}{{ end -}}
{{- end -}}
{{- define "tree" -}}
v: {{ .v }}
{{- with .l }}
l:
  {{- include "tree" . | nindent 2 }}
{{- end }}
{{- with .r }}
r:
  {{- include "tree" . | nindent 2 }}
{{- end }}
{{- end -}}
{{- define "even" -}}{{ if eq (int .) 0 }}even{{ else }}{{ include "odd" (sub (int .) 1) }}{{ end }}{{- end -}}
{{- define "odd" -}}{{ if eq (int .) 0 }}odd{{ else }}{{ include "even" (sub (int .) 1) }}{{ end }}{{- end -}}
{{- define "endless" -}}{{ include "endless" . }}{{- end -}}
{{- define "endless.template" -}}{{ template "endless.template" . }}{{- end -}}
