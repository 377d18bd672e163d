{{- define "signalbox.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "signalbox.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "signalbox.name" .) .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "signalbox.name" .) | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "signalbox.selectorLabels" -}}
app.kubernetes.io/name: {{ include "signalbox.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "signalbox.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{ include "signalbox.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "signalbox.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "signalbox.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* Several nodes on one PostgreSQL. */ -}}
{{- define "signalbox.isCluster" -}}
{{- if gt (int .Values.replicas) 1 }}true{{ end }}
{{- end }}
