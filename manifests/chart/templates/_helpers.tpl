{{- define "evenkeel.name" -}}
{{- if contains "evenkeel" .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-evenkeel" .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "evenkeel.selector" -}}
app.kubernetes.io/name: evenkeel
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "evenkeel.labels" -}}
{{ include "evenkeel.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "evenkeel.image" -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag }}
{{- end -}}
{{- end -}}

{{- define "evenkeel.metadata" -}}
name: {{ include "evenkeel.name" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "evenkeel.labels" . | nindent 2 }}
{{- end -}}

{{- define "evenkeel.clusterMetadata" -}}
name: {{ include "evenkeel.name" . }}
labels:
  {{- include "evenkeel.labels" . | nindent 2 }}
{{- end -}}

{{- define "evenkeel.standsInPlace" -}}
{{- $names := list .Values.config.schedulerName -}}
{{- range .Values.config.profiles -}}{{- $names = append $names .schedulerName -}}{{- end -}}
{{- if has "default-scheduler" $names -}}true{{- end -}}
{{- end -}}

{{- define "evenkeel.leaseName" -}}
{{ .Values.lease.name | default (ternary "kube-scheduler" "evenkeel" (eq "true" (include "evenkeel.standsInPlace" .))) }}
{{- end -}}

{{- define "evenkeel.leaseNamespace" -}}
{{ .Values.lease.namespace | default (ternary "kube-system" .Release.Namespace (eq "true" (include "evenkeel.standsInPlace" .))) }}
{{- end -}}

{{- define "evenkeel.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if .Values.webhook.enabled -}}
{{- $webhook := dict "port" 9443 "name" (printf "%s-webhook" (include "evenkeel.name" .)) "namespace" .Release.Namespace -}}
{{- if .Values.webhook.certManager.enabled -}}{{- $_ := set $webhook "certificates" "/etc/evenkeel-webhook" -}}{{- end -}}
{{- $_ := set $config.queues "webhook" $webhook -}}
{{- end -}}
{{ toYaml $config }}
{{- end -}}
