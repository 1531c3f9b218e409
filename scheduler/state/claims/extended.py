"""Pods that request extended resources of which classes stand behind some, and the claims that stand for these.

Such a claim is there for each pod that waits, before any object is: so what is decided for it is charged as for any
other claim. The object that a bind makes takes its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from scheduler.api.claims import extended
from scheduler.api.claims.answers import ClaimKey
from scheduler.api.claims.pods import PodClaim
from scheduler.api.claims.requests import ClaimShape, ClaimShapes
from scheduler.api.pods.templates import PodTemplate
from scheduler.state.claims.doubts import Doubts
from scheduler.state.claims.holds import Holders
from scheduler.state.claims.objects import Claim, make_unmade
from scheduler.state.claims.supply import Supply
from scheduler.state.nodes import NodeTable
from scheduler.state.pods import Life, PodRecord


class ExtendedClaims:
    """Which pods have such a claim, made or not.

    Attributes:
        entries: by the uid of the pod the entry by which it has its claim.
        woken: the uids of pods that wait and may find another answer, until they are taken.
    """

    def __init__(self, shapes: ClaimShapes) -> None:
        self._shapes = shapes
        self.entries: dict[str, PodClaim] = {}
        self.woken: dict[str, None] = {}
        # Pods of ours that have no node, by uid.
        self._waiting: dict[str, PodRecord] = {}
        # By the key of an object the key of the claim.
        self._objects: dict[ClaimKey, ClaimKey] = {}
        # Pods that have an object, by uid; and those of them that wait.
        self._made: dict[str, None] = {}
        self._suspects: dict[str, None] = {}
        # By the uid of the pod the version of its claim that was last told to be left.
        self._told: dict[str, str] = {}
        self._drawn: WeakKeyDictionary[PodTemplate, ClaimShape] = WeakKeyDictionary()

    def note_pod(self, pod: PodRecord | None, uid: str) -> None:
        """Note whether a pod waits for a node; None for a pod that is gone."""
        if pod is not None and pod.ours and not pod.node:
            self._waiting[uid] = pod
            if uid in self._made:
                self._suspects[uid] = None
        else:
            self._waiting.pop(uid, None)
            self._suspects.pop(uid, None)

    def find_unmade(self, uid: str, backing: dict[str, str]) -> Claim | None:
        """Find the claim of a pod that waits, as long as none is made; None if no class stands behind what it requests."""
        pod = self._waiting.get(uid)
        if pod is None:
            return None
        shape = self.draw_shape(pod.template, backing)
        if not shape.requests:
            return None
        return make_unmade(uid, extended.make_key(pod.namespace, uid), shape)

    def draw_shape(self, template: PodTemplate, backing: dict[str, str]) -> ClaimShape:
        """Draw what the claim requests of a pod with a template, as long as the same classes stand behind its resources."""
        shape = self._drawn.get(template)
        if shape is None:
            drawn = extended.draw_claim(template.extended, backing)
            shape = self._drawn[template] = self._shapes.get_shape(drawn.spec, drawn.resources)
        return shape

    def list_concerned(self, changed: Collection[str]) -> list[str]:
        """List the uids of the pods that wait and request any of some resources, of which other classes stand behind now."""
        self._drawn.clear()
        return [
            uid
            for uid, pod in self._waiting.items()
            if any(one.resource in changed for one in pod.template.extended)
        ]

    def list_waiting(self, uids: Iterable[str]) -> Iterator[PodRecord]:
        """List those of some pods that wait."""
        return (self._waiting[uid] for uid in uids if uid in self._waiting)

    def list_left(self) -> list[str]:
        """List the uids of the pods that wait, and whose claim is made all the same."""
        return list(self._suspects)

    def is_news(self, claim: Claim) -> bool:
        """Whether this state of a claim was not told yet; it is from now on."""
        before, self._told[claim.uid] = self._told.get(claim.uid), claim.version
        return before != claim.version

    # Objects.

    def find_key(self, found: ClaimKey) -> ClaimKey:
        """Find the key of the claim of an object."""
        return self._objects.get(found, found)

    def take_object(self, new: Claim, there: Claim | None) -> Claim:
        """Take over an object; return the claim that it is. ``there`` is the claim that has its key.

        Where a pod has two such objects, the second one is a claim like any other.
        """
        if new.made is None:
            return new
        if there is not None and there.made is not None and there.name != new.name:
            return new._replace(key=new.path_key, uid=new.object_uid, made=None)
        self._objects[new.path_key] = new.key
        self._made[new.uid] = None
        if new.uid in self._waiting:
            self._suspects[new.uid] = None
        return new

    def drop_object(self, found: ClaimKey) -> None:
        """Forget an object that is gone."""
        key = self._objects.pop(found, None)
        if key is not None:
            for some in (self._told, self._made, self._suspects):
                some.pop(extended.find_pod(key), None)


class ExtendedSupply(Supply):
    """Devices, classes and claims, with the claims that stand for extended resources.

    Attributes:
        nodes: the nodes.
        claims: by key.
        extended: which pods have a claim for their extended resources.
        roster: the pods.
    """

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes)
        self.nodes = nodes
        self.claims: dict[ClaimKey, Claim] = {}
        self._shapes = ClaimShapes()
        self.extended = ExtendedClaims(self._shapes)
        self._doubts = Doubts()
        self.roster: Holders | None = None

    def _change_extended(self, old: PodRecord | None, new: PodRecord | None) -> None:
        """Note which extended resources a pod requests, and whether it waits; the same as ``change_pod``."""
        before, now = (one.template.extended if one is not None else () for one in (old, new))
        one = new or old
        if one is None or not (before or now):
            return
        if before != now:
            self._count_implicit({each.resource for each in now}, 1)
            self._count_implicit({each.resource for each in before}, -1)
        self.extended.note_pod(new, one.uid)
        self._settle_extended(one.namespace, one.uid, new)

    def _settle_extended(self, namespace: str, uid: str, pod: PodRecord | None) -> None:
        """Let a pod have the claim for its extended resources, as long as none is made, if it needs one; None: it is gone."""
        key = extended.make_key(namespace, uid)
        claim = self.claims.get(key)
        if claim is not None and claim.made is not None:
            return
        unmade = self.extended.find_unmade(uid, self.backing)
        if unmade is not None:
            self.claims[key] = unmade
            self.extended.entries[uid] = extended.make_entry(uid)
            return
        is_decided = pod is not None and any(one.key == key for one in pod.allotted)
        if claim is not None and not is_decided and self._doubts.find(claim) is None:
            del self.claims[key], self.extended.entries[uid]

    def _note_backing(self, changed: Collection[str]) -> None:
        for uid in self.extended.list_concerned(changed):
            self.extended.woken[uid] = None
        for pod in self.extended.list_waiting(list(self.extended.woken)):
            self._settle_extended(pod.namespace, pod.uid, self._find_pod(pod.uid))

    def _find_pod(self, uid: str) -> PodRecord | None:
        return self.roster.pods.get(uid) if self.roster is not None else None

    def list_entries(self, pod: PodRecord) -> tuple[PodClaim, ...]:
        """List the claims of a pod: those that it names, and then the one that stands for its extended resources."""
        entry = self.extended.entries.get(pod.uid)
        return pod.claims if entry is None else (*pod.claims, entry)

    def has_claims(self, pod: PodRecord) -> bool:
        """Whether a pod has any claims."""
        return bool(pod.claims) or pod.uid in self.extended.entries

    @contextmanager
    def pose_as(self, others: Iterable[Claim]) -> Iterator[None]:
        """While it is open, claims are others, for questions alone; what is charged stays as it is."""
        changed = {one.key: one for one in others}
        before = {key: self.claims[key] for key in changed}
        self.claims.update(changed)
        try:
            yield
        finally:
            self.claims.update(before)

    def take_left(self) -> list[Claim]:
        """List the claims that a bind which came to nothing has left for pods that wait; each state of a claim once."""
        found = []
        for uid in self.extended.list_left():
            pod = self._find_pod(uid)
            claim = self.claims.get(extended.make_key(pod.namespace, uid)) if pod else None
            if pod is None or claim is None or pod.life != Life.PENDING or claim.is_deleting:
                continue
            if self.extended.is_news(claim):
                found.append(claim)
        return found
