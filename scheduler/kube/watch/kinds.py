"""Kinds of objects by the names that the API server has for them."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api import names


class Kind(NamedTuple):
    """A kind; ``group`` is empty for the core's."""

    group: str
    version: str
    plural: str

    @property
    def path(self) -> str:
        """Where all objects of the kind are listed and watched."""
        root = f"/apis/{self.group}" if self.group else "/api"
        return f"{root}/{self.version}/{self.plural}"


PODS = Kind("", "v1", "pods")
NODES = Kind("", "v1", "nodes")
SERVICES = Kind("", "v1", "services")
REPLICATION_CONTROLLERS = Kind("", "v1", "replicationcontrollers")
REPLICA_SETS = Kind("apps", "v1", "replicasets")
STATEFUL_SETS = Kind("apps", "v1", "statefulsets")
NAMESPACES = Kind("", "v1", "namespaces")
LIMIT_RANGES = Kind("", "v1", "limitranges")
DEPLOYMENTS = Kind("apps", "v1", "deployments")
DAEMON_SETS = Kind("apps", "v1", "daemonsets")
JOBS = Kind("batch", "v1", "jobs")
CRON_JOBS = Kind("batch", "v1", "cronjobs")
PRIORITY_CLASSES = Kind("scheduling.k8s.io", "v1", "priorityclasses")
BUDGETS = Kind("policy", "v1", "poddisruptionbudgets")
CLAIMS = Kind("", "v1", "persistentvolumeclaims")
VOLUMES = Kind("", "v1", "persistentvolumes")
STORAGE_CLASSES = Kind("storage.k8s.io", "v1", "storageclasses")
CSI_NODES = Kind("storage.k8s.io", "v1", "csinodes")
CSI_DRIVERS = Kind("storage.k8s.io", "v1", "csidrivers")
CSI_CAPACITIES = Kind("storage.k8s.io", "v1", "csistoragecapacities")
ATTACHMENTS = Kind("storage.k8s.io", "v1", "volumeattachments")
# By their names in the API.
STORAGE = {
    "PersistentVolumeClaim": CLAIMS,
    "PersistentVolume": VOLUMES,
    "StorageClass": STORAGE_CLASSES,
    "CSINode": CSI_NODES,
    "CSIDriver": CSI_DRIVERS,
    "CSIStorageCapacity": CSI_CAPACITIES,
    "VolumeAttachment": ATTACHMENTS,
}
POLICIES = Kind(names.GROUP, names.VERSION, names.POLICIES)
