{{- define "sample.labels" -}}
app.kubernetes.io/part-of: sample-cni
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "sample.image" -}}
{{ .Values.image.repository }}:{{ default (printf "v%s" .Chart.AppVersion) .Values.image.tag }}
{{- end }}

{{- /* Where agents and operator reach the API server. */ -}}
{{- define "sample.server" -}}
{{- with .Values.k8sServiceHost }}
- name: KUBERNETES_SERVICE_HOST
  value: {{ . | quote }}
{{- end }}
{{- with .Values.k8sServicePort }}
- name: KUBERNETES_SERVICE_PORT
  value: {{ . | toString | quote }}
{{- end }}
{{- end }}

{{- define "sample.certs" -}}
{{- $days := int .Values.flow.tls.validityDays -}}
{{- $ca := genCA "sample-cni-ca" $days -}}
{{- $names := list "cilium-flow" (printf "cilium-flow.%s.svc" .Release.Namespace) -}}
{{- $cert := genSignedCert "cilium-flow" nil $names $days $ca -}}
ca.crt: {{ $ca.Cert | b64enc }}
tls.crt: {{ $cert.Cert | b64enc }}
tls.key: {{ $cert.Key | b64enc }}
{{- end }}
