"""Finds places for lost pods of a workload that suit the pods that go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from scheduler.api.cards import Grants
from scheduler.api.door.workload_decisions import DomainsGiven
from scheduler.engine.workload_places import WorkloadPlaces
from scheduler.engine.workload_pods import WorkloadPods
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Where
from scheduler.tenancy.assignments import Assignment, Lot, SetAssignment
from scheduler.tenancy.works import Work


class _Rest(NamedTuple):
    """The pods of a workload that go on.

    Attributes:
        placed: their uids by pod set.
        whole: the pod sets of which no pod has succeeded. Of others nobody knows which slices were theirs.
    """

    placed: Mapping[str, Sequence[str]]
    whole: frozenset[str]


class Replaced(NamedTuple):
    """What came of the search for places of lost pods.

    Attributes:
        n_lost: how many pods were lost.
        has_places: whether there is a place for each; stand-ins have taken it.
        domains: by pod set, where all pods of the workload are then; empty if there are no places.
    """

    n_lost: int
    has_places: bool
    domains: Mapping[str, DomainsGiven]


class Replacing:
    """Finds places for lost pods, and takes them."""

    def __init__(self, cluster: Cluster, pods: WorkloadPods, places: WorkloadPlaces) -> None:
        """``pods``: which pods are those of which workload."""
        self._cluster, self._pods, self._places = cluster, pods, places

    def replace(self, work: Work, failed: Sequence[str]) -> Replaced | None:
        """Take places for the pods of a workload that are nowhere, or on nodes that are gone.

        Pods that run on a node that has failed but is there keep their places as long as they stay.

        Args:
            work: the workload.
            failed: its nodes that have failed.

        Returns:
            What came of it; None if Evenkeel does not place the pods of the workload, or a flavor of it is gone.
        """
        if not self._places.needs_place(work):
            return None
        placed = self._list_placed(work, failed)
        _, succeeded = self._pods.count_sets(work.defined)
        living = Counter({name: len(uids) for name, uids in placed.items()})
        found = self._places.read_assignment(work, living, succeeded)
        if found is None:
            return None
        # Pods may have come back with their node, so places for the others are found anew.
        self._places.let_go(work.key)
        seats = self._give_seats_up(work)
        n_lost = sum(one.n_pods for one in found.sets)
        rest = _Rest(placed, frozenset(one.name for one in work.sets if not succeeded[one.name]))
        ways = self._list_ways(work, found, rest)
        if n_lost and not any(self._take(work, way, rest) for way in ways):
            for uid, seat in seats.items():
                if seat[0] not in failed:
                    self._cluster.nominations.put(uid, *seat)
            return Replaced(n_lost, False, {})
        return Replaced(n_lost, True, self._places.domains.find_domains(work, found, placed))

    def _give_seats_up(self, work: Work) -> dict[str, tuple[str, int, Grants]]:
        """Take their places from pods that have no node yet; return each one's node, priority and cards.

        Else the pods would be counted as lost while their places are still kept for them.
        """
        nominations, found = self._cluster.nominations, {}
        for uid in self._pods.list_of(work.defined):
            pod = self._cluster.pods.get(uid)
            if pod is not None and not pod.node and (node := nominations.find_node(uid)):
                found[uid] = node, pod.priority, nominations.find_cards(uid)
                nominations.drop(uid)
        return found

    def _list_placed(self, work: Work, failed: Collection[str]) -> dict[str, list[str]]:
        """List by pod set the uids of the pods that have a node, and are not lost."""
        pods = self._cluster.pods
        gone = [node for node in failed if self._cluster.find_facts(node) is None]
        return {
            name: [uid for uid in uids if not (pods[uid].deleting and pods[uid].node in failed)]
            for name, uids in self._places.domains.list_placed(work, gone).items()
        }

    def _take(self, work: Work, way: Assignment, rest: _Rest) -> bool:
        """Take the places of lost pods in one way, unless slices would be torn apart."""
        if not self._places.take(work, way):
            return False
        if self._keeps_slices(work, way, rest):
            return True
        self._places.let_go(work.key)
        return False

    def _list_ways(self, work: Work, found: Assignment, rest: _Rest) -> Iterator[Assignment]:
        """Yield where lost pods are tried: near the others first, then in wider domains as far as these are allowed."""
        options = [list(self._list_options(work, one, rest)) for one in found.sets]
        if not all(options):
            return
        for i in range(max(map(len, options), default=0)):
            yield Assignment(sets=[some[min(i, len(some) - 1)] for some in options])

    def _list_options(
        self, work: Work, given: SetAssignment, rest: _Rest
    ) -> Iterator[SetAssignment]:
        """Yield where the lost pods of a pod set may go; none if others lack more in their slices than are lost.

        Those that the slices of others lack go there. The rest of them are whole slices.
        """
        own = next(one for one in work.sets if one.name == given.name)
        where = self._places.domains.find_where(own, given)
        there = self._list_kin(work, given.name, rest.placed)
        if not isinstance(where, Where) or not there or not given.n_pods:
            yield given
            return
        kept: list[Lot] = []
        if own.name in rest.whole:
            kept = self._list_lacking(where, where.slices, rest.placed.get(own.name, ()))
        else:
            # Where pods have succeeded, the others need not be whole slices.
            where = structs.replace(where, slices=())
        n_free = given.n_pods - sum(lot.n_pods for lot in kept)
        if n_free < 0:
            return
        levels = [where.required] if where.required >= 0 else [*where.preferred, -1]
        for level in levels if n_free else [-1]:
            near = self._write_selector(where.labels[: level + 1], there[0])
            free = [Lot(n_free, near, where)] if n_free else []
            # Anywhere, the pod sets of a group go together.
            is_anywhere = not (kept or near) and own.name in rest.whole
            yield given if is_anywhere else replace(given, lots=[*kept, *free])

    def _list_kin(self, work: Work, name: str, placed: Mapping[str, Sequence[str]]) -> list[str]:
        """List the uids of the pods that share a domain with those of a pod set: its own, and those of its group."""
        groups = {one.name: one.shape.group for one in work.sets}
        return [
            uid
            for other, uids in placed.items()
            if other == name or (groups[name] and groups[other] == groups[name])
            for uid in uids
        ]

    def _list_lacking(
        self, where: Where, layers: Sequence[tuple[int, int]], uids: Sequence[str]
    ) -> list[Lot]:
        """List the pods that the slices of others lack, those first that have the least choice.

        Args:
            where: where in their topology the pods go.
            layers: (level, size) of slices, the outermost first.
            uids: of the pods that are there, in one slice of the layer around these or in several.
        """
        if not layers:
            return []
        (level, size), *inner = layers
        labels = where.labels[: level + 1]
        domains: dict[tuple[str, ...], list[str]] = {}
        for uid in uids:
            domains.setdefault(self._places.domains.find_domain(uid, labels), []).append(uid)
        lots: list[Lot] = []
        for _, there in sorted(domains.items()):
            within = self._list_lacking(where, inner, there)
            n_left = -(len(there) + sum(lot.n_pods for lot in within)) % size
            lots += within
            if n_left:
                domain = self._write_selector(labels, there[0])
                lots.append(Lot(n_left, domain, structs.replace(where, slices=tuple(inner))))
        return lots

    def _write_selector(self, labels: Sequence[str], uid: str) -> Mapping[str, str]:
        """Write the labels that the node of a pod has."""
        return dict(zip(labels, self._places.domains.find_domain(uid, labels), strict=True))

    def _keeps_slices(self, work: Work, way: Assignment, rest: _Rest) -> bool:
        """Whether each domain has whole slices, once lost pods are where their stand-ins are."""
        stand_ins = self._cluster.stand_ins.list_sets(work.key)
        sets = {one.name: one for one in work.sets}
        for given in way.sets:
            where = self._places.domains.find_where(sets[given.name], given)
            uids = [*rest.placed.get(given.name, ()), *stand_ins.get(given.name, ())]
            if not isinstance(where, Where) or given.name not in rest.whole:
                continue
            for level, size in where.slices:
                labels = where.labels[: level + 1]
                counts = Counter(self._places.domains.find_domain(uid, labels) for uid in uids)
                if any(n % size for n in counts.values()):
                    return False
        return True
