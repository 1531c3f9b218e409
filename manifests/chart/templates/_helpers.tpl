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
{{- /* Without the policy, tenants can write what their pods hold. */ -}}
{{- if not .Values.admissionPolicy.enabled -}}{{- $_ := set $config "trustClaims" false -}}{{- end -}}
{{- $webhook := dict "port" 9443 "name" (printf "%s-webhook" (include "evenkeel.name" .)) "namespace" .Release.Namespace -}}
{{- if .Values.webhook.certManager.enabled -}}{{- $_ := set $webhook "certificates" "/etc/evenkeel-webhook" -}}{{- end -}}
{{- if .Values.webhook.enabled -}}
{{- $_ := set $config.queues "webhook" $webhook -}}
{{- end -}}
{{- if .Values.deviceWebhook.enabled -}}
{{- $given := .Values.deviceWebhook -}}
{{- $admission := dict "takeOver" $given.takeOver "forceOverwriteDefaultScheduler" $given.forceOverwriteDefaultScheduler "shares" $given.shares -}}
{{- if not $config.hamiConfigMap -}}{{- $_ := set $admission "nvidia" $given.nvidia -}}{{- end -}}
{{- $_ := set $config "deviceWebhook" (merge $admission $webhook) -}}
{{- end -}}
{{ toYaml $config }}
{{- end -}}


{{- define "evenkeel.servesWebhook" -}}
{{- if or .Values.webhook.enabled .Values.deviceWebhook.enabled -}}true{{- end -}}
{{- end -}}

{{- define "evenkeel.trusted" -}}
{{- $name := printf "%s-webhook" (include "evenkeel.name" .) -}}
{{- $found := list -}}
{{- if .Values.webhook.enabled -}}{{- $found = append $found $name -}}{{- end -}}
{{- if .Values.deviceWebhook.enabled -}}{{- $found = append $found (printf "%s-devices" $name) -}}{{- end -}}
{{ join ", " $found }}
{{- end -}}

{{- define "evenkeel.deviceCondition" -}}
(['gpu-fraction', 'gpu-memory'].exists(key, key in object.metadata.?annotations.orValue({})) ||
{{ if .Values.config.hamiConfigMap -}}
{{- /* HAMi's ConfigMap may name other resources at any time. */ -}}
(object.spec.?containers.orValue([]) + object.spec.?initContainers.orValue([])).exists(one,
one.?resources.?limits.orValue({}).exists(key, key.contains('/')) ||
one.?resources.?requests.orValue({}).exists(key, key.contains('/'))))
{{- else -}}
{{- $nvidia := .Values.deviceWebhook.nvidia -}}
{{- $found := list -}}
{{- range list $nvidia.resourceCountName $nvidia.resourceMemoryName $nvidia.resourceMemoryPercentageName $nvidia.resourceCoreName -}}
{{- if . -}}{{- $found = append $found (printf "'%s'" .) -}}{{- end -}}
{{- end -}}
(object.spec.?containers.orValue([]) + object.spec.?initContainers.orValue([])).exists(one,
([{{ join ", " $found }}]
+ ['amd.com/gpu', 'amd.com/gpumem', 'amd.com/gpucores', 'hygon.com/dcunum', 'cambricon.com/vmlu',
'metax-tech.com/gpu', 'metax-tech.com/sgpu', 'mthreads.com/vgpu', 'vastaitech.com/va', 'birentech.com/gpu',
'enflame.com/gcu', 'enflame.com/drs-gcu', 'enflame.com/gcu-memory', 'enflame.com/gcu-core',
'kunlunxin.com/xpu', 'kunlunxin.com/vxpu', 'aws.amazon.com/neuron', 'aws.amazon.com/neuroncore',
'iluvatar.ai/MR-V100-vgpu', 'iluvatar.ai/MR-V50-vgpu', 'iluvatar.ai/BI-V150-vgpu', 'iluvatar.ai/BI-V100-vgpu',
'huawei.com/Ascend910A', 'huawei.com/Ascend910B2', 'huawei.com/Ascend910B3', 'huawei.com/Ascend910B4-1',
'huawei.com/Ascend910B4', 'huawei.com/Ascend310P', 'huawei.com/Ascend910C']
+ ['evenkeel.dev/gpu-memory', 'evenkeel.dev/gpu-cores'])
.exists(key, key in one.?resources.?limits.orValue({}) || key in one.?resources.?requests.orValue({}))))
{{- end -}}
{{- end -}}

{{- define "evenkeel.schedulerNames" -}}
{{- $names := list .Values.config.schedulerName -}}
{{- if .Values.deviceWebhook.forceOverwriteDefaultScheduler -}}{{- $names = prepend $names "default-scheduler" -}}{{- end -}}
{{- range .Values.config.profiles -}}{{- $names = append $names .schedulerName -}}{{- end -}}
{{- range .Values.deviceWebhook.takeOver -}}{{- $names = append $names . -}}{{- end -}}
{{- $quoted := list -}}
{{- range uniq $names -}}{{- $quoted = append $quoted (printf "'%s'" .) -}}{{- end -}}
[{{ join ", " $quoted }}]
{{- end -}}

{{- define "evenkeel.takenOver" -}}
{{- $quoted := list -}}
{{- range uniq .Values.deviceWebhook.takeOver -}}{{- $quoted = append $quoted (printf "'%s'" .) -}}{{- end -}}
[{{ join ", " $quoted }}]
{{- end -}}

{{- define "evenkeel.deviceWebhook" -}}
{{- $given := .Values.deviceWebhook -}}
admissionReviewVersions: [v1]
sideEffects: None
timeoutSeconds: {{ $given.timeoutSeconds }}
reinvocationPolicy: IfNeeded
clientConfig:
  service: {name: {{ include "evenkeel.name" . }}-webhook, namespace: {{ .Release.Namespace }}, port: 443, path: /mutate-device-pods}
namespaceSelector:
  {{- with $given.namespaceSelector.matchLabels }}
  matchLabels:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values: {{ concat (list "kube-system" "kube-public" "kube-node-lease" .Release.Namespace) $given.ignoredNamespaces | toJson }}
    - {key: hami.io/webhook, operator: NotIn, values: [ignore]}
    {{- with $given.namespaceSelector.matchExpressions }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
objectSelector:
  {{- with $given.objectSelector.matchLabels }}
  matchLabels:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  matchExpressions:
    - {key: hami.io/webhook, operator: NotIn, values: [ignore]}
    {{- with $given.objectSelector.matchExpressions }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
rules:
  - apiGroups: [""]
    apiVersions: [v1]
    operations: [CREATE]
    resources: [pods]
{{- end -}}
