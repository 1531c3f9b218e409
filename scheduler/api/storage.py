"""The parts of storage objects that Evenkeel reads: claims, volumes, classes, and the objects of CSI drivers."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from scheduler.api import names
from scheduler.api.disks import Disks
from scheduler.api.wire import LabelSelector, NodeTerms, Object, Quantities, Resources


class _Part(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    """A part of an object."""


class ClaimSpec(_Part):
    """``spec`` of a PersistentVolumeClaim."""

    access_modes: list[str] | None = None
    selector: LabelSelector | None = None
    resources: Resources | None = None
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class Phase(_Part):
    """``status`` of a claim or a volume."""

    phase: str = ""


class PersistentVolumeClaim(Object):
    """A claim to a volume."""

    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: Phase = msgspec.field(default_factory=Phase)


class CsiSource(_Part):
    """``spec.csi`` of a PersistentVolume."""

    driver: str = ""
    volume_handle: str = ""


class ClaimReference(_Part):
    """``spec.claimRef`` of a PersistentVolume."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(_Part):
    """``spec.nodeAffinity`` of a PersistentVolume."""

    required: NodeTerms | None = None


class VolumeSpec(Disks):
    """``spec`` of a PersistentVolume."""

    capacity: Quantities | None = None
    access_modes: list[str] | None = None
    csi: CsiSource | None = None
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolume(Object):
    """A volume that exists."""

    spec: VolumeSpec = msgspec.field(default_factory=VolumeSpec)
    status: Phase = msgspec.field(default_factory=Phase)


class TopologyRequirement(_Part):
    """A label and its values."""

    key: str = ""
    values: list[str] | None = None


class TopologyTerm(_Part):
    """A TopologySelectorTerm: everything in it must hold."""

    match_label_expressions: list[TopologyRequirement] | None = None


class StorageClass(Object):
    """A storage class."""

    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologyTerm] | None = None


class VolumeLimit(_Part):
    """The most volumes of a driver that a node takes."""

    count: int | None = None


class NodeDriver(_Part):
    """``spec.drivers[]`` of a CSINode."""

    name: str = ""
    allocatable: VolumeLimit | None = None


class NodeDrivers(_Part):
    """``spec`` of a CSINode."""

    drivers: list[NodeDriver] | None = None


class CSINode(Object):
    """The CSI drivers of a node."""

    spec: NodeDrivers = msgspec.field(default_factory=NodeDrivers)


class DriverSpec(_Part):
    """``spec`` of a CSIDriver."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Object):
    """A CSI driver."""

    spec: DriverSpec = msgspec.field(default_factory=DriverSpec)


class CSIStorageCapacity(Object):
    """How much storage of a class there is for some nodes."""

    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None


class AttachedSource(_Part):
    """``spec.source`` of a VolumeAttachment."""

    persistent_volume_name: str | None = None


class AttachmentSpec(_Part):
    """``spec`` of a VolumeAttachment."""

    attacher: str = ""
    node_name: str = ""
    source: AttachedSource = msgspec.field(default_factory=AttachedSource)


class VolumeAttachment(Object):
    """A volume that is to be attached to a node."""

    spec: AttachmentSpec = msgspec.field(default_factory=AttachmentSpec)


StorageObject = (
    PersistentVolumeClaim | PersistentVolume | StorageClass | CSINode | CSIDriver
    | CSIStorageCapacity | VolumeAttachment
)  # fmt: skip
# By the names of the kinds.
KINDS: dict[str, type[StorageObject]] = {
    kind.__name__: kind
    for kind in (
        PersistentVolumeClaim, PersistentVolume, StorageClass, CSINode, CSIDriver,
        CSIStorageCapacity, VolumeAttachment,
    )
}  # fmt: skip


def find_class(one: PersistentVolumeClaim | PersistentVolume) -> str:
    """Find the class of a claim or a volume; an old annotation, even an empty one, goes before the field."""
    annotated = (one.metadata.annotations or {}).get(names.STORAGE_CLASS)
    return (one.spec.storage_class_name or "") if annotated is None else annotated


class Given(NamedTuple):
    """What a claim of a pod is to get: a volume that exists, or, if ``volume`` is empty, a new one for the pod's node."""

    claim: str
    volume: str = ""
