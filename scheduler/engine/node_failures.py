"""What becomes of workloads whose nodes fail: lost pods get other nodes, or the workload starts elsewhere as a whole.

A node has failed for a pod set if it is gone, or has a taint that the pods do not tolerate. Lost pods get places that suit
those that go on: the domain that all of them need, and the slices that they belong to. If there are no such places, and no
pod of the workload runs on one of these nodes any more, the workload is evicted. It then waits for places for all of its pods.

Source: Kueue (2026-08), ``pkg/controller/tas/node_controller.go`` and ``pkg/scheduler/scheduler.go`` (``TASFailedNodeReplacement``
with ``FailFast``). Kueue evicts a workload at once if two of its nodes have failed. Here all lost pods get other nodes in
one go if that is possible.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from scheduler.api import names
from scheduler.api.door.decisions import Outcome
from scheduler.api.door.workload_decisions import DomainsGiven, EvictWorkload, SetDomains
from scheduler.api.pods.tolerations import is_hard, tolerates
from scheduler.api.queues.words import NODE_FAILURES
from scheduler.api.queues.workloads import WorkloadDefinition
from scheduler.engine.allowance import Allowance
from scheduler.engine.allowance import Work as Piece
from scheduler.engine.replacing import Replacing
from scheduler.engine.seats import Seats
from scheduler.engine.workload_places import WorkloadPlaces
from scheduler.engine.workload_pods import WorkloadPods
from scheduler.state.cluster import Cluster
from scheduler.state.nodes import TaintKey
from scheduler.tenancy.tenants import Tenants
from scheduler.tenancy.works import Where as Stage
from scheduler.tenancy.works import Work


class NodeFailures:
    """Finds workloads whose nodes have failed, and places for the pods that they have lost."""

    def __init__(
        self,
        cluster: Cluster,
        tenants: Tenants,
        pods: WorkloadPods,
        places: WorkloadPlaces,
        seats: Seats,
    ) -> None:
        """``pods``: which pods are those of which workload."""
        self._cluster, self._tenants, self._pods = cluster, tenants, pods
        self._replacing, self._seats = Replacing(cluster, pods, places), seats
        # The workloads that were given a node by its name, and the nodes of each.
        self._on_node: dict[str, set[str]] = {}
        self._nodes_of: dict[str, frozenset[str]] = {}
        # Workloads that may have lost pods.
        self._suspects: dict[str, None] = {}
        # By a node that was gone: workloads whose pods were still known to be there when others got their places.
        self._left: dict[str, set[str]] = {}
        # Workloads of which such a node has come back.
        self._regained: set[str] = set()
        # Workloads for whose lost pods there is no place, while others of them go on.
        self._short: set[str] = set()
        self._woken: list[str] = []

    @property
    def has_any(self) -> bool:
        """Whether a workload may have lost pods."""
        return bool(self._suspects)

    @property
    def wants_places(self) -> bool:
        """Whether lost pods of a workload wait for a place."""
        return bool(self._short)

    def has_no_place(self, key: str, uid: str) -> bool:
        """Whether there is no place for a pod of a workload that suits the others, or it is still to be looked for."""
        return (key in self._short or key in self._suspects) and not self._seats.has(uid)

    def look_for_places(self) -> None:
        """Have places looked for again where there were none."""
        self._suspects.update(dict.fromkeys(sorted(self._short)))

    def take_woken(self) -> list[str]:
        """Take the uids of the pods for which there may be a place by now."""
        woken, self._woken = self._woken, []
        return woken

    def see_workload(self, defined: WorkloadDefinition) -> None:
        """Note which nodes a workload was given."""
        nodes = _list_nodes(defined)
        if nodes == self._nodes_of.get(defined.key, frozenset()):
            return
        self.drop_workload(defined.key)
        if not nodes:
            return
        self._nodes_of[defined.key] = nodes
        for node in sorted(nodes):
            self._on_node.setdefault(node, set()).add(defined.key)
        if any(map(self._is_troubled, nodes)):
            self._suspects[defined.key] = None

    def drop_workload(self, key: str) -> None:
        """Forget a workload."""
        self._suspects.pop(key, None)
        self._regained.discard(key)
        self._short.discard(key)
        for node in self._nodes_of.pop(key, ()):
            self._on_node[node].discard(key)
            if not self._on_node[node]:
                del self._on_node[node]

    def note_node(self, name: str) -> None:
        """Note that a node has come, has other taints or is gone."""
        if not self._nodes_of:
            return
        if self._is_troubled(name):
            keys = set(map(self._find_key, self._cluster.pods_on.get(name, ()))) - {""}
            keys |= self._on_node.get(name, set())
        else:
            keys = self._left.pop(name, set()) & self._nodes_of.keys()
            self._regained |= keys
        self._suspects.update(dict.fromkeys(sorted(keys)))

    def note_pod(self, uid: str) -> None:
        """Note that a pod ends or goes; it may be on a node that has failed."""
        pod = self._cluster.pods.get(uid) if self._nodes_of else None
        if pod is None or not pod.node or not self._is_troubled(pod.node):
            return
        key = self._find_key(uid)
        if key:
            self._suspects[key] = None
        left = self._left.get(pod.node, set())
        left.discard(key)
        if not left:
            self._left.pop(pod.node, None)

    def note_workload(self, key: str) -> None:
        """Note that a workload may have lost pods: what was decided about it has not come true."""
        if any(map(self._is_troubled, self._nodes_of.get(key, ()))):
            self._suspects[key] = None

    def _find_key(self, uid: str) -> str:
        """Find the workload of a pod, if it was given nodes by their names; empty for none."""
        for owner in self._pods.find_keys(uid)[0]:
            key = self._tenants.index.find_owned(owner)
            if key in self._nodes_of:
                return key
        return ""

    def _is_troubled(self, node: str) -> bool:
        """Whether a node is gone, or has a taint that keeps some pods away."""
        facts = self._cluster.find_facts(node)
        return facts is None or any(map(is_hard, facts.taints))

    def work(self, allowance: Allowance, outcome: Outcome) -> None:
        """Find places for lost pods, and evict the workloads for whose pods there are none, as far as the allowance goes."""
        while self._suspects:
            key = next(iter(self._suspects))
            del self._suspects[key]
            work = self._tenants.works.get(key)
            if work is None:
                continue
            # Those that came in the meantime were not tried.
            self._woken += self._pods.list_of(work.defined)
            if work.where != Stage.HOLDS or work.is_going:
                self._short.discard(key)
                continue
            self._cluster.pauses.take()
            self._replace_lost_pods(work, outcome)
            if not allowance.allows(Piece.ROUND):
                return

    def _replace_lost_pods(self, work: Work, outcome: Outcome) -> None:
        """Find places for the pods that a workload has lost, if it has lost any."""
        failed = self._list_failed(work)
        is_new = bool(failed) or work.key in self._regained or work.key in self._short
        self._regained.discard(work.key)
        self._short.discard(work.key)
        found = self._replacing.replace(work, failed) if is_new else None
        if found is None:
            return
        self._seat_pods(work, failed, has_places=found.has_places)
        if found.domains and not _has_domains(work.defined, found.domains):
            sets = tuple(sorted(found.domains.items()))
            left = tuple(failed) if found.n_lost else ()
            outcome.quotas.append(SetDomains(work.key, work.uid, sets, left))
        elif not found.has_places and (not failed or self._runs_on(work, failed)):
            self._short.add(work.key)
        elif not found.has_places:
            self._tenants.send_away(work.key)
            said = f"Workload was evicted as there was no replacement for unhealthy node(s): {', '.join(failed)}"
            outcome.quotas.append(EvictWorkload(work.key, work.uid, NODE_FAILURES, said))

    def _seat_pods(self, work: Work, failed: Collection[str], *, has_places: bool) -> None:
        """Give the pods that are there already the places that were found, and take places on failed nodes from them."""
        for uid in self._pods.list_of(work.defined):
            pod = self._cluster.pods.get(uid)
            if pod is None or pod.deleting:
                continue
            if pod.node in failed:
                # If the node comes back with the pod, the pod keeps its place.
                self._left.setdefault(pod.node, set()).add(work.key)
            elif pod.ours and not pod.node:
                # The pod came before a place was found for it, or its place was on a node that has failed.
                if has_places or not self._cluster.nominations.find_node(uid):
                    self._seats.forget(uid)
                if has_places:
                    self._seats.give(pod)

    def _list_failed(self, work: Work) -> list[str]:
        """List the nodes of a workload that have failed for those of its pods that are there, or are to be."""
        sets: dict[str, set[str]] = {}
        for one in work.defined.admission.assigned if work.defined.admission else ():
            for values, _ in one.domains.domains if one.domains is not None else ():
                sets.setdefault(values[-1], set()).add(one.name)
        for uid in self._pods.list_of(work.defined):
            pod = self._cluster.pods.get(uid)
            if pod is not None and pod.node:
                sets.setdefault(pod.node, set()).add(self._pods.find_set(uid, work.defined))
        # Nodes of a pool have the same taints.
        tolerated: dict[tuple[frozenset[str], tuple[TaintKey, ...]], bool] = {}
        failed = []
        for node in sorted(filter(self._is_troubled, sets)):
            facts = self._cluster.find_facts(node)
            if facts is not None:
                kind = frozenset(sets[node]), facts.taints
                if kind not in tolerated:
                    tolerated[kind] = self._tolerates(work, *kind)
                if tolerated[kind]:
                    continue
            failed.append(node)
        return failed

    def _tolerates(self, work: Work, sets: Collection[str], taints: Collection[TaintKey]) -> bool:
        """Whether pods of some pod sets can be placed on a node with some taints."""
        given = work.defined.admission
        flavors = {flavor for one in given.assigned for _, flavor in one.flavors} if given else ()
        book = self._tenants.book.flavors
        added = [one for name in flavors if name in book for one in book[name].tolerations]
        return all(
            tolerates([*pod_set.shape.tolerations, *added], taint, compares=True)
            for pod_set in work.sets
            if pod_set.name in sets
            for taint in taints
            if is_hard(taint)
        )

    def _runs_on(self, work: Work, failed: Collection[str]) -> bool:
        """Whether a pod of a workload is on one of the nodes that have failed but are there, and stays."""
        there = {node for node in failed if self._cluster.find_facts(node) is not None}
        pods = map(self._cluster.pods.get, self._pods.list_of(work.defined))
        return any(pod is not None and pod.node in there and not pod.deleting for pod in pods)


def _has_domains(defined: WorkloadDefinition, domains: Mapping[str, DomainsGiven]) -> bool:
    """Whether a workload says already where its pods are, or some of these have ended and are nowhere."""
    assigned = defined.admission.assigned if defined.admission else ()
    known = {one.name: one for one in assigned}
    is_whole = all(
        sum(n for _, n in found.domains) == known[name].n_pods for name, found in domains.items()
    )
    return not is_whole or all(known[name].domains == found for name, found in domains.items())


def _list_nodes(defined: WorkloadDefinition) -> frozenset[str]:
    """List the nodes that a workload was given by their names."""
    given = defined.admission if not defined.is_finished else None
    return frozenset(
        values[-1]
        for one in (given.assigned if given else ())
        if one.domains is not None and one.domains.levels[-1:] == (names.HOSTNAME,)
        for values, _ in one.domains.domains
    )
