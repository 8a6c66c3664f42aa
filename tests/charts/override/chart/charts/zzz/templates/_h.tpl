{{ define "shared" }}zzz{{ end }}
{{ define "sub.name" }}zzz {{ .Chart.Name }}{{ end }}
{{ define "blocked" }}from zzz{{ end }}
