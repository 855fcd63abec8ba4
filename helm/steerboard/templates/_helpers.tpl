{{- define "steerboard.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "steerboard.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "steerboard.labels" -}}
{{ include "steerboard.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "steerboard.secretName" -}}
{{- .Values.secret.existing | default (include "steerboard.name" .) -}}
{{- end }}

{{- define "steerboard.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "steerboard.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end -}}
{{- end }}

{{- /* (list $ "api") -> the image's full name */ -}}
{{- define "steerboard.image" -}}
{{- $top := index . 0 -}}
{{- printf "%s%s:%s" $top.Values.image.registry (index $top.Values.image (index . 1)) ($top.Values.image.tag | default $top.Chart.AppVersion) -}}
{{- end }}

{{- define "steerboard.podSettings" -}}
serviceAccountName: {{ include "steerboard.serviceAccountName" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "steerboard.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "steerboard.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
{{ toYaml . | indent 2 }}
{{- end }}
{{- end }}

{{- define "steerboard.env" -}}
- name: STEERBOARD_ENVIRONMENT
  value: production
- name: STEERBOARD_LOG_FORMAT
  value: json
- name: STEERBOARD_PUBLIC_URL
  value: {{ .Values.publicUrl | quote }}
- name: STEERBOARD_ARTIFACT_URL
  value: {{ .Values.artifacts.url | quote }}
{{- with .Values.artifacts.endpointUrl }}
- name: AWS_ENDPOINT_URL
  value: {{ . | quote }}
{{- end }}
{{- with .Values.artifacts.region }}
- name: AWS_REGION
  value: {{ . | quote }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- $secret := include "steerboard.secretName" . }}
{{- range list "STEERBOARD_SECRET_KEY" "STEERBOARD_DATABASE_URL" "STEERBOARD_REDIS_URL" }}
- name: {{ . }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
      key: {{ . }}
{{- end }}
{{- range list "STEERBOARD_SECRET_KEY_PREVIOUS" "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY" }}
- name: {{ . }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
      key: {{ . }}
      optional: true
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* A pod starts again when the secret that the chart made has changed. */ -}}
{{- define "steerboard.secretChecksum" -}}
{{- if not .Values.secret.existing }}
checksum/secret: {{ toJson .Values.secret.create | sha256sum }}
{{- end }}
{{- end }}
