"""All storage objects by name, and decisions about claims and volumes that the API server does not have yet.

A decision is part of the record of an assumed pod (``PodRecord.given``). It holds as long as the pod is charged to
its node, so trials and failed binds undo it like any charge.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
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
# The kinds without which the room on a node is unknown.
_LIMITING = frozenset({"CSIDriver", "CSINode"})


class Waking(NamedTuple):
    """The pods that a change could help: these, or ``all`` pods that have storage."""

    pods: Collection[str] = _NOBODY
    all: bool = False


class Storage:
    """Claims, volumes, classes, drivers and capacities, and the links between them.

    Attributes:
        uses: which volumes are used on which node.
        changed: names of volumes that may be reserved for other claims than before, or for none.
        versions: by kind, and by class as ``(CSIStorageCapacity, class)``: rises when an object of the kind changes.
        labelled: rows of nodes that came, went or changed their labels.
        n_helpful: rises when waiting pods may find room, beside the pods that name the changed object.
        judged: verdicts of rules about nodes, kept as long as they are in use.
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
        # Volumes by the claim that they are reserved for, and claims by the volume that they name.
        self._volumes_for: defaultdict[ClaimKey, set[str]] = defaultdict(set)
        self._claims_of: defaultdict[str, set[ClaimKey]] = defaultdict(set)
        self._attached: defaultdict[str, set[str]] = defaultdict(set)
        self._free: defaultdict[str, set[str]] = defaultdict(set)
        # The decisions: the claim by volume, and the node by claim, each with the number of pods that rely on it.
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

    def ignores(self, pods: Sequence[PodRecord]) -> bool:
        """Whether none of these pods has volumes."""
        return all(pod.volumes is None for pod in pods)

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

    # Lookups for decisions.

    def find_selected_node(self, claim: Claim) -> str | None:
        """Return the node for which a claim is or will be provisioned; None for none."""
        decided = self._selected.get(claim.key)
        return decided[0] if decided else claim.selected

    def list_volumes(self, claim: Claim) -> list[str]:
        """List the names of the volumes that are reserved for a claim, by the API server or by a decision."""
        told = (
            name
            for name in self._volumes_for.get(claim.key, ())
            if name not in self._taken and self.volumes[name].is_for(claim)
        )
        return sorted({*told, *self._taken_for.get(claim.key, ())})

    def list_free(self, of_class: str) -> Collection[str]:
        """List the volumes of a class to which any claim may be bound."""
        return self._free.get(of_class, _NOBODY)

    def waits(self, claim: Claim) -> bool:
        """Whether a claim is bound only when a pod uses it."""
        found = self.classes.get(claim.wish.of_class)
        return found is not None and found.waits

    def list_of_kind(self, kind: str) -> list[tuple[str, str]]:
        """List the namespace and name of all objects of a kind."""
        table = self._find_table(kind)
        return [key if isinstance(key, tuple) else ("", key) for key in table]

    # Objects of the API server.

    def see(self, given: storage.StorageObject) -> Waking:
        """Add an object or its new state; a malformed object counts as gone, as no API server accepts it."""
        kind, meta = type(given).__name__, given.metadata
        try:
            found = reading.read_object(given)
        except BadInput:
            return self.drop_object(kind, meta.namespace, meta.name)
        return self._note_helpful(self._put(kind, (meta.namespace, meta.name), found))

    def drop_object(self, kind: str, namespace: str, name: str) -> Waking:
        """Drop an object that was deleted."""
        return self._note_helpful(self._put(kind, (namespace, name), None))

    def _note_helpful(self, waking: Waking) -> Waking:
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
        table = self._find_table(kind)
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
        return self._note_other(kind, key, old, new)

    def _note_other(
        self, kind: str, key: tuple[str, str], old: Stored | None, new: Stored | None
    ) -> Waking:
        """Note that an object that rules about nodes read has changed."""
        self.versions[kind] += 1
        for one in (old, new):
            if isinstance(one, Capacity):
                self.versions[kind, one.of_class] += 1
        if kind == "StorageClass":
            self._know_all_of(key[1])
        return Waking(all=new is not None or kind in _LIMITING)

    def _find_table(self, kind: str) -> dict[Any, Any]:
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
        return Waking() if _is_same(old, new) else Waking(self.list_users(key))

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
            # Claims select by labels, but its claim is chosen already; and its zones were read from the labels before.
            old = old._replace(labels=new.labels)
        return Waking() if new is None or _is_same(old, new) else self._find_woken(name, new)

    def _find_woken(self, name: str, new: Volume) -> Waking:
        """Find the pods whose claims are bound to a volume, or may be."""
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
        handle = _find_attached(attachment, volume)
        if handle is not None:
            self.uses.attach(attachment.node, handle, sign)

    def _place(self, name: str) -> None:
        """Look again whether a volume is free."""
        volume = self.volumes.get(name)
        if volume is not None:
            if volume.is_free and name not in self._taken:
                self._free[volume.of_class].add(name)
            else:
                _drop(self._free, volume.of_class, name)
        self.changed.add(name)

    # Handles of claims.

    def _know(self, key: ClaimKey) -> None:
        claim = self.claims.get(key)
        self.uses.note_handle(key, self.find_handle(claim) if claim is not None else None)

    def _know_all_of(self, name: str) -> None:
        for key, claim in self.claims.items():
            if claim.wish.of_class == name:
                self._know(key)

    def find_handle(self, claim: Claim) -> Handle | None:
        """Find the handle of a claim's volume, which may have to be made first; None for a volume that no driver counts."""
        volume = self.volumes.get(claim.volume) if claim.volume else None
        if volume is not None:
            return volume.handle
        found = self.classes.get(claim.wish.of_class)
        if found is None or found.provisioner in in_tree.UNCOUNTED:
            return None
        driver = in_tree.DRIVERS.get(found.provisioner, found.provisioner)
        # No handle of a driver has such a name.
        return Handle(driver, "\0" + "/".join(claim.key)) if driver else None

    def is_moved(self, claim: Claim) -> bool:
        """Whether a driver serves a claim's volume in the place of an in-tree plugin."""
        volume = self.volumes.get(claim.volume) if claim.volume else None
        if volume is not None:
            return bool(volume.plugin)
        found = self.classes.get(claim.wish.of_class)
        return found is not None and found.provisioner in in_tree.DRIVERS

    # For checks.

    def list_attached(self) -> Iterator[tuple[str, Handle]]:
        """List the nodes with the volumes that are attached to them."""
        for one in self._attachments.values():
            found = _find_attached(one, self.volumes.get(one.volume))
            if found is not None:
                yield one.node, found

    def list_given(self) -> set[tuple[str, str, str]]:
        """List the claims with a decision: namespace, name, and the chosen volume or the node that gets a new volume."""
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


def _find_attached(attachment: Attachment, volume: Volume | None) -> Handle | None:
    """Find the handle of an attached volume; None for a volume that was not made for a driver."""
    if volume is None or volume.handle is None or volume.plugin:
        return None
    if not attachment.driver or not attachment.node:
        return None
    return Handle(attachment.driver, volume.handle.volume)


def _is_same(old: Claim | Volume | None, new: Claim | Volume | None) -> bool:
    """Whether two states of an object are equal, apart from their versions."""
    return old is not None and new is not None and old._replace(version=new.version) == new


def _drop(of: defaultdict[Any, set[Any]], key: Any, value: Any) -> None:
    there = of.get(key)
    if there is not None:
        there.discard(value)
        if not there:
            del of[key]
