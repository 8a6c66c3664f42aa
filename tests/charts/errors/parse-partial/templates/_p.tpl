{{ define "x" }}
{{ range .Values.x }}
{{ end }
