"""Where in a topology the pods of workloads go, and in which domains of it they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from scheduler.api import names
from scheduler.api.door.workload_decisions import DomainsGiven
from scheduler.api.queues import molding
from scheduler.api.queues.workloads import PodSet
from scheduler.engine.workload_pods import WorkloadPods
from scheduler.errors import BadInput
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Where
from scheduler.tenancy.assignments import Assignment, SetAssignment
from scheduler.tenancy.flavors import FlavorBook
from scheduler.tenancy.works import Work

_IMPLIED = {"unconstrained": True}


class WorkloadDomains:
    """Knows the domains of pods that exist, and of the stand-ins of those that do not."""

    def __init__(self, cluster: Cluster, book: FlavorBook, pods: WorkloadPods) -> None:
        """``pods``: which pods are those of which workload."""
        self._cluster, self._book, self._pods = cluster, book, pods

    def find_where(self, pod_set: PodSet, given: SetAssignment) -> Where | str | None:
        """Find where in a topology a pod set goes; a text if its topology, or a level, is not there."""
        topology = self.find_topology(given)
        asked = pod_set.shape.topology
        if topology and not pod_set.shape.asks_topology:
            # All flavors of the queue have a topology: nothing else is wished for than few domains.
            asked = {**(asked or {}), **_IMPLIED}
        try:
            constraint = molding.read_constraint(asked, topology)
        except BadInput as error:
            return str(error)
        return None if constraint is None else self._cluster.groups.resolve(constraint)

    def find_problem(self, work: Work, assignment: Assignment) -> str:
        """Find what is wrong with where pods of a workload are to go; empty for nothing."""
        sets = {one.name: one for one in work.sets}
        for one in assignment.sets:
            where = self.find_where(sets[one.name], one)
            if isinstance(where, str):
                return f"pod set {one.name}: {where}"
            size = where.slices[0][1] if where is not None and where.slices else 1
            if one.n_pods % size:
                return (
                    f"pod set {one.name}: its {one.n_pods} pods cannot be cut in slices of {size}"
                )
        return ""

    def find_topology(self, given: SetAssignment) -> str:
        """Find the topology of the flavors of a pod set; empty for none."""
        flavors = (self._book.flavors[chosen.flavor] for chosen in given.flavors.values())
        return next((flavor.topology for flavor in flavors if flavor.topology), "")

    def find_labels(self, work: Work, assignment: Assignment) -> tuple[str, ...]:
        """Return the labels of nodes that make a domain for the pods of a workload; none if any nodes will do."""
        sets = {one.name: one for one in work.sets}
        for one in assignment.sets:
            where = self.find_where(sets[one.name], one)
            if isinstance(where, Where):
                levels = (where.required, *where.preferred, *(level for level, _ in where.slices))
                level = next((level for level in levels if level >= 0), -1)
                if level >= 0:
                    return where.labels[: level + 1]
        return ()

    def find_domain(self, uid: str, levels: Sequence[str]) -> tuple[str, ...]:
        """Find the values of some labels of the node of a pod; empty texts for labels that it lacks."""
        facts = self._cluster.find_facts(self._cluster.pods[uid].node or "")
        labels = {} if facts is None else facts.labels
        return tuple(labels.get(label, "") for label in levels)

    def list_placed(self, work: Work, lost: Collection[str] = ()) -> dict[str, list[str]]:
        """List by pod set the uids of those pods of a workload that have a node which is not among ``lost``."""
        found: dict[str, list[str]] = {}
        for uid in self._pods.list_of(work.defined):
            pod = self._cluster.pods.get(uid)
            if pod is not None and pod.node and pod.node not in lost:
                found.setdefault(self._pods.find_set(uid, work.defined), []).append(uid)
        return found

    def find_domains(
        self,
        work: Work,
        assignment: Assignment,
        placed: Mapping[str, Sequence[str]] | None = None,
    ) -> dict[str, DomainsGiven]:
        """Find by pod set in which domains of their topology the pods of a workload are, or are to be.

        As Kueue has it, a domain is named by its node alone if nodes are the lowest level.

        Args:
            work: the workload.
            assignment: what it is given.
            placed: the uids of those of its pods that are on nodes, by pod set; None for all that are. Stand-ins count, too.
        """
        found: dict[str, DomainsGiven] = {}
        placed = self.list_placed(work) if placed is None else placed
        of_sets = {name: list(uids) for name, uids in placed.items()}
        for name, uids in self._cluster.stand_ins.list_sets(work.key).items():
            of_sets.setdefault(name, []).extend(uids)
        for one in assignment.sets:
            levels = self._book.get_levels(self.find_topology(one))
            levels = levels[-1:] if levels[-1:] == (names.HOSTNAME,) else levels
            domains: Counter[tuple[str, ...]] = Counter()
            for uid in of_sets.get(one.name, ()) if levels else ():
                domains[self.find_domain(uid, levels)] += 1
            if domains and all(map(all, domains)):
                found[one.name] = DomainsGiven(levels, tuple(sorted(domains.items())))
        return found
