{{- define "carillon.labels" -}}
app.kubernetes.io/name: carillon
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "carillon.pod" -}}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000 # "node" of the image
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "carillon.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{- define "carillon.env" -}}
- name: REDIS_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.redisSecret }}
      key: url
- name: CARILLON_NAMESPACE
  value: {{ .Values.namespace | quote }}
{{- end }}

{{- define "carillon.moreEnv" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
