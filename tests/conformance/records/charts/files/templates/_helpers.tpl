{{- define "files.name" -}}{{ .Release.Name }}{{- end -}}
