"""The storage of a pod: its claims by name, and the disks that its spec names.

It is the pod's own and no part of its template: the pods of a StatefulSet differ in the names of their claims
only, and are one kind as long as nobody else uses these.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api import in_tree, wire
from scheduler.api.in_tree import Handle

# Of what goes by one name and may be mounted at once only where all mount it to read.
_GCE, _AWS, _RBD, _ISCSI = "gce", "aws", "rbd", "iscsi"


class ClaimName(NamedTuple):
    """A claim of a pod; ``is_own``: it is to be made for this pod alone, and goes with it."""

    name: str
    is_own: bool


class Disk(NamedTuple):
    """A disk that a pod names itself, of a kind that not all pods of a node may share.

    Attributes:
        kind: two disks of different kinds have nothing to do with each other.
        name: what it is called; of an image of Ceph with its pool.
        is_read_only: it is only read.
        monitors: of Ceph: images are the same where they have a monitor in common.
    """

    kind: str
    name: str
    is_read_only: bool
    monitors: frozenset[str] = frozenset()

    def conflicts(self, other: Disk) -> bool:
        """Whether pods on one node cannot have both."""
        if self[:2] != other[:2] or (self.is_read_only and other.is_read_only):
            return False
        return self.kind != _RBD or bool(self.monitors & other.monitors)


class PodVolumes(NamedTuple):
    """All storage of a pod, in the order of its volumes.

    Attributes:
        claims: by name, none twice.
        disks: that may be in the way of others, none twice.
        handles: disks that a CSI driver looks after in the place of the code that they were written for.
    """

    claims: tuple[ClaimName, ...] = ()
    disks: tuple[Disk, ...] = ()
    handles: tuple[Handle, ...] = ()


def of_pod(pod: wire.Pod) -> PodVolumes | None:
    """The storage of a pod, None for most."""
    given = [one for one in pod.spec.volumes or () if one.is_storage]
    if not given:
        return None
    return PodVolumes(
        tuple(dict.fromkeys(claim for one in given if (claim := _claim(pod, one)))),
        tuple(dict.fromkeys(disk for one in given if (disk := _disk(one)))),
        tuple(handle for one in given if (handle := in_tree.handle(one, {}))),
    )


def _claim(pod: wire.Pod, volume: wire.Volume) -> ClaimName | None:
    if volume.persistent_volume_claim is not None:
        return ClaimName(volume.persistent_volume_claim.claim_name, is_own=False)
    if volume.ephemeral is not None:
        return ClaimName(f"{pod.metadata.name}-{volume.name}", is_own=True)
    return None


def _disk(volume: wire.Volume) -> Disk | None:
    if (gce := volume.gce_persistent_disk) is not None:
        return Disk(_GCE, gce.pd_name, gce.read_only)
    if (aws := volume.aws_elastic_block_store) is not None:
        # No two pods of a node may have it, whatever they do with it.
        return Disk(_AWS, aws.volume_id, is_read_only=False)
    if (iscsi := volume.iscsi) is not None:
        return Disk(_ISCSI, iscsi.iqn, iscsi.read_only)
    if (rbd := volume.rbd) is not None:
        return Disk(_RBD, f"{rbd.pool}/{rbd.image}", rbd.read_only, frozenset(rbd.monitors or ()))
    return None
