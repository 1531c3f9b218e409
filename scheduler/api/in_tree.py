"""In-tree volumes, and the CSI drivers that serve them today.

Source: csi-translation-lib of Kubernetes 1.37, as far as kube-scheduler uses it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from scheduler.api import names, selectors, wire
from scheduler.api.disks import Disks
from scheduler.api.selectors import NodeTerm, Requirement

# The drivers by the names of the in-tree plugins. Volumes of other plugins are never counted by driver.
DRIVERS = {
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
# Their volumes moved to drivers as well, but nodes do not count them.
UNCOUNTED = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})
# The label of nodes that names the zone for a driver.
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
    """A volume of an in-tree plugin, and its handle at the driver that serves it today."""

    plugin: str
    handle: Handle


def find_handle(disks: Disks, labels: Mapping[str, str]) -> Handle | None:
    """Find the handle of a volume at its driver; ``labels`` are those of a PersistentVolume."""
    found = find_moved(disks, labels)
    return found.handle if found else None


def find_moved(disks: Disks, labels: Mapping[str, str]) -> Moved | None:
    """Find the volume that a driver serves today; None for any other volume, and for one with unclear names or labels."""
    plugin, volume = _read_volume(disks, labels)
    return Moved(plugin, Handle(DRIVERS[plugin], volume)) if volume else None


def _read_volume(disks: Disks, labels: Mapping[str, str]) -> tuple[str, str]:
    if (gce := disks.gce_persistent_disk) is not None:
        return "kubernetes.io/gce-pd", _make_gce_name(gce.pd_name, labels)
    if (aws := disks.aws_elastic_block_store) is not None:
        return "kubernetes.io/aws-ebs", _read_ebs(aws.volume_id)
    if (azure := disks.azure_disk) is not None:
        is_managed = azure.kind.lower() in {"", "managed"}
        return "kubernetes.io/azure-disk", azure.disk_uri if is_managed else ""
    if (cinder := disks.cinder) is not None:
        return "kubernetes.io/cinder", cinder.volume_id
    if (portworx := disks.portworx_volume) is not None:
        return "kubernetes.io/portworx-volume", portworx.volume_id
    return "", ""


def _make_gce_name(disk: str, labels: Mapping[str, str]) -> str:
    zones = (labels.get(names.OLD_ZONE) or labels.get(names.ZONE, "")).split(_DELIMITER)
    if len(zones) == 1:
        return f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{disk}"
    regions = {zone.rpartition("-")[0] for zone in zones}
    if len(regions) != 1 or any(zone.count("-") != 2 for zone in zones):
        return ""
    return f"projects/{_UNSPECIFIED}/regions/{regions.pop()}/disks/{disk}"


def _read_ebs(volume: str) -> str:
    if not volume.startswith("aws://"):
        return volume
    try:
        path = urlsplit(volume).path.strip("/")
    except ValueError:
        return ""
    return path if _EBS_ID.match(path) else ""


def move_affinity(
    plugin: str, terms: wire.NodeTerms | None, labels: Mapping[str, str]
) -> tuple[NodeTerm, ...] | None:
    """Return where a volume may be used on nodes whose driver serves it: zones have another label there."""
    own = None if terms is None else selectors.read_node_terms(terms.node_selector_terms or ())
    key = _ZONE_KEYS.get(plugin)
    if key is None:
        return own
    found = own or ()
    zone, region = _find_zone_labels(found, labels)
    if any(one.key == zone for term in found for one in term.labels):
        found = tuple(_rename_label(term, zone, key) for term in found)
    elif zones := [part.strip() for part in labels.get(zone, "").split(_DELIMITER) if part.strip()]:
        asked = Requirement(key, "In", tuple(sorted(set(zones))))
        found = tuple(
            term._replace(labels=(*term.labels, asked)) for term in found or (NodeTerm(),)
        )
    elif own is None:
        return None
    if region == names.OLD_REGION:
        found = tuple(_rename_label(term, region, names.REGION) for term in found)
    return found


def _find_zone_labels(terms: tuple[NodeTerm, ...], labels: Mapping[str, str]) -> tuple[str, str]:
    """Find the labels that name the zone and region of a volume: the old labels only if it has no new ones."""
    asked = {one.key for term in terms for one in term.labels}
    for there in (asked, labels):
        if names.ZONE in there:
            return names.ZONE, names.REGION
        if names.OLD_ZONE in there:
            return names.OLD_ZONE, names.OLD_REGION
    return names.ZONE, names.REGION


def _rename_label(term: NodeTerm, old: str, new: str) -> NodeTerm:
    return term._replace(
        labels=tuple(one._replace(key=new) if one.key == old else one for one in term.labels)
    )
