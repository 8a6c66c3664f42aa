{{ define "shared" }}parent deep{{ end }}
{{ define "from.deep" }}parent deep{{ end }}
