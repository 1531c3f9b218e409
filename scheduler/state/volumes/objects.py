"""Storage objects as the state knows them: parsed, small and immutable."""

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
        wish: what the claim asks of a volume.
        selected: the node for which a volume is to be provisioned, None for none yet.
        is_lost: its volume is gone.
        owner: uid of the object that made it, empty for none.
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
        """Whether only one pod at a time may use it."""
        return "ReadWriteOncePod" in self.wish.modes


class Wish(NamedTuple):
    """What a claim asks of a volume.

    Attributes:
        of_class: the name of the storage class.
        request: bytes, None where it asks none.
        modes: access modes, sorted.
        selector: selects volumes by their labels; None selects all.
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
        """The requested bytes, 0 where it asks none."""
        return self.request or 0


class Zone(NamedTuple):
    """A label that tells where a volume is, and the values that a node may have."""

    key: str
    values: frozenset[str]


class Volume(NamedTuple):
    """A PersistentVolume.

    Attributes:
        capacity: bytes.
        handle: the volume as its CSI driver knows it, None for a volume without a driver.
        plugin: the name of the in-tree plugin in whose place a driver serves the volume; else empty.
        claim: namespace, name and uid of the claim for which the volume is reserved, None for none; the uid may be empty.
        is_free: any claim may be bound to it.
        affinity: which nodes can use it, None for all.
        moved_affinity: the same for nodes where a driver serves it in the place of the in-tree plugin.
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
        """Namespace and name of the claim for which the volume is reserved."""
        return self.claim[:2] if self.claim else None

    def is_for(self, claim: Claim) -> bool:
        """Whether the volume is reserved for just this claim."""
        return (
            self.claim is not None
            and self.claim[:2] == claim.key
            and self.claim[2] in {"", claim.uid}
        )


class Class(NamedTuple):
    """A StorageClass.

    Attributes:
        waits: its claims are bound only when a pod uses them (``WaitForFirstConsumer``).
        topologies: where its volumes can be made, None for everywhere.
        has_mode: it says when its claims are bound; every class of an API server does.
    """

    name: str
    provisioner: str
    waits: bool
    topologies: Terms
    has_mode: bool = True

    @property
    def provisions(self) -> bool:
        """Whether volumes of this class can be made."""
        return self.provisioner not in {"", names.NO_PROVISIONER}


class NodeDrivers(NamedTuple):
    """What CSINode says of a node.

    Attributes:
        limits: the most volumes by driver, None for no limit.
        moved: the names of the in-tree plugins whose volumes drivers serve on the node.
    """

    node: str
    limits: dict[str, int | None]
    moved: frozenset[str]


class Driver(NamedTuple):
    """A CSIDriver.

    Attributes:
        tells_capacity: it reports where there is room for volumes.
        must_be_there: a pod with a volume of the driver may only go where the driver runs.
    """

    name: str
    tells_capacity: bool
    must_be_there: bool


class Capacity(NamedTuple):
    """A CSIStorageCapacity.

    Attributes:
        nodes: selects the nodes that it is about, None for none.
        room: the bytes that are left, None where it does not say.
        largest: the most bytes of one volume, None where it does not say.
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
