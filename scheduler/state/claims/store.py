"""ResourceClaims, and the pods that have them, as events tell of them.

A decision that is not written yet is part of the record of an assumed pod (``PodRecord.allotted``), so trials and failed
binds undo it like any charge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from scheduler.api.claims import objects
from scheduler.api.claims.answers import Allotment, ClaimKey
from scheduler.api.claims.extended import find_pod, make_entry
from scheduler.api.claims.requests import ClaimShape
from scheduler.state.claims.charges import Charges
from scheduler.state.claims.objects import Claim, read_claim
from scheduler.state.nodes import NodeTable
from scheduler.state.pods import Life, PodRecord
from scheduler.state.structures.changes import Changes

_NOBODY: frozenset[str] = frozenset()


class Claims(Charges):
    """The claims, classes and devices of one cluster."""

    def __init__(self, nodes: NodeTable, moved: Changes) -> None:
        super().__init__(nodes, moved)
        self._users: defaultdict[ClaimKey, set[str]] = defaultdict(set)

    # Pods.

    def change_pod(self, old: PodRecord | None, new: PodRecord | None) -> None:
        """Note which claims a pod has, and had; None for a pod that was not there, or is gone."""
        self._change_extended(old, new)
        if old is not None and new is not None and old.claims == new.claims:
            return
        for one in old.claims if old else ():
            if old is not None and one.name:
                users = self._users[old.namespace, one.name]
                users.discard(old.uid)
                if not users:
                    del self._users[old.namespace, one.name]
        for one in new.claims if new else ():
            if new is not None and one.name:
                self._users[new.namespace, one.name].add(new.uid)

    def list_claims(self, pod: PodRecord) -> list[Claim]:
        """List the claims of a pod that are there, each once, in their order."""
        if not self.has_claims(pod):
            return []
        names = dict.fromkeys(one.name for one in self.list_entries(pod))
        found = (self.claims.get((pod.namespace, name or "")) for name in names)
        return [one for one in found if one is not None]

    def list_shapes(self, pod: PodRecord) -> list[ClaimShape]:
        """List what the claims of a pod request that are there."""
        return [one.shape for one in self.list_claims(pod)]

    def estimate_cost(self, pod: PodRecord) -> int:
        """Estimate what the selectors of a pod's claims may cost, see ``ClaimShape.cost``."""
        return sum(one.cost for one in self.list_shapes(pod))

    def list_users(self, key: ClaimKey) -> Collection[str]:
        """List the uids of the pods that have a claim."""
        if uid := find_pod(key):
            return (uid,)
        return self._users.get(key, _NOBODY)

    def ignores(self, pods: Sequence[PodRecord]) -> bool:
        """Whether none of these pods has claims."""
        return not any(map(self.has_claims, pods))

    def follow_pod(self, pod: PodRecord, _: int, sign: int) -> None:
        """Note that a pod came to a node (1), or left it (-1), with what was decided for its claims."""
        if not self.has_claims(pod):
            return
        for one in pod.allotted:
            if one.is_new and sign > 0:
                self._begin_decision(one, pod)
            elif one.is_new:
                self._end_decision(one, pod)
        is_trial = self._is_trying
        self.n_helpful += sign < 0 and not (self._is_writing or is_trial)
        if self.inventory.has_shared:
            self._move_sharing(pod)
        if not (self._is_writing or is_trial):
            self.settle_pod(pod)

    def _begin_decision(self, one: Allotment, pod: PodRecord) -> None:
        claim = self.claims.get(one.key)
        if (claim is not None and claim.uid != one.uid) or self._is_joined(one, pod):
            # Another claim has the name by now, or another pod is charged for the claim.
            return
        self.decided[one.key] = one, pod.uid
        if claim is not None and claim.given is None:
            self._charge_with(one.key, one.given, pod)

    def _end_decision(self, one: Allotment, pod: PodRecord) -> None:
        """End what was decided for a claim with a pod; another pod that has joined it writes it as well."""
        if self.decided.get(one.key, (None, ""))[1] != pod.uid:
            return
        del self.decided[one.key]
        if self._is_trying:
            # If the trial is undone, nothing else ends it; if not, ``settle_pod`` is called.
            self._drop_decided(one, pod)
        heir = "" if self._is_writing else self._find_heir(one, pod)
        if heir:
            self.decided[one.key] = one, heir

    def _move_sharing(self, pod: PodRecord) -> None:
        """Note that all nodes that can use the devices of a pod's claims have moved with its own."""
        keys = [(pod.namespace, one.name or "") for one in self.list_entries(pod)]
        pools = {pool for key in keys for pool in self._pools_of.get(key, ())}
        concerned = self.inventory.list_concerned(pools)
        if len(concerned) > 1:
            self.moved.add_many(sorted(concerned))

    def doubt_pods(self, pods: Iterable[PodRecord]) -> None:
        """Keep what was decided for pods that go, or whose node goes, while their binds are under way."""
        for pod in pods:
            is_under_way = pod.life == Life.ASSUMED and not self._doubts.has_ended(pod)
            for one in pod.allotted if is_under_way else ():
                claim = self.claims.get(one.key)
                if one.is_new and claim is not None and claim.given is None:
                    self._doubts.begin(one, pod.uid)
            if self._find_pod(pod.uid) is None:
                self._doubts.forget_pod(pod.uid)

    def end_bind(self, uid: str, versions: Mapping[ClaimKey, str] | None) -> None:
        """Note that the bind of a pod has ended; ``versions`` as in ``Doubts.end_bind``."""
        if versions is None and (bound := self._find_pod(uid)) is not None:
            self._doubts.note_bound(bound)
        keys = self._doubts.end_bind(uid, versions)
        for key in keys:
            if (claim := self.claims.get(key)) is not None and versions and versions.get(key):
                self._doubts.see(key, claim.version)
        self._recharge(keys)
        self.n_helpful += bool(keys)
        for namespace, name in keys:
            if of := find_pod((namespace, name)):
                self._settle_extended(namespace, of, self._find_pod(of))
        if uid in self.extended.entries and (pod := self._find_pod(uid)) is not None:
            # Other classes may stand behind what it requests by now.
            self._settle_extended(pod.namespace, uid, pod)

    def _find_heir(self, one: Allotment, pod: PodRecord) -> str:
        """Find another pod for which the same was decided as for a pod that goes; empty for none."""
        for uid in sorted({*self.list_users(one.key)} - {pod.uid}) if self.roster else ():
            other = self.roster.pods.get(uid) if self.roster else None
            if other is None or not any(map(one.gives_the_same, other.allotted)):
                continue
            if self.roster and self.roster.is_charged(other):
                return uid
        return ""

    # Objects of the API server.

    def get_shape(self, spec: objects.ClaimSpec) -> ClaimShape:
        """Return the shape of what a claim might request."""
        return self._shapes.get_shape(spec)

    def see_claim(self, found: objects.ResourceClaim) -> Collection[str]:
        """Take over a claim; return the uids of the pods that the change could help."""
        new = read_claim(found, self._shapes)
        if new.made is None and self.extended.find_key(new.key) != new.key:
            self.drop_claim(new.key)
        return self._put_claim(self.extended.take_object(new, self.claims.get(new.key)))

    def list_objects(self) -> list[ClaimKey]:
        """List namespace and name of all claims that are objects."""
        return [one.path_key for one in self.claims.values() if one.made or not find_pod(one.key)]

    def drop_claim(self, key: ClaimKey) -> Collection[str]:
        """Forget a claim that was deleted, by the namespace and the name of the object."""
        found, key = key, self.extended.find_key(key)
        old = self.claims.pop(key, None)
        self.extended.drop_object(found)
        if old is None:
            return _NOBODY
        self._doubts.drop(key)
        if uid := find_pod(key):
            del self.extended.entries[uid]
            self._settle_extended(key[0], uid, None)
        self._recharge([key])
        self.n_helpful += old.given is not None
        return self.list_users(key)

    def _put_claim(self, new: Claim) -> Collection[str]:
        key, old = new.key, self.claims.get(new.key)
        before = self._describe_charge(key)
        self.claims[key] = new
        if new.made is not None:
            self.extended.entries[new.uid] = make_entry(new.uid)
        self._doubts.see(key, new.version)
        if before != self._describe_charge(key):
            self._recharge([key])
        is_freed = old is not None and old.given is not None and new.given is None
        self.n_helpful += is_freed
        is_same = old is not None and old._replace(version=new.version) == new
        return _NOBODY if is_same else self.list_users(key)

    # Nodes.

    def write_node(self, row: int) -> None:
        """Find out anew which devices a node has, because the node has come or has other labels."""
        if self.inventory.write_node(row):
            self.moved.add(row)

    def clear_node(self, row: int) -> None:
        """Take all devices from the row of a node that is gone."""
        self.inventory.clear_node(row)
