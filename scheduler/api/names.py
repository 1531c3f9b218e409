"""Every label, annotation, resource and API name that Evenkeel reads or writes."""

from __future__ import annotations

from enum import StrEnum

SCHEDULER = "evenkeel"
# The scheduler of pods that name none.
DEFAULT_SCHEDULER = "default-scheduler"

# Evenkeel's own Lease, which only its replicas take. A Lease of any other name is shared with other programs.
LEASE = "evenkeel"
# The Lease of the process that moves pods.
REBALANCE_LEASE = "evenkeel-rebalance"
# The Lease by which one of Kueue's own controllers leads.
KUEUE_LEASE = "c1f6bfd2.kueue.x-k8s.io"
# The label of a workload with the uid of the job that it stands for.
KUEUE_JOB_UID = "kueue.x-k8s.io/job-uid"

# API groups of our own.
GROUP = "scheduling.evenkeel.dev"
VERSION = "v1alpha1"
POLICIES = "balancepolicies"
REBALANCE_POLICIES = "rebalancepolicies"

# Our own pod annotations; the two axes are steered by HAMi's.
MODE = "scheduling.evenkeel.dev/mode"
OBJECTIVE = "scheduling.evenkeel.dev/objective"

# Which replica touched a pod, and when, so that earlier binds of it fail; it is also the type of a condition, which
# is used if the annotations are full.
FENCED = "scheduling.evenkeel.dev/fenced"

# On the lease: its holder, if the holder is one of our replicas.
HOLDER = "scheduling.evenkeel.dev/holder"

# On a lease that was given back: the number of its transitions. It says that no request of any holder is on its way.
SETTLED = "scheduling.evenkeel.dev/settled"

# On the lease: the part of the learnt demand that no pod shows.
DEPARTURES = "scheduling.evenkeel.dev/departures"

# Resources.
CPU = "cpu"
MEMORY = "memory"
EPHEMERAL = "ephemeral-storage"
PODS = "pods"
IOPS = "evenkeel.dev/iops"
NETWORK = "evenkeel.dev/network-mbps"
GPU = "nvidia.com/gpu"
GPU_MEMORY = "nvidia.com/gpumem"
GPU_MEMORY_PERCENT = "nvidia.com/gpumem-percentage"
GPU_CORES = "nvidia.com/gpucores"
GPU_PRIORITY = "nvidia.com/priority"
AMD_GPU = "amd.com/gpu"
INTEL_GPU_I915 = "gpu.intel.com/i915"
INTEL_GPU_XE = "gpu.intel.com/xe"

# HAMi, node side.
HAMI_REGISTER = "hami.io/node-nvidia-register"
HAMI_CORDON = "hami.io/device-cordon"
HAMI_LOCK = "hami.io/mutex.lock"
HAMI_SCORE = "hami.io/node-nvidia-score"
HAMI_HANDSHAKE = "hami.io/node-handshake"
# How HAMi's device plugin begins its half of the handshake; the other half is a scheduler's.
HANDSHAKE_REPORTED = "Reported"
# The label of the nodes that HAMi's chart runs the device plugin on.
HAMI_NODE_LABEL = "gpu=on"

# HAMi, pod side: written by a scheduler or by the device plugin.
HAMI_NODE = "hami.io/vgpu-node"
HAMI_TIME = "hami.io/vgpu-time"
HAMI_MIG_ALLOCATIONS = "hami.io/vgpu-mig-allocations"
HAMI_TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"
HAMI_ALLOCATED = "hami.io/vgpu-devices-allocated"
HAMI_BIND_PHASE = "hami.io/bind-phase"
HAMI_BIND_TIME = "hami.io/bind-time"
# What not every choice of a scheduler writes: an earlier choice that was not carried out leaves it behind.
LEFT_BEHIND = (HAMI_MIG_ALLOCATIONS,)
BIND_ALLOCATING = "allocating"
BIND_SUCCESS = "success"
BIND_FAILED = "failed"

# HAMi, pod side: written by a user.
HAMI_NODE_POLICY = "hami.io/node-scheduler-policy"
HAMI_GPU_POLICY = "hami.io/gpu-scheduler-policy"
HAMI_WEIGHTS = "hami.io/device-scoring-weights"
USE_TYPE = "nvidia.com/use-gputype"
NOUSE_TYPE = "nvidia.com/nouse-gputype"
USE_UUID = "nvidia.com/use-gpuuuid"
NOUSE_UUID = "nvidia.com/nouse-gpuuuid"
NUMA_BIND = "nvidia.com/numa-bind"
VGPU_MODE = "nvidia.com/vgpu-mode"

# Labels in which NVIDIA's feature discovery describes a node's GPUs.
GPU_PRODUCT = "nvidia.com/gpu.product"
GPU_COUNT = "nvidia.com/gpu.count"
GPU_MIB = "nvidia.com/gpu.memory"
GPU_PRESENT = "nvidia.com/gpu.present"

# The annotations that decide where a pod goes: part of its template.
STEERING = frozenset({
    MODE, OBJECTIVE, HAMI_NODE_POLICY, HAMI_GPU_POLICY, HAMI_WEIGHTS,
    USE_TYPE, NOUSE_TYPE, USE_UUID, NOUSE_UUID, NUMA_BIND, VGPU_MODE,
})  # fmt: skip

# The policy of a pod that preempts no other; the condition of a pod that is preempted, and its reason.
PREEMPT_NEVER = "Never"
DISRUPTION_TARGET = "DisruptionTarget"
# The condition of a PodGroup of Kubernetes that was placed once; it is never taken back.
POD_GROUP_PLACED = "PodGroupInitiallyScheduled"
PREEMPTED_BY_SCHEDULER = "PreemptionByScheduler"
# The reason of the same condition on pods of a group that is sent away because it is below its minimum.
BELOW_MINIMUM = "GroupBelowMinimum"

# Groups of pods, in our own words: on an owner of pods or on its pods.
GANG = "evenkeel.dev/gang"
GANG_ALL = "all"
RUN_TIME = "evenkeel.dev/run-time"
CHECKPOINT = "evenkeel.dev/checkpoint-every"
ON_FAILURE = "evenkeel.dev/on-failure"
REPLACE, RESTART = "replace", "restart"

# Annotations of pods that autoscalers leave on their node: "false" of Cluster Autoscaler's, "true" of Karpenter's.
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
# By this annotation of its pods a ReplicaSet chooses which of them goes: the one with the lowest figure, of those that are ready.
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
# A label of pods that a move chose as those of which one goes; until when the move may take, in seconds since 1970.
SURGE = "evenkeel.dev/surge"

# Groups: scheduler-plugins and Koordinator. The first two are labels, the others are annotations.
X_GROUP = "scheduling.x-k8s.io/pod-group"
COSCHEDULING_GROUP = "pod-group.scheduling.sigs.k8s.io"
GANG_NAME = "gang.scheduling.koordinator.sh/name"
GANG_MINIMUM = "gang.scheduling.koordinator.sh/min-available"
GANG_TOTAL = "gang.scheduling.koordinator.sh/total-number"
GANG_GROUPS = "gang.scheduling.koordinator.sh/groups"
GANG_MATCH = "gang.scheduling.koordinator.sh/match-policy"
COSCHEDULING_MATCH = "pod-group.scheduling.sigs.k8s.io/match-policy"
GANG_TOPOLOGY = "gang.scheduling.koordinator.sh/network-topology-spec"
GANG_INDEX = "gang.scheduling.koordinator.sh/network-topology-index"
GANG_COMPANY = "scheduling.koordinator.sh/network-topology-selector"

# Groups: Kueue. The first three are labels, the others are annotations.
KUEUE_WORKLOAD = "kueue.x-k8s.io/workload"
KUEUE_POD_SET = "kueue.x-k8s.io/podset"
KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"
KUEUE_INDEX = "kueue.x-k8s.io/pod-group-pod-index"
KUEUE_FAST = "kueue.x-k8s.io/pod-group-fast-admission"
KUEUE_SERVES = "kueue.x-k8s.io/pod-group-serving"
KUEUE_RUN_TIME = "kueue.x-k8s.io/max-exec-time-seconds"
KUEUE_TOTAL = "kueue.x-k8s.io/pod-group-total-count"
KUEUE_ROLE = "kueue.x-k8s.io/role-hash"
KUEUE_INDEX_LABEL = "kueue.x-k8s.io/pod-group-pod-index-label"
KUEUE_INDEX_OFFSET = "kueue.x-k8s.io/pod-index-offset"
KUEUE_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
KUEUE_PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
KUEUE_UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
KUEUE_SLICE_LEVEL = "kueue.x-k8s.io/podset-slice-required-topology"
KUEUE_SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
KUEUE_SLICES = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
KUEUE_TOGETHER = "kueue.x-k8s.io/podset-group-name"
# Kueue, jobs: of which queue and class a job is, and what is written on the pods of one that was started.
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
KUEUE_CLASS = "kueue.x-k8s.io/priority-class"
KUEUE_PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
# On jobs, pods and workloads: who has to agree before the workload is tried; each takes his name off.
KUEUE_GATED = "kueue.x-k8s.io/admission-gated-by"
# On jobs, and on their workloads: they want to change their size while they run. The same text names a gate of pods.
KUEUE_ELASTIC = "kueue.x-k8s.io/elastic-job"
# On the slices of workloads of such a job: the slice that one replaces, and on pods, too, the name of the first slice.
KUEUE_REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"
KUEUE_CHAIN = "kueue.x-k8s.io/workload-slice-name"
KUEUE_LEAST = "kueue.x-k8s.io/job-min-parallelism"
KUEUE_EQUAL_COMPLETIONS = "kueue.x-k8s.io/job-completions-equal-parallelism"
KUEUE_STOPPING = "kueue.x-k8s.io/stopping"
KUEUE_CLUSTER_QUEUE = "kueue.x-k8s.io/cluster-queue-name"
KUEUE_LOCAL_QUEUE = "kueue.x-k8s.io/local-queue-name"
KUEUE_PROVISIONING = "provreq.kueue.x-k8s.io/"
# Kueue, pods that wait: the gates that hold them, the label of those that it manages, and their finalizer.
KUEUE_GATE = "kueue.x-k8s.io/admission"
KUEUE_TOPOLOGY_GATE = "kueue.x-k8s.io/topology"
KUEUE_MANAGED = "kueue.x-k8s.io/managed"
# On pods: by which kind of owner they wait, if that has a queue itself.
KUEUE_PARENT = "kueue.x-k8s.io/pod-suspending-parent"
# The LocalQueue of a namespace whose jobs name none.
KUEUE_DEFAULT_QUEUE = "default"
# The finalizer of a workload whose job has not let go of it, and of other objects of Kueue that are in use.
KUEUE_IN_USE = "kueue.x-k8s.io/resource-in-use"
# On a workload: the generation of its job to which it is known to fit.
FITS_GENERATION = "scheduling.evenkeel.dev/fits-generation"

# Groups: KAI. The two in the middle are labels, the others are annotations.
KAI_GROUP = "pod-group-name"
KAI_PART = "kai.scheduler/subgroup-name"
KAI_ORDER = "kai.scheduler/task-priority"
KAI_TOPOLOGY = "kai.scheduler/topology"
KAI_REQUIRED = "kai.scheduler/topology-required-placement"
KAI_PREFERRED = "kai.scheduler/topology-preferred-placement"
KAI_SEGMENT_SIZE = "kai.scheduler/segment-size"
KAI_SEGMENT_REQUIRED = "kai.scheduler/segment-topology-required-placement"
KAI_SEGMENT_PREFERRED = "kai.scheduler/segment-topology-preferred-placement"

# On a queue of KAI's: what it has used over time, as Evenkeel writes it.
KAI_USAGE = "scheduling.evenkeel.dev/usage"

# Where KAI is installed by default.
KAI_NAMESPACE = "kai-scheduler"

# Shares of cards in neutral words, which the webhook translates, and the annotation that says as what.
SHARE_MEMORY = "evenkeel.dev/gpu-memory"
SHARE_CORES = "evenkeel.dev/gpu-cores"
SHARED_AS = "scheduling.evenkeel.dev/gpu-share"

# Shares of cards: KAI. Three annotations, and one that names the container; the label by which pods that share a card, and
# the pod that holds the card for them, have the same group, and how the labels begin by which a pod has several; the
# namespace of the pods that hold cards.
KAI_FRACTION = "gpu-fraction"
KAI_GPU_MEMORY = "gpu-memory"
KAI_SHARED_CARDS = "gpu-fraction-num-devices"
KAI_SHARES = frozenset({KAI_FRACTION, KAI_GPU_MEMORY, KAI_SHARED_CARDS})
KAI_SHARING_CONTAINER = "gpu-fraction-container-name"
KAI_CARD_GROUP = "runai-gpu-group"
KAI_CARD_GROUPS = f"{KAI_CARD_GROUP}/"
KAI_RESERVATIONS = "kai-resource-reservation"

# Queues: KAI. Labels; of those that name the queue the first one that is there counts.
KAI_QUEUE = "kai.scheduler/queue"
KAI_PROJECT = "project"
KAI_PREEMPTIBILITY = "kai.scheduler/preemptibility"
KAI_PRIORITY = "priorityClassName"

# Groups: Volcano. Two annotations, either of which names the group, and a label.
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
VOLCANO_GROUP_TOO = "scheduling.volcano.sh/group-name"
VOLCANO_TASK = "volcano.sh/task-spec"

# What the controllers of owners write on pods: labels, and the index of a Job also as an annotation.
JOB_INDEX = "batch.kubernetes.io/job-completion-index"
SET_INDEX = "apps.kubernetes.io/pod-index"
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
JOBSET_PART = "jobset.sigs.k8s.io/replicatedjob-name"
JOBSET_INDEX = "jobset.sigs.k8s.io/job-index"
JOBSET_REPLICAS = "jobset.sigs.k8s.io/replicatedjob-replicas"
JOBSET_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
JOBSET_BY_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
LWS_NAME = "leaderworkerset.sigs.k8s.io/name"
LWS_GROUP = "leaderworkerset.sigs.k8s.io/group-index"
LWS_SIZE = "leaderworkerset.sigs.k8s.io/size"
LWS_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
LWS_EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
LWS_PARTS_EXCLUSIVE = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
TRAINING_NAME = "training.kubeflow.org/job-name"
TRAINING_OPERATOR = "training.kubeflow.org/operator-name"
TRAINING_PART = "training.kubeflow.org/replica-type"
TRAINING_ROLE = "training.kubeflow.org/job-role"
TRAINING_INDEX = "training.kubeflow.org/replica-index"
RAY_CLUSTER = "ray.io/cluster"
RAY_PART = "ray.io/group"
RAY_REPLICA = "ray.io/worker-group-replica-index"
RAY_HOST = "ray.io/replica-host-index"
RAY_HEAD = "headgroup"

# Storage: annotations of claims, volumes and CSINodes.
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
# A class with this provisioner has only volumes that were made by hand.
NO_PROVISIONER = "kubernetes.io/no-provisioner"

# On the API server's mirror of a pod that a kubelet runs from a file of its own.
MIRROR = "kubernetes.io/config.mirror"
# Labels that Kubernetes puts on nodes and on namespaces.
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"
NAMESPACE_NAME = "kubernetes.io/metadata.name"
# On a ResourceClaim that a scheduler has made for the extended resources of a pod.
EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"


class PeerKind(StrEnum):
    """Kinds of objects that select pods which belong together."""

    SERVICE = "Service"
    REPLICATION_CONTROLLER = "ReplicationController"
    REPLICA_SET = "ReplicaSet"
    STATEFUL_SET = "StatefulSet"


UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
# How the keys of taints begin that describe a node's state: these taints come and go by themselves.
STATE_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
LABEL_VALUE_MAX = 63
