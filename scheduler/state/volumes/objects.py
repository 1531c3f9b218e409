"""Storage objects as the state knows them: parsed, small, never changed."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api import names
from scheduler.api.in_tree import Handle
from scheduler.api.selectors import NodeTerm, Selector

# Namespace and name.
ClaimKey = tuple[str, str]
Terms = tuple[NodeTerm, ...] | None


class Claim(NamedTuple):
    """A PersistentVolumeClaim.

    Attributes:
        version: its ``resourceVersion``.
        volume: the volume that it is or will be bound to; empty for none.
        is_bound: the binding is complete.
        wish: what a volume must be for it.
        selected: the node for which it is to be provisioned, None for none yet.
        is_lost: its volume is no more.
        owner: uid of what made it, empty for none.
    """

    key: ClaimKey
    uid: str
    version: str
    volume: str
    is_bound: bool
    wish: Wish
    selected: str | None
    is_lost: bool
    is_deleting: bool
    owner: str

    @property
    def is_for_one_pod(self) -> bool:
        """Only one pod at a time may use it."""
        return "ReadWriteOncePod" in self.wish.modes


class Wish(NamedTuple):
    """What a claim asks of a volume.

    Attributes:
        of_class: the name of the class.
        request: bytes, None where it asks none.
        modes: ways to access it, sorted.
        selector: of the labels of volumes; None takes any.
        mode: ``Filesystem`` or ``Block``.
        attributes: the name of its VolumeAttributesClass, empty for none.
    """

    of_class: str
    request: int | None
    modes: tuple[str, ...]
    selector: Selector | None
    mode: str
    attributes: str

    @property
    def bytes(self) -> int:
        """What it asks, 0 where it asks none."""
        return self.request or 0


class Zone(NamedTuple):
    """A label of a volume that tells where it is, and the values that nodes may have."""

    key: str
    values: frozenset[str]


class Volume(NamedTuple):
    """A PersistentVolume.

    Attributes:
        capacity: bytes.
        handle: as its CSI driver knows it, None for a volume of none.
        plugin: of a volume that a driver looks after in the place of older code, the name of that; else empty.
        claim: namespace, name and uid of the claim that it is for, None for none; the uid may be empty.
        is_free: it may be given to any claim.
        affinity: which nodes can use it, None for all; ``moved_affinity``: likewise on nodes where the driver
            looks after it in the place of older code.
        zones: where it is, by its labels.
    """

    name: str
    version: str
    capacity: int
    handle: Handle | None
    plugin: str
    modes: frozenset[str]
    claim: tuple[str, str, str] | None
    of_class: str
    mode: str
    attributes: str
    is_free: bool
    is_deleting: bool
    affinity: Terms
    moved_affinity: Terms
    zones: tuple[Zone, ...]
    labels: dict[str, str]

    @property
    def claim_key(self) -> ClaimKey | None:
        """Namespace and name of the claim that it is for."""
        return self.claim[:2] if self.claim else None

    def is_for(self, claim: Claim) -> bool:
        """Whether it is for just this claim."""
        return (
            self.claim is not None
            and self.claim[:2] == claim.key
            and self.claim[2] in {"", claim.uid}
        )


class Class(NamedTuple):
    """A StorageClass.

    Attributes:
        topologies: where its volumes can be made, None for everywhere.
        has_mode: it says when its claims are bound, as every class that an API server has does.
    """

    name: str
    provisioner: str
    waits: bool
    topologies: Terms
    has_mode: bool = True

    @property
    def provisions(self) -> bool:
        """Whether volumes of it can be made."""
        return self.provisioner not in {"", names.NO_PROVISIONER}


class NodeDrivers(NamedTuple):
    """What CSINode says of a node.

    Attributes:
        limits: the most volumes by driver, None for no limit.
        moved: the old provisioners whose volumes drivers look after there.
    """

    node: str
    limits: dict[str, int | None]
    moved: frozenset[str]


class Driver(NamedTuple):
    """A CSIDriver.

    Attributes:
        tells_capacity: it says where there is room for volumes.
        must_be_there: a pod with a volume of it may only go where it runs.
    """

    name: str
    tells_capacity: bool
    must_be_there: bool


class Capacity(NamedTuple):
    """A CSIStorageCapacity.

    Attributes:
        nodes: for which nodes it speaks, None for none.
        room: bytes that are left, None where it does not say.
        largest: the most bytes of one volume, None where it says nothing of them.
    """

    key: tuple[str, str]
    of_class: str
    nodes: Selector | None
    room: int | None
    largest: int | None


class Attachment(NamedTuple):
    """A VolumeAttachment of a PersistentVolume."""

    name: str
    driver: str
    node: str
    volume: str


Stored = Claim | Volume | Class | NodeDrivers | Driver | Capacity | Attachment
