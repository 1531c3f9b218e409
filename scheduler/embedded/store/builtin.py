"""The table of built-in kinds."""

from typing import Any

from scheduler.embedded.store import events
from scheduler.embedded.store.kinds import Kind

POD_FIELDS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)

PODS = Kind(
    group="",
    version="v1",
    plural="pods",
    kind="Pod",
    short_names=("po",),
    categories=("all",),
    has_status=True,
    has_generation=True,
    returns_deleted=True,
    graceful=True,
    fields=POD_FIELDS,
)
NODES = Kind(
    group="",
    version="v1",
    plural="nodes",
    kind="Node",
    namespaced=False,
    short_names=("no",),
    has_status=True,
    fields=("spec.unschedulable",),
)
NAMESPACES = Kind(
    group="",
    version="v1",
    plural="namespaces",
    kind="Namespace",
    namespaced=False,
    short_names=("ns",),
    has_status=True,
    returns_deleted=True,
    fields=("status.phase",),
)
EVENTS = Kind(
    group="",
    version="v1",
    plural="events",
    kind="Event",
    short_names=("ev",),
    create_on_update=True,
    fields=events.CORE_FIELDS,
)
EVENTS_V1 = Kind(
    group="events.k8s.io",
    version="v1",
    plural="events",
    kind="Event",
    short_names=("ev",),
    create_on_update=True,
    fields=events.NEW_FIELDS,
    bucket="events",
    from_store=events.convert_to_new,
    to_store=events.convert_to_core,
)
LEASES = Kind(
    group="coordination.k8s.io",
    version="v1",
    plural="leases",
    kind="Lease",
    unconditional_update=False,
    create_on_update=True,
)
CRDS = Kind(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    has_status=True,
    has_generation=True,
    unconditional_update=False,
)


def _make_core(plural: str, kind: str, *short_names: str, **more: bool) -> Kind:
    return Kind(group="", version="v1", plural=plural, kind=kind, short_names=short_names, **more)  # type: ignore[arg-type]


def _make_workload(
    group: str,
    plural: str,
    kind: str,
    *short_names: str,
    owns: str = "pods",
    has_scale: bool = False,
) -> Kind:
    return Kind(
        group=group,
        version="v1",
        plural=plural,
        kind=kind,
        short_names=short_names,
        categories=("all",),
        has_status=True,
        has_generation=True,
        has_scale=has_scale,
        owns=owns,
    )


def _make_rbac(plural: str, kind: str, *, namespaced: bool) -> Kind:
    """Make a kind of rights; its objects are stored and shown, and no request is refused because of them."""
    return Kind(
        group="rbac.authorization.k8s.io",
        version="v1",
        plural=plural,
        kind=kind,
        namespaced=namespaced,
    )


def _make_storage(plural: str, kind: str, *, namespaced: bool) -> Kind:
    return Kind(
        group="storage.k8s.io", version="v1", plural=plural, kind=kind, namespaced=namespaced
    )


def _make_device_kind(plural: str, kind: str, **more: Any) -> Kind:
    return Kind(
        group="resource.k8s.io",
        version="v1",
        plural=plural,
        kind=kind,
        returns_deleted=True,
        **more,
    )


BUILT_IN: tuple[Kind, ...] = (
    PODS,
    NODES,
    NAMESPACES,
    EVENTS,
    EVENTS_V1,
    LEASES,
    CRDS,
    _make_core("services", "Service", "svc", has_status=True, returns_deleted=True),
    _make_core("configmaps", "ConfigMap", "cm"),
    _make_core("secrets", "Secret"),
    _make_core("serviceaccounts", "ServiceAccount", "sa", returns_deleted=True),
    _make_core(
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        "pvc",
        has_status=True,
        returns_deleted=True,
    ),
    _make_core(
        "persistentvolumes",
        "PersistentVolume",
        "pv",
        namespaced=False,
        has_status=True,
        returns_deleted=True,
    ),
    _make_core(
        "replicationcontrollers",
        "ReplicationController",
        "rc",
        has_status=True,
        has_generation=True,
    ),
    _make_core("resourcequotas", "ResourceQuota", "quota", has_status=True, returns_deleted=True),
    _make_core("limitranges", "LimitRange", "limits"),
    _make_rbac("roles", "Role", namespaced=True),
    _make_rbac("rolebindings", "RoleBinding", namespaced=True),
    _make_rbac("clusterroles", "ClusterRole", namespaced=False),
    _make_rbac("clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    Kind(
        group="flowcontrol.apiserver.k8s.io",
        version="v1",
        plural="flowschemas",
        kind="FlowSchema",
        namespaced=False,
        has_status=True,
        has_generation=True,
    ),
    # These are stored as they come and never evaluated: only a real server checks rights.
    Kind(
        group="admissionregistration.k8s.io",
        version="v1",
        plural="validatingadmissionpolicies",
        kind="ValidatingAdmissionPolicy",
        namespaced=False,
        has_status=True,
        has_generation=True,
    ),
    Kind(
        group="admissionregistration.k8s.io",
        version="v1",
        plural="validatingadmissionpolicybindings",
        kind="ValidatingAdmissionPolicyBinding",
        namespaced=False,
        has_generation=True,
    ),
    _make_workload(
        "apps", "deployments", "Deployment", "deploy", owns="replicasets.apps", has_scale=True
    ),
    _make_workload("apps", "replicasets", "ReplicaSet", "rs", has_scale=True),
    _make_workload("apps", "statefulsets", "StatefulSet", "sts", has_scale=True),
    _make_workload("apps", "daemonsets", "DaemonSet", "ds"),
    _make_workload("batch", "jobs", "Job"),
    _make_workload("batch", "cronjobs", "CronJob", "cj", owns="jobs.batch"),
    Kind(
        group="scheduling.k8s.io",
        version="v1",
        plural="priorityclasses",
        kind="PriorityClass",
        namespaced=False,
        short_names=("pc",),
        has_generation=True,
    ),
    Kind(
        group="policy",
        version="v1",
        plural="poddisruptionbudgets",
        kind="PodDisruptionBudget",
        short_names=("pdb",),
        has_status=True,
        has_generation=True,
        unconditional_update=False,
    ),
    Kind(
        group="storage.k8s.io",
        version="v1",
        plural="storageclasses",
        kind="StorageClass",
        namespaced=False,
        short_names=("sc",),
        returns_deleted=True,
    ),
    Kind(
        group="storage.k8s.io",
        version="v1",
        plural="csinodes",
        kind="CSINode",
        namespaced=False,
        unconditional_update=False,
        returns_deleted=True,
    ),
    _make_storage("csidrivers", "CSIDriver", namespaced=False),
    _make_storage("csistoragecapacities", "CSIStorageCapacity", namespaced=True),
    _make_storage("volumeattachments", "VolumeAttachment", namespaced=False),
    _make_device_kind("resourceclaims", "ResourceClaim", has_status=True),
    _make_device_kind("resourceclaimtemplates", "ResourceClaimTemplate"),
    _make_device_kind(
        "resourceslices",
        "ResourceSlice",
        namespaced=False,
        has_generation=True,
        fields=("spec.nodeName", "spec.driver"),
    ),
    _make_device_kind("deviceclasses", "DeviceClass", namespaced=False, has_generation=True),
    _make_device_kind("devicetaintrules", "DeviceTaintRule", namespaced=False, has_status=True),
)
