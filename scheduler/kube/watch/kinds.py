"""Kinds of objects by the names that the API server has for them."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api import names


class Kind(NamedTuple):
    """A kind; ``group`` is empty for the core's, ``name`` is what objects say in ``kind``."""

    group: str
    version: str
    plural: str
    name: str

    @property
    def api_version(self) -> str:
        """What objects say in ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        """Where all objects of the kind are listed and watched."""
        root = f"/apis/{self.group}" if self.group else "/api"
        return f"{root}/{self.version}/{self.plural}"


PODS = Kind("", "v1", "pods", "Pod")
NODES = Kind("", "v1", "nodes", "Node")
SERVICES = Kind("", "v1", "services", "Service")
REPLICATION_CONTROLLERS = Kind("", "v1", "replicationcontrollers", "ReplicationController")
REPLICA_SETS = Kind("apps", "v1", "replicasets", "ReplicaSet")
STATEFUL_SETS = Kind("apps", "v1", "statefulsets", "StatefulSet")
NAMESPACES = Kind("", "v1", "namespaces", "Namespace")
LIMIT_RANGES = Kind("", "v1", "limitranges", "LimitRange")
DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment")
DAEMON_SETS = Kind("apps", "v1", "daemonsets", "DaemonSet")
JOBS = Kind("batch", "v1", "jobs", "Job")
CRON_JOBS = Kind("batch", "v1", "cronjobs", "CronJob")
PRIORITY_CLASSES = Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass")
BUDGETS = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
CLAIMS = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Kind("", "v1", "persistentvolumes", "PersistentVolume")
STORAGE_CLASSES = Kind("storage.k8s.io", "v1", "storageclasses", "StorageClass")
CSI_NODES = Kind("storage.k8s.io", "v1", "csinodes", "CSINode")
CSI_DRIVERS = Kind("storage.k8s.io", "v1", "csidrivers", "CSIDriver")
CSI_CAPACITIES = Kind("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity")
ATTACHMENTS = Kind("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment")
# By their names in the API.
STORAGE = {
    kind.name: kind
    for kind in (
        CLAIMS,
        VOLUMES,
        STORAGE_CLASSES,
        CSI_NODES,
        CSI_DRIVERS,
        CSI_CAPACITIES,
        ATTACHMENTS,
    )
}
POLICIES = Kind(names.GROUP, names.VERSION, names.POLICIES, "BalancePolicy")
# What no rule reads, and who plays admission and controllers has to know; see ``snapshot``.
OF_CONTROLLERS = (PRIORITY_CLASSES, LIMIT_RANGES, DEPLOYMENTS, DAEMON_SETS, JOBS, CRON_JOBS)
