{{- define "sample-cni.labels" -}}
app.kubernetes.io/part-of: sample-cni
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "sample-cni.image" -}}
{{ .Values.image.repository }}:{{ default (printf "v%s" .Chart.AppVersion) .Values.image.tag }}
{{- end }}

{{- define "sample-cni.certs" -}}
{{- $days := int .Values.flow.tls.validityDays -}}
{{- $ca := genCA "sample-cni-ca" $days -}}
{{- $names := list "flow" (printf "flow.%s.svc" .Release.Namespace) -}}
{{- $cert := genSignedCert "flow" nil $names $days $ca -}}
ca.crt: {{ $ca.Cert | b64enc }}
tls.crt: {{ $cert.Cert | b64enc }}
tls.key: {{ $cert.Key | b64enc }}
{{- end }}
