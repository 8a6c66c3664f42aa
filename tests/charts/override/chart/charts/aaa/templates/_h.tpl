{{ define "shared" }}aaa{{ end }}
{{ define "sub.name" }}aaa {{ .Chart.Name }}{{ end }}
{{ define "from.deep" }}aaa{{ end }}
