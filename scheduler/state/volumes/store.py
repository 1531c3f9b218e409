"""All storage objects by name, and what was decided of claims and volumes ahead of the API server.

A decision is part of the record of a pod that is assumed (``PodRecord.given``): it holds as long as the pod is
charged to its node, so trials and failed binds take it back like any charge.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

from scheduler.api import in_tree, storage
from scheduler.api.in_tree import Handle
from scheduler.errors import BadInput
from scheduler.state.nodes import NodeTable
from scheduler.state.structures.changes import Log
from scheduler.state.volumes import reading
from scheduler.state.volumes.objects import (
    Attachment,
    Capacity,
    Claim,
    ClaimKey,
    Class,
    Driver,
    Stored,
    Volume,
)
from scheduler.state.volumes.uses import Uses

if TYPE_CHECKING:
    from scheduler.state.pods import PodRecord

_NOBODY: frozenset[str] = frozenset()
# The kinds that say how much room there is: no other object says it.
_LIMITING = frozenset({"CSIDriver", "CSINode"})


class Waking(NamedTuple):
    """The pods that a change could help: these, or ``all`` pods that have storage."""

    pods: Collection[str] = _NOBODY
    all: bool = False


class Storage:
    """Claims, volumes, classes, drivers and capacities, and how they belong together.

    Attributes:
        uses: what is used on which node.
        changed: names of volumes that may be for others than before, or for none.
        versions: by kind, and by class as ``(CSIStorageCapacity, class)``: rises when any of them is another.
        labelled: rows whose nodes came, went or have other labels.
        n_helpful: rises when pods that wait may find room, beyond those that name what has changed.
        judged: what rules have found out of nodes, for as long as somebody has it.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self.uses = Uses(nodes)
        self.claims: dict[ClaimKey, Claim] = {}
        self.volumes: dict[str, Volume] = {}
        self.classes: dict[str, Class] = {}
        self.drivers: dict[str, Driver] = {}
        self.capacities: dict[tuple[str, str], Capacity] = {}
        self._attachments: dict[str, Attachment] = {}
        # Every pod that names a claim, with a node or without.
        self._users: dict[ClaimKey, set[str]] = {}
        # Volumes by the claim that they are for, and claims by the volume that they name.
        self._volumes_for: defaultdict[ClaimKey, set[str]] = defaultdict(set)
        self._claims_of: defaultdict[str, set[ClaimKey]] = defaultdict(set)
        self._attached: defaultdict[str, set[str]] = defaultdict(set)
        self._free: defaultdict[str, set[str]] = defaultdict(set)
        # The decisions: by volume the claim, by claim the node, each with the number of pods that rely on it.
        self._taken: dict[str, tuple[ClaimKey, int]] = {}
        self._taken_for: defaultdict[ClaimKey, set[str]] = defaultdict(set)
        self._selected: dict[ClaimKey, tuple[str, int]] = {}
        self.changed: Log[str] = Log()
        self.labelled: Log[int] = Log()
        self.versions: Counter[object] = Counter()
        self.n_helpful = 0
        self.judged: WeakValueDictionary[Any, Any] = WeakValueDictionary()

    # Pods.

    def note_claims(self, pod: PodRecord, sign: int) -> None:
        """Note the claims of a pod that appeared (1) or is gone (-1)."""
        for claim in pod.volumes.claims if pod.volumes else ():
            key = pod.namespace, claim.name
            users = self._users.setdefault(key, set())
            if sign > 0:
                users.add(pod.uid)
            else:
                users.discard(pod.uid)
            if not users:
                del self._users[key]

    def list_users(self, claim: ClaimKey) -> Collection[str]:
        """List the uids of the pods that name a claim."""
        return self._users.get(claim, _NOBODY)

    def follow_pod(self, pod: PodRecord, row: int, sign: int) -> None:
        """Note that a pod came to a node (1), or left it (-1), with what its claims are given there."""
        if pod.volumes is None:
            return
        self.uses.follow_pod(pod, row, sign)
        self.n_helpful += bool(pod.given) and sign < 0
        for given in pod.given:
            key = pod.namespace, given.claim
            if given.volume:
                self._count(self._taken, given.volume, key, sign)
                if given.volume in self._taken:
                    self._taken_for[key].add(given.volume)
                else:
                    _drop(self._taken_for, key, given.volume)
                self._place(given.volume)
            else:
                self._count(self._selected, key, pod.node, sign)

    @staticmethod
    def _count(of: dict[Any, tuple[Any, int]], key: Any, value: Any, sign: int) -> None:
        n = of.get(key, (value, 0))[1] + sign
        if n:
            of[key] = value, n
        else:
            del of[key]

    # What decisions ask.

    def find_selected_node(self, claim: Claim) -> str | None:
        """Return the node for which a claim is or will be provisioned; None for none."""
        decided = self._selected.get(claim.key)
        return decided[0] if decided else claim.selected

    def list_volumes(self, claim: Claim) -> list[str]:
        """List the names of the volumes that are for a claim, by the API server or by a decision."""
        told = (
            name
            for name in self._volumes_for.get(claim.key, ())
            if name not in self._taken and self.volumes[name].is_for(claim)
        )
        return sorted({*told, *self._taken_for.get(claim.key, ())})

    def list_free(self, of_class: str) -> Collection[str]:
        """List the volumes of a class that any claim may have."""
        return self._free.get(of_class, _NOBODY)

    def waits(self, claim: Claim) -> bool:
        """Whether a claim is to be bound only when a pod uses it."""
        found = self.classes.get(claim.wish.of_class)
        return found is not None and found.waits

    def list_of_kind(self, kind: str) -> list[tuple[str, str]]:
        """List the namespace and name of all objects of a kind."""
        table = self._table(kind)
        return [key if isinstance(key, tuple) else ("", key) for key in table]

    # What is told.

    def see(self, given: storage.StorageObject) -> Waking:
        """Add an object or its new state; a malformed object counts as gone, as no API server accepts it."""
        kind, meta = type(given).__name__, given.metadata
        try:
            found = reading.read_object(given)
        except BadInput:
            return self.drop_object(kind, meta.namespace, meta.name)
        return self._helpful(self._put(kind, (meta.namespace, meta.name), found))

    def drop_object(self, kind: str, namespace: str, name: str) -> Waking:
        """Drop an object that was deleted."""
        return self._helpful(self._put(kind, (namespace, name), None))

    def _helpful(self, waking: Waking) -> Waking:
        self.n_helpful += waking.all
        return waking

    def _put(self, kind: str, key: tuple[str, str], new: Any) -> Waking:
        match kind:
            case "PersistentVolumeClaim":
                return self._put_claim(key, new)
            case "PersistentVolume":
                return self._put_volume(key[1], new)
            case "VolumeAttachment":
                return self._put_attachment(key[1], new)
        table = self._table(kind)
        place = key if kind == "CSIStorageCapacity" else key[1]
        old = table.get(place)
        if old == new:
            return Waking()
        if kind == "CSINode":
            self.uses.take_in(key[1], new)
        elif new is not None:
            table[place] = new
        else:
            del table[place]
        return self._other(kind, key, old, new)

    def _other(
        self, kind: str, key: tuple[str, str], old: Stored | None, new: Stored | None
    ) -> Waking:
        """What nodes are judged by is another."""
        self.versions[kind] += 1
        for one in (old, new):
            if isinstance(one, Capacity):
                self.versions[kind, one.of_class] += 1
        if kind == "StorageClass":
            self._know_all_of(key[1])
        return Waking(all=new is not None or kind in _LIMITING)

    def _table(self, kind: str) -> dict[Any, Any]:
        tables: Mapping[str, dict[Any, Any]] = {
            "PersistentVolumeClaim": self.claims,
            "PersistentVolume": self.volumes,
            "StorageClass": self.classes,
            "CSINode": self.uses.drivers,
            "CSIDriver": self.drivers,
            "CSIStorageCapacity": self.capacities,
            "VolumeAttachment": self._attachments,
        }
        return tables[kind]

    def _put_claim(self, key: ClaimKey, new: Claim | None) -> Waking:
        old = self.claims.pop(key, None)
        if old is not None and old.volume:
            _drop(self._claims_of, old.volume, key)
        if new is not None:
            self.claims[key] = new
            if new.volume:
                self._claims_of[new.volume].add(key)
        self._know(key)
        return Waking() if _same(old, new) else Waking(self.list_users(key))

    def _put_volume(self, name: str, new: Volume | None) -> Waking:
        old = self.volumes.pop(name, None)
        if old is not None:
            _drop(self._free, old.of_class, name)
            _drop(self._volumes_for, old.claim_key, name)
        if new is not None:
            self.volumes[name] = new
            if new.claim_key is not None:
                self._volumes_for[new.claim_key].add(name)
        self._place(name)
        for key in list(self._claims_of.get(name, ())):
            self._know(key)
        for attachment in list(self._attached.get(name, ())):
            self._attach(self._attachments[attachment], old, -1)
            self._attach(self._attachments[attachment], new, 1)
        if old is not None and new is not None and not (old.is_free or new.is_free):
            # Labels are what claims select by, and its claim is chosen. Where it is was read of them already.
            old = old._replace(labels=new.labels)
        return Waking() if new is None or _same(old, new) else self._woken_by(name, new)

    def _woken_by(self, name: str, new: Volume) -> Waking:
        """Whose claims are bound to a volume, or may be."""
        users = {uid for key in self._claims_of.get(name, ()) for uid in self.list_users(key)}
        if new.claim_key is not None:
            users.update(self.list_users(new.claim_key))
        return Waking(users, all=new.is_free)

    def _put_attachment(self, name: str, new: Attachment | None) -> Waking:
        old = self._attachments.pop(name, None)
        if old is not None:
            _drop(self._attached, old.volume, name)
            self._attach(old, self.volumes.get(old.volume), -1)
        if new is not None:
            self._attachments[name] = new
            self._attached[new.volume].add(name)
            self._attach(new, self.volumes.get(new.volume), 1)
        return Waking(all=new is None)

    def _attach(self, attachment: Attachment, volume: Volume | None, sign: int) -> None:
        handle = _attached_as(attachment, volume)
        if handle is not None:
            self.uses.attach(attachment.node, handle, sign)

    def _place(self, name: str) -> None:
        """Whether a volume is free is known anew."""
        volume = self.volumes.get(name)
        if volume is not None:
            if volume.is_free and name not in self._taken:
                self._free[volume.of_class].add(name)
            else:
                _drop(self._free, volume.of_class, name)
        self.changed.add(name)

    # What claims are for their drivers.

    def _know(self, key: ClaimKey) -> None:
        claim = self.claims.get(key)
        self.uses.note_handle(key, self.find_handle(claim) if claim is not None else None)

    def _know_all_of(self, name: str) -> None:
        for key, claim in self.claims.items():
            if claim.wish.of_class == name:
                self._know(key)

    def find_handle(self, claim: Claim) -> Handle | None:
        """What a claim is for its driver: its volume, or one that is to be made; None where nobody counts it."""
        volume = self.volumes.get(claim.volume) if claim.volume else None
        if volume is not None:
            return volume.handle
        found = self.classes.get(claim.wish.of_class)
        if found is None or found.provisioner in in_tree.UNCOUNTED:
            return None
        driver = in_tree.DRIVERS.get(found.provisioner, found.provisioner)
        # No handle of a driver's has such a name.
        return Handle(driver, "\0" + "/".join(claim.key)) if driver else None

    def is_moved(self, claim: Claim) -> bool:
        """Whether a driver looks after a claim's volume in the place of older code."""
        volume = self.volumes.get(claim.volume) if claim.volume else None
        if volume is not None:
            return bool(volume.plugin)
        found = self.classes.get(claim.wish.of_class)
        return found is not None and found.provisioner in in_tree.DRIVERS

    # For checks.

    def list_attached(self) -> Iterator[tuple[str, Handle]]:
        """List which volume is attached to which node."""
        for one in self._attachments.values():
            found = _attached_as(one, self.volumes.get(one.volume))
            if found is not None:
                yield one.node, found

    def list_given(self) -> set[tuple[str, str, str]]:
        """Namespace and name of each claim of which something is decided, and the volume, or the node for one."""
        volumes = {(*key, name) for name, (key, _) in self._taken.items()}
        return volumes | {(*key, node) for key, (node, _) in self._selected.items()}

    # Nodes.

    def add_node(self, name: str, row: int) -> None:
        """Note that a node was given a row."""
        self.uses.add_node(name, row)
        self.labelled.add(row)

    def drop_node(self, name: str, row: int) -> None:
        """Note that a node gives its row back."""
        self.uses.drop_node(name, row)
        self.labelled.add(row)

    def list_capacities(self, of_class: str) -> Iterator[Capacity]:
        """List the reported capacities for volumes of a class, by name."""
        for key in sorted(self.capacities):
            if self.capacities[key].of_class == of_class:
                yield self.capacities[key]


def _attached_as(attachment: Attachment, volume: Volume | None) -> Handle | None:
    """What is counted of an attachment: only of volumes that were made for a driver is anything."""
    if volume is None or volume.handle is None or volume.plugin:
        return None
    if not attachment.driver or not attachment.node:
        return None
    return Handle(attachment.driver, volume.handle.volume)


def _same(old: Claim | Volume | None, new: Claim | Volume | None) -> bool:
    """Whether two states of an object are equal except for their versions."""
    return old is not None and new is not None and old._replace(version=new.version) == new


def _drop(of: defaultdict[Any, set[Any]], key: Any, value: Any) -> None:
    there = of.get(key)
    if there is not None:
        there.discard(value)
        if not there:
            del of[key]
