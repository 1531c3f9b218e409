"""What becomes of workloads whose nodes fail: pods that are lost get other nodes, or the workload starts elsewhere as a whole.

A node has failed for a workload if it is gone, or has a taint that the pods do not tolerate, and no pod of the workload
runs there any more. The lost pods get places that suit those that go on: the domain that they need in common, and the
slices that they belong to. If there are none, the workload is evicted, and waits for a place for all of its pods.

Source: Kueue (2026-08), ``pkg/controller/tas/node_controller.go`` and ``pkg/scheduler/scheduler.go`` (``TASFailedNodeReplacement``
with ``FailFast``). Kueue evicts a workload at once if two of its nodes have failed. Here all that failed are replaced in
one go if that is possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from scheduler.api import names
from scheduler.api.door.decisions import Outcome
from scheduler.api.door.workload_decisions import EvictWorkload, SetDomains
from scheduler.api.queues.words import NODE_FAILURES
from scheduler.api.queues.workloads import WorkloadDefinition
from scheduler.engine.seats import Seats
from scheduler.engine.workload_places import WorkloadPlaces
from scheduler.engine.workload_pods import WorkloadPods
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Where
from scheduler.state.nodes import TaintKey
from scheduler.tenancy.assignments import Assignment, SetAssignment
from scheduler.tenancy.flavors import tolerates
from scheduler.tenancy.tenants import Tenants
from scheduler.tenancy.works import Where as Stage
from scheduler.tenancy.works import Work

_REFUSING = frozenset({"NoSchedule", "NoExecute"})


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
        self._places, self._seats = places, seats
        # The workloads that were given a node by its name, and the nodes of each.
        self._on_node: dict[str, set[str]] = {}
        self._nodes_of: dict[str, frozenset[str]] = {}
        # Such nodes that are gone, or have taints.
        self._troubled: set[str] = set()
        # Workloads that may have lost pods.
        self._suspects: dict[str, None] = {}

    @property
    def has_any(self) -> bool:
        """Whether a workload may have lost pods."""
        return bool(self._suspects)

    def see_workload(self, defined: WorkloadDefinition) -> None:
        """Note which nodes a workload was given."""
        nodes = _list_nodes(defined)
        if nodes == self._nodes_of.get(defined.key, frozenset()):
            return
        self.drop_workload(defined.key)
        if nodes:
            self._nodes_of[defined.key] = nodes
        for node in sorted(nodes):
            self._on_node.setdefault(node, set()).add(defined.key)
            self.note_node(node)

    def drop_workload(self, key: str) -> None:
        """Forget a workload."""
        self._suspects.pop(key, None)
        for node in self._nodes_of.pop(key, ()):
            self._on_node[node].discard(key)
            if not self._on_node[node]:
                del self._on_node[node]
                self._troubled.discard(node)

    def note_node(self, name: str) -> None:
        """Note that a node has come, has other taints or is gone."""
        if name not in self._on_node:
            return
        facts = self._cluster.find_facts(name)
        if facts is None or any(effect in _REFUSING for _, _, effect in facts.taints):
            self._troubled.add(name)
            self._suspects.update(dict.fromkeys(sorted(self._on_node[name])))
        else:
            self._troubled.discard(name)

    def note_pod(self, uid: str) -> None:
        """Note that a pod ends or goes: it may have been the last one of its workload on a node that has failed."""
        for key in self._pods.find_keys(uid)[0] if self._troubled else ():
            work = self._tenants.works.get(self._tenants.index.find_owned(key))
            if work is not None and self._nodes_of.get(work.key, frozenset()) & self._troubled:
                self._suspects[work.key] = None

    def work(self, outcome: Outcome) -> None:
        """Find places for the pods that were lost, and evict the workloads for whose pods there are none."""
        suspects, self._suspects = self._suspects, {}
        for key in suspects:
            work = self._tenants.works.get(key)
            if work is not None and work.where == Stage.HOLDS and not work.is_going:
                self._cluster.pauses.take()
                self._mend(work, outcome)

    def _mend(self, work: Work, outcome: Outcome) -> None:
        """Find places for the pods that a workload has lost, if it has lost any."""
        lost = self._list_failed(work)
        if not lost or not self._places.needs_place(work):
            return
        placed = self._places.domains.list_placed(work, lost)
        _, succeeded = self._pods.count_sets(work.defined)
        living = Counter({name: len(uids) for name, uids in placed.items()})
        found = self._places.read_assignment(work, living, succeeded)
        if found is None or not any(one.n_pods for one in found.sets):
            return
        self._places.let_go(work.key)
        near = Assignment(sets=[self._keep_near(work, one, placed) for one in found.sets])
        if not self._places.take(work, near):
            self._tenants.send_away(work.key)
            said = f"Workload was evicted as there was no replacement for unhealthy node(s): {', '.join(lost)}"
            outcome.quotas.append(EvictWorkload(work.key, work.uid, NODE_FAILURES, said))
            return
        domains = self._places.domains.find_domains(work, found, lost)
        if domains:
            outcome.quotas.append(SetDomains(work.key, work.uid, tuple(sorted(domains.items()))))
        for uid in self._pods.list_of(work.defined):
            pod = self._cluster.pods.get(uid)
            if pod is not None and pod.ours and not pod.node and not pod.deleting:
                # It came before its place was found.
                self._seats.forget(uid)
                self._seats.give(pod)

    def _list_failed(self, work: Work) -> list[str]:
        """List the nodes of a workload that have failed for it."""
        troubled = sorted(self._nodes_of.get(work.key, frozenset()) & self._troubled)
        pods = map(self._cluster.pods.get, self._pods.list_of(work.defined) if troubled else ())
        kept = {pod.node for pod in pods if pod is not None and not pod.deleting}
        # Nodes of a pool have the same taints.
        tolerated: dict[tuple[TaintKey, ...], bool] = {}
        found = []
        for node in troubled:
            facts = self._cluster.find_facts(node)
            if facts is not None and node not in kept and facts.taints not in tolerated:
                tolerated[facts.taints] = self._tolerates(work, facts.taints)
            if facts is None or not (node in kept or tolerated[facts.taints]):
                found.append(node)
        return found

    def _tolerates(self, work: Work, taints: Collection[TaintKey]) -> bool:
        """Whether the pods of a workload go on to be placed on a node with some taints."""
        given = work.defined.admission
        flavors = {flavor for one in given.assigned for _, flavor in one.flavors} if given else ()
        known = [self._tenants.book.flavors[name] for name in sorted(flavors) if name in self._tenants.book.flavors]  # fmt: skip
        added = [one for flavor in known for one in flavor.tolerations]
        return all(
            tolerates([*pod_set.shape.tolerations, *added], key, value, effect)
            for pod_set in work.sets
            for key, value, effect in taints
            if effect in _REFUSING
        )

    def _keep_near(
        self, work: Work, given: SetAssignment, placed: Mapping[str, Sequence[str]]
    ) -> SetAssignment:
        """Let the lost pods of a pod set go where the others of its slices are, and in the domain that all of them need."""
        sets = {one.name: one for one in work.sets}
        own = sets[given.name]
        where = self._places.domains.find_where(own, given)
        group = own.shape.group
        kin = [name for name in placed if name == own.name or (group and sets[name].shape.group == group)]  # fmt: skip
        there = [uid for name in kin for uid in placed[name]]
        if not isinstance(where, Where) or not there or not given.n_pods:
            return given
        selectors: list[Mapping[str, str]] = []
        for level, size in where.slices[-1:]:
            labels = where.labels[: level + 1]
            counts = Counter(self._places.domains.find_domain(uid, labels) for uid in placed.get(own.name, ()))  # fmt: skip
            for values, n in sorted(counts.items()):
                selectors += [dict(zip(labels, values, strict=True))] * (-n % size)
        labels = where.labels[: where.required + 1]
        values = self._places.domains.find_domain(there[0], labels)
        selectors += [dict(zip(labels, values, strict=True))] * max(0, given.n_pods - len(selectors))  # fmt: skip
        return (
            replace(given, selectors=tuple(selectors[: given.n_pods])) if any(selectors) else given
        )


def _list_nodes(defined: WorkloadDefinition) -> frozenset[str]:
    """List the nodes that a workload was given by their names."""
    given = defined.admission if not defined.is_finished else None
    return frozenset(
        values[-1]
        for one in (given.assigned if given else ())
        if one.domains is not None and one.domains.levels[-1:] == (names.HOSTNAME,)
        for values, _ in one.domains.domains
    )
