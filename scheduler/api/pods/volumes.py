"""The storage of a pod: its claims by name, and the disks that its spec names.

The storage is the pod's own and no part of its template: the pods of a StatefulSet differ only in the names of
their claims, and are of one kind as long as no other pod uses these claims.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api import in_tree, wire
from scheduler.api.in_tree import Handle

# Kinds of disks that several pods of a node may mount only if all of them only read.
_GCE, _AWS, _RBD, _ISCSI = "gce", "aws", "rbd", "iscsi"


class ClaimName(NamedTuple):
    """A claim of a pod; ``is_own``: the claim is made for this pod alone, and is deleted with the pod."""

    name: str
    is_own: bool


class Disk(NamedTuple):
    """A disk that a pod names itself, of a kind that not all pods of a node may share.

    Attributes:
        kind: disks of different kinds never conflict.
        name: its name; for an image of Ceph with its pool.
        is_read_only: the pod only reads it.
        monitors: for Ceph: images are the same if they have a monitor in common.
    """

    kind: str
    name: str
    is_read_only: bool
    monitors: frozenset[str] = frozenset()

    def has_conflict(self, other: Disk) -> bool:
        """Whether pods on one node cannot have both disks."""
        if self[:2] != other[:2] or (self.is_read_only and other.is_read_only):
            return False
        return self.kind != _RBD or bool(self.monitors & other.monitors)


class PodVolumes(NamedTuple):
    """All storage of a pod, in the order of its volumes.

    Attributes:
        claims: its claims, none twice.
        disks: disks that may conflict with those of other pods, none twice.
        handles: disks of in-tree plugins that a CSI driver serves today.
    """

    claims: tuple[ClaimName, ...] = ()
    disks: tuple[Disk, ...] = ()
    handles: tuple[Handle, ...] = ()


def read_volumes(pod: wire.Pod) -> PodVolumes | None:
    """Read the storage of a pod; None for most pods."""
    given = [one for one in pod.spec.volumes or () if one.is_storage]
    if not given:
        return None
    return PodVolumes(
        tuple(dict.fromkeys(claim for one in given if (claim := _read_claim(pod, one)))),
        tuple(dict.fromkeys(disk for one in given if (disk := _read_disk(one)))),
        tuple(handle for one in given if (handle := in_tree.find_handle(one, {}))),
    )


def _read_claim(pod: wire.Pod, volume: wire.Volume) -> ClaimName | None:
    if volume.persistent_volume_claim is not None:
        return ClaimName(volume.persistent_volume_claim.claim_name, is_own=False)
    if volume.ephemeral is not None:
        return ClaimName(f"{pod.metadata.name}-{volume.name}", is_own=True)
    return None


def _read_disk(volume: wire.Volume) -> Disk | None:
    if (gce := volume.gce_persistent_disk) is not None:
        return Disk(_GCE, gce.pd_name, gce.read_only)
    if (aws := volume.aws_elastic_block_store) is not None:
        # No two pods of a node may have it, even if both only read.
        return Disk(_AWS, aws.volume_id, is_read_only=False)
    if (iscsi := volume.iscsi) is not None:
        return Disk(_ISCSI, iscsi.iqn, iscsi.read_only)
    if (rbd := volume.rbd) is not None:
        return Disk(_RBD, f"{rbd.pool}/{rbd.image}", rbd.read_only, frozenset(rbd.monitors or ()))
    return None
