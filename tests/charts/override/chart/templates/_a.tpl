{{ define "shared" }}parent a{{ end }}
{{ define "only.parent" }}parent{{ end }}
