"""In-tree volumes, and the CSI drivers that serve them today.

Source: csi-translation-lib of Kubernetes 1.37, as far as kube-scheduler asks it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from scheduler.api import names, selectors, wire
from scheduler.api.disks import Disks
from scheduler.api.selectors import NodeTerm, Requirement

# The drivers by the names of the old provisioners. What is not here is never counted by driver.
DRIVERS = {
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
# Theirs was moved as well, but nodes count nothing of it.
UNCOUNTED = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})
# The label of nodes by which a driver knows zones.
_ZONE_KEYS = {
    "kubernetes.io/gce-pd": "topology.gke.io/zone",
    "kubernetes.io/aws-ebs": "topology.ebs.csi.aws.com/zone",
    "kubernetes.io/cinder": "topology.cinder.csi.openstack.org/zone",
}
_UNSPECIFIED = "UNSPECIFIED"
_EBS_ID = re.compile(r"^vol-[^/]*$")
_DELIMITER = "__"


class Handle(NamedTuple):
    """A volume as its driver knows it."""

    driver: str
    volume: str


class Moved(NamedTuple):
    """A volume of an old provisioner, and where it is today."""

    plugin: str
    handle: Handle


def handle(disks: Disks, labels: Mapping[str, str]) -> Handle | None:
    """A volume as a driver knows it; ``labels`` are those of a PersistentVolume."""
    found = moved(disks, labels)
    return found.handle if found else None


def moved(disks: Disks, labels: Mapping[str, str]) -> Moved | None:
    """What a driver looks after by now, None for any other and for what cannot be told."""
    plugin, volume = _read(disks, labels)
    return Moved(plugin, Handle(DRIVERS[plugin], volume)) if volume else None


def _read(disks: Disks, labels: Mapping[str, str]) -> tuple[str, str]:
    if (gce := disks.gce_persistent_disk) is not None:
        return "kubernetes.io/gce-pd", _gce(gce.pd_name, labels)
    if (aws := disks.aws_elastic_block_store) is not None:
        return "kubernetes.io/aws-ebs", _ebs(aws.volume_id)
    if (azure := disks.azure_disk) is not None:
        is_managed = azure.kind.lower() in {"", "managed"}
        return "kubernetes.io/azure-disk", azure.disk_uri if is_managed else ""
    if (cinder := disks.cinder) is not None:
        return "kubernetes.io/cinder", cinder.volume_id
    if (portworx := disks.portworx_volume) is not None:
        return "kubernetes.io/portworx-volume", portworx.volume_id
    return "", ""


def _gce(disk: str, labels: Mapping[str, str]) -> str:
    zones = (labels.get(names.OLD_ZONE) or labels.get(names.ZONE, "")).split(_DELIMITER)
    if len(zones) == 1:
        return f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{disk}"
    regions = {zone.rpartition("-")[0] for zone in zones}
    if len(regions) != 1 or any(zone.count("-") != 2 for zone in zones):
        return ""
    return f"projects/{_UNSPECIFIED}/regions/{regions.pop()}/disks/{disk}"


def _ebs(volume: str) -> str:
    if not volume.startswith("aws://"):
        return volume
    try:
        path = urlsplit(volume).path.strip("/")
    except ValueError:
        return ""
    return path if _EBS_ID.match(path) else ""


def affinity(
    plugin: str, terms: wire.NodeTerms | None, labels: Mapping[str, str]
) -> tuple[NodeTerm, ...] | None:
    """Where a volume may be used from on nodes whose driver looks after it: zones have another label there."""
    own = None if terms is None else selectors.node_terms(terms.node_selector_terms or ())
    key = _ZONE_KEYS.get(plugin)
    if key is None:
        return own
    found = own or ()
    zone, region = _labels(found, labels)
    if any(one.key == zone for term in found for one in term.labels):
        found = tuple(_renamed(term, zone, key) for term in found)
    elif zones := [part.strip() for part in labels.get(zone, "").split(_DELIMITER) if part.strip()]:
        asked = Requirement(key, "In", tuple(sorted(set(zones))))
        found = tuple(
            term._replace(labels=(*term.labels, asked)) for term in found or (NodeTerm(),)
        )
    elif own is None:
        return None
    if region == names.OLD_REGION:
        found = tuple(_renamed(term, region, names.REGION) for term in found)
    return found


def _labels(terms: tuple[NodeTerm, ...], labels: Mapping[str, str]) -> tuple[str, str]:
    """The labels by which a volume tells its zone and region: the old ones only where it has no new ones."""
    asked = {one.key for term in terms for one in term.labels}
    for there in (asked, labels):
        if names.ZONE in there:
            return names.ZONE, names.REGION
        if names.OLD_ZONE in there:
            return names.OLD_ZONE, names.OLD_REGION
    return names.ZONE, names.REGION


def _renamed(term: NodeTerm, old: str, new: str) -> NodeTerm:
    return term._replace(
        labels=tuple(one._replace(key=new) if one.key == old else one for one in term.labels)
    )
