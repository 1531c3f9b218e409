"""Every label, annotation, resource and API name that Evenkeel reads or writes."""

from __future__ import annotations

from enum import StrEnum

SCHEDULER = "evenkeel"

# Evenkeel's own Lease, which only its replicas take. A Lease of any other name is shared with other programs.
LEASE = "evenkeel"

# API groups of our own.
GROUP = "scheduling.evenkeel.dev"
VERSION = "v1alpha1"
POLICIES = "balancepolicies"

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
HAMI_TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"
HAMI_ALLOCATED = "hami.io/vgpu-devices-allocated"
HAMI_BIND_PHASE = "hami.io/bind-phase"
HAMI_BIND_TIME = "hami.io/bind-time"
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
GPU_REPLICAS = "nvidia.com/gpu.replicas"
GPU_PRESENT = "nvidia.com/gpu.present"
# Resources under which plugins offer GPUs in ways that Evenkeel does not count; ``*`` stands for any end.
GPU_RESOURCES = ("nvidia.com/gpu.shared", "nvidia.com/mig-*")

# The annotations that decide where a pod goes: part of its template.
STEERING = frozenset({
    MODE, OBJECTIVE, HAMI_NODE_POLICY, HAMI_GPU_POLICY, HAMI_WEIGHTS,
    USE_TYPE, NOUSE_TYPE, USE_UUID, NOUSE_UUID, NUMA_BIND, VGPU_MODE,
})  # fmt: skip

# The policy of a pod that preempts no other; the condition of a pod that is preempted, and its reason.
PREEMPT_NEVER = "Never"
DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTED_BY_SCHEDULER = "PreemptionByScheduler"

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
