"""The kinds of API objects that are read, as one table: a new kind is a line here, and a keeper in the engine.

Watches, the lists at the start, snapshots, manifests, logs, rights and the pages of the docs read this table.
"""

from __future__ import annotations

from scheduler.api import kai, kueue, names, steering, storage, wire
from scheduler.api.claims import objects as claims
from scheduler.api.groups import objects
from scheduler.api.kind import Kind, get_uid

_NO_PODS_MADE = "their pods that do not exist yet are left out"
_NOT_SPREAD = "the default spread of their pods is not simulated"
_GROUPS_WAIT = "groups of pods that need them wait"
_NO_STORAGE = "pods whose volumes depend on them are evaluated without them"
_PEERS, _STORAGE, _GROUPS = "the default spread of pods", "pods with storage", "groups of pods"
_CLAIMS = "pods with ResourceClaims"
_QUEUES, _NO_QUOTAS = "quotas of queues", "workloads are not held by quotas"


PODS = Kind(
    name="Pod",
    plural="pods",
    shape=wire.Pod,
    key=get_uid,
    needed_by="the queue, and the free capacity of nodes",
)
NODES = Kind(
    name="Node", plural="nodes", shape=wire.Node, needed_by="every rule", is_namespaced=False
)


def _make_selecting_kind(
    shape: type[steering.PeerObject], *, group: str, plural: str, makes_pods: bool
) -> Kind:
    return Kind(
        name=shape.__name__,
        group=group,
        plural=plural,
        shape=shape,
        needed_by=_PEERS,
        lost=f"{_NOT_SPREAD}, and {_NO_PODS_MADE}" if makes_pods else _NOT_SPREAD,
        makes_pods=makes_pods,
    )


def _make_storage_kind(shape: type[storage.StorageObject], plural: str, *, group: str = "storage.k8s.io", is_namespaced: bool = False) -> Kind:  # fmt: skip
    return Kind(
        name=shape.__name__,
        group=group,
        plural=plural,
        shape=shape,
        needed_by=_STORAGE,
        lost=_NO_STORAGE,
        is_namespaced=is_namespaced,
    )


def _make_controller_kind(name: str, group: str, plural: str) -> Kind:
    return Kind(name=name, group=group, plural=plural, lost=_NO_PODS_MADE, makes_pods=True)


SERVICES = _make_selecting_kind(steering.Service, group="", plural="services", makes_pods=False)
CLAIMS = _make_storage_kind(
    storage.PersistentVolumeClaim, "persistentvolumeclaims", group="", is_namespaced=True
)
VOLUMES = _make_storage_kind(storage.PersistentVolume, "persistentvolumes", group="")
STORAGE_CLASSES = _make_storage_kind(storage.StorageClass, "storageclasses")


def _make_claim_kind(shape: type[claims.DeviceObject], plural: str, *, is_namespaced: bool = False) -> Kind:  # fmt: skip
    return Kind(
        name=str(shape.__struct_config__.tag),
        group="resource.k8s.io",
        plural=plural,
        shape=shape,
        needed_by=_CLAIMS,
        lost="pods with ResourceClaims wait",
        is_namespaced=is_namespaced,
        absent=f"{plural}.resource.k8s.io are not served in v1; pods with ResourceClaims wait",
    )


RESOURCE_CLAIMS = _make_claim_kind(claims.ResourceClaim, "resourceclaims", is_namespaced=True)
DEVICE_CLASSES = _make_claim_kind(claims.DeviceClass, "deviceclasses")
RESOURCE_SLICES = _make_claim_kind(claims.ResourceSlice, "resourceslices")
CLAIM_TEMPLATES = Kind(name="ResourceClaimTemplate", group="resource.k8s.io", plural="resourceclaimtemplates", shape=claims.ResourceClaimTemplate, lost="pods with templates of ResourceClaims wait", absent="resourceclaimtemplates.resource.k8s.io are not served in v1")  # fmt: skip
TAINT_RULES = _make_claim_kind(claims.DeviceTaintRule, "devicetaintrules")
BUDGETS = Kind(
    name="PodDisruptionBudget",
    group="policy",
    plural="poddisruptionbudgets",
    shape=steering.PodDisruptionBudget,
    needed_by="which pods a budget protects from preemption",
    lost="victims of preemption are chosen without regard to budgets",
    stream="budgets",
)
NAMESPACES = Kind(name="Namespace", plural="namespaces", shape=steering.Namespace, needed_by="namespace selectors of BalancePolicies", is_namespaced=False, is_rare=True)  # fmt: skip
POLICIES = Kind(
    name="BalancePolicy",
    group=names.GROUP,
    version=names.VERSION,
    plural=names.POLICIES,
    shape=steering.BalancePolicy,
    needed_by="placement by BalancePolicies",
    lost="pods are placed without any policy",
    stream="policies",
    is_namespaced=False,
    is_rare=True,
    absent="the BalancePolicy CRD is not installed; pods are placed by the configuration",
)
RESOURCE_QUOTAS = Kind(name="ResourceQuota", plural="resourcequotas", shape=steering.ResourceQuota, needed_by="quotas of devices by namespace", lost="pods with devices are not held by quotas of their namespaces")  # fmt: skip
PRIORITY_CLASSES = Kind(
    name="PriorityClass", group="scheduling.k8s.io", plural="priorityclasses", is_namespaced=False
)
LIMIT_RANGES = Kind(
    name="LimitRange",
    plural="limitranges",
    shape=kueue.LimitRange,
    needed_by=_QUEUES,
    lost="default requests are not filled in",
    is_of_queues=True,
)


def _make_group_kind(
    shape: type[objects.Raw],
    api: str,
    plural: str,
    *,
    is_namespaced: bool = True,
    makes_pods: bool = False,
    older: str = "",
) -> Kind:
    """Make the line of a kind that says which pods are a group, or how the cluster is built."""
    group, _, version = api.partition("/")
    name = str(shape.__struct_config__.tag)
    return Kind(
        name=name,
        group=group,
        version=version,
        plural=plural,
        shape=shape,
        needed_by=_GROUPS,
        stream=f"{plural}.{group}" if "." in name else "",
        is_namespaced=is_namespaced,
        makes_pods=makes_pods,
        lost=_NO_PODS_MADE if makes_pods else _GROUPS_WAIT,
        older=older,
        absent=""
        if shape is objects.Job
        else f"{plural}.{group} are not served; no group is read from them",
    )


def _make_queue_kind(shape: type[wire.Object], plural: str, *, is_namespaced: bool = False) -> Kind:
    """Make the line of a kind of Kueue's queues."""
    return Kind(
        name=str(shape.__struct_config__.tag),
        group="kueue.x-k8s.io",
        version="v1beta2",
        older="v1beta1",
        plural=plural,
        shape=shape,
        needed_by=_QUEUES,
        lost=_NO_QUOTAS,
        is_namespaced=is_namespaced,
        absent=f"{plural}.kueue.x-k8s.io are not served; there are no queues",
        is_of_queues=True,
    )


POD_GROUPS = _make_group_kind(objects.KubePodGroup, "scheduling.k8s.io/v1beta1", "podgroups")
DEPLOYMENTS = _make_controller_kind("Deployment", "apps", "deployments")
REPLICA_SETS = _make_selecting_kind(steering.ReplicaSet, group="apps", plural="replicasets", makes_pods=True)  # fmt: skip
STATEFUL_SETS = _make_selecting_kind(
    steering.StatefulSet, group="apps", plural="statefulsets", makes_pods=True
)
JOBS = _make_group_kind(objects.Job, "batch/v1", "jobs", makes_pods=True)
LEADER_WORKER_SETS = _make_group_kind(
    objects.LeaderWorkerSet, "leaderworkerset.x-k8s.io/v1", "leaderworkersets", makes_pods=True
)
JOB_SETS = _make_group_kind(objects.JobSet, "jobset.x-k8s.io/v1alpha2", "jobsets", makes_pods=True)
MPI_JOBS = _make_group_kind(objects.MPIJob, "kubeflow.org/v2beta1", "mpijobs", makes_pods=True)
PYTORCH_JOBS, TF_JOBS, XGBOOST_JOBS, PADDLE_JOBS, JAX_JOBS = (
    _make_group_kind(one, "kubeflow.org/v1", f"{one.__name__.lower()}s", makes_pods=True)
    for one in objects.TRAINING_JOBS
)
TRAIN_JOBS = _make_group_kind(
    objects.TrainJob, "trainer.kubeflow.org/v1alpha1", "trainjobs", makes_pods=True
)
RAY_CLUSTERS = _make_group_kind(objects.RayCluster, "ray.io/v1", "rayclusters", makes_pods=True)
RAY_JOBS = _make_group_kind(objects.RayJob, "ray.io/v1", "rayjobs", makes_pods=True)
RAY_SERVICES = _make_group_kind(objects.RayService, "ray.io/v1", "rayservices", makes_pods=True)
KUEUE_TOPOLOGIES = _make_group_kind(
    objects.KueueTopology,
    "kueue.x-k8s.io/v1beta2",
    "topologies",
    is_namespaced=False,
    older="v1beta1",
)
FLAVORS = _make_queue_kind(kueue.ResourceFlavor, "resourceflavors")
WORKLOAD_CLASSES = _make_queue_kind(kueue.WorkloadPriorityClass, "workloadpriorityclasses")
COHORTS = _make_queue_kind(kueue.Cohort, "cohorts")
CLUSTER_QUEUES = _make_queue_kind(kueue.ClusterQueue, "clusterqueues")
LOCAL_QUEUES = _make_queue_kind(kueue.LocalQueue, "localqueues", is_namespaced=True)
WORKLOADS = _make_queue_kind(kueue.Workload, "workloads", is_namespaced=True)
ADMISSION_CHECKS = _make_queue_kind(kueue.AdmissionCheck, "admissionchecks")
KAI_QUEUES = Kind(
    name=str(kai.Queue.__struct_config__.tag),
    group="scheduling.run.ai",
    version="v2",
    plural="queues",
    shape=kai.Queue,
    needed_by=_QUEUES,
    lost="pods are not held by quotas",
    stream="queues.scheduling.run.ai",
    is_namespaced=False,
    absent="queues.scheduling.run.ai are not served; there are no queues",
    is_of_kai=True,
)

TABLE: tuple[Kind, ...] = (
    PODS,
    NODES,
    SERVICES,
    _make_selecting_kind(
        steering.ReplicationController, group="", plural="replicationcontrollers", makes_pods=True
    ),
    REPLICA_SETS,
    STATEFUL_SETS,
    CLAIMS,
    VOLUMES,
    STORAGE_CLASSES,
    _make_storage_kind(storage.CSINode, "csinodes"),
    _make_storage_kind(storage.CSIDriver, "csidrivers"),
    _make_storage_kind(storage.CSIStorageCapacity, "csistoragecapacities", is_namespaced=True),
    _make_storage_kind(storage.VolumeAttachment, "volumeattachments"),
    RESOURCE_SLICES,
    DEVICE_CLASSES,
    TAINT_RULES,
    RESOURCE_CLAIMS,
    CLAIM_TEMPLATES,
    BUDGETS,
    NAMESPACES,
    POLICIES,
    RESOURCE_QUOTAS,
    PRIORITY_CLASSES,
    LIMIT_RANGES,
    DEPLOYMENTS,
    _make_controller_kind("DaemonSet", "apps", "daemonsets"),
    JOBS,
    _make_controller_kind("CronJob", "batch", "cronjobs"),
    POD_GROUPS,
    _make_group_kind(objects.CompositePodGroup, "scheduling.k8s.io/v1alpha3", "compositepodgroups"),
    _make_group_kind(objects.SigsPodGroup, "scheduling.sigs.k8s.io/v1alpha1", "podgroups"),
    _make_group_kind(objects.XPodGroup, "scheduling.x-k8s.io/v1alpha1", "podgroups"),
    _make_group_kind(objects.KaiPodGroup, "scheduling.run.ai/v2alpha2", "podgroups"),
    _make_group_kind(objects.VolcanoPodGroup, "scheduling.volcano.sh/v1beta1", "podgroups"),
    KUEUE_TOPOLOGIES,
    _make_group_kind(
        objects.KaiTopology, "kai.scheduler/v1alpha1", "topologies", is_namespaced=False
    ),
    _make_group_kind(
        objects.ClusterNetworkTopology,
        "scheduling.koordinator.sh/v1alpha1",
        "clusternetworktopologies",
        is_namespaced=False,
    ),
    JOB_SETS,
    LEADER_WORKER_SETS,
    MPI_JOBS,
    *(PYTORCH_JOBS, TF_JOBS, XGBOOST_JOBS, PADDLE_JOBS, JAX_JOBS),
    TRAIN_JOBS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    FLAVORS,
    COHORTS,
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    WORKLOAD_CLASSES,
    ADMISSION_CHECKS,
    WORKLOADS,
    KAI_QUEUES,
)
# Of this kind only the objects are read that the settings name.
CONFIG_MAPS = Kind(name="ConfigMap", plural="configmaps", shape=steering.ConfigMap, needed_by="HAMi's device configuration", lost="requests of devices are read by the defaults of HAMi's chart")  # fmt: skip
# Kinds that no decision reads.
LEASES = Kind(name="Lease", group="coordination.k8s.io", plural="leases")
EVENTS = Kind(name="Event", group="events.k8s.io", plural="events")
AUTOSCALERS = Kind(name="HorizontalPodAutoscaler", group="autoscaling", version="v2", plural="horizontalpodautoscalers")  # fmt: skip
SECRETS = Kind(name="Secret", plural="secrets")
MUTATING_WEBHOOKS = Kind(
    name="MutatingWebhookConfiguration",
    group="admissionregistration.k8s.io",
    plural="mutatingwebhookconfigurations",
    is_namespaced=False,
)
VALIDATING_WEBHOOKS = Kind(
    name="ValidatingWebhookConfiguration",
    group="admissionregistration.k8s.io",
    plural="validatingwebhookconfigurations",
    is_namespaced=False,
)
REVIEWS = Kind(
    name="SelfSubjectAccessReview",
    group="authorization.k8s.io",
    plural="selfsubjectaccessreviews",
    is_namespaced=False,
)
BY_NAME = {kind.name: kind for kind in (*TABLE, CONFIG_MAPS)}
# By the value of ``kind`` in objects: the kinds of all API groups that have one.
BY_KIND: dict[str, list[Kind]] = {}
for _one in BY_NAME.values():
    BY_KIND.setdefault(_one.kind, []).append(_one)
# What is read of every cluster, and what is read only where queues of a system are managed.
WATCHED = tuple(
    kind for kind in TABLE if kind.needed_by and not (kind.is_of_queues or kind.is_of_kai)
)
OF_QUEUES = tuple(kind for kind in TABLE if kind.is_of_queues)
OF_KAI = tuple(kind for kind in TABLE if kind.is_of_kai)


def read_kind_name(found: wire.Object) -> str:
    """Read the name of an object's kind, with which its class is tagged."""
    return str(type(found).__struct_config__.tag)


def make_key(found: wire.Object) -> str:
    """Make the key of an object among its kind."""
    meta: wire.Meta = found.metadata
    return BY_NAME[read_kind_name(found)].key(meta)


def split_key(key: str) -> tuple[str, str]:
    """Split a key into namespace and name; the namespace is empty for an object without one."""
    namespace, _, name = key.rpartition("/")
    return namespace, name
