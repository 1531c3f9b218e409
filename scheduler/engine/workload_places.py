"""Places for the workloads of queues: quota is given only together with the nodes and cards of all pods.

A workload is placed with stand-ins for its pods, in one trial with the victims gone who would give it quota. It is then
admitted with its place, or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

import numpy as np

from scheduler.api.door.decisions import Bind, Plan
from scheduler.api.groups.definitions import GroupKey
from scheduler.api.groups.readers.owners import KEY_KINDS
from scheduler.api.queues import molding
from scheduler.api.queues.workloads import PodSet
from scheduler.cycle.schedule import Cycle
from scheduler.engine.stand_in_teams import make_teams
from scheduler.engine.workload_domains import WorkloadDomains
from scheduler.engine.workload_pods import WorkloadPods
from scheduler.placing.groups.amounts import have_enough, sum_requests
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity, Team, Where, make_entity
from scheduler.state.pods import PodRecord
from scheduler.tenancy.assignments import Assignment, Chosen, Lot, Mode, SetAssignment
from scheduler.tenancy.slices import find_old
from scheduler.tenancy.tenants import Tenants
from scheduler.tenancy.works import Work

# No object of a cluster has this kind: the group is one only while it is placed.
_KIND = "Workload.kueue.x-k8s.io"
_NO_PODS: Mapping[str, int] = Counter()
# Whether there may be room for more pods than these is found out before stand-ins are made, which take time and memory.
_MANY = 256
_EVERYWHERE = np.zeros(0, np.bool_)


class WorkloadPlaces:
    """Finds places for workloads on one cluster.

    Attributes:
        domains: where in a topology their pods go, and where they are.
    """

    def __init__(
        self, cluster: Cluster, cycle: Cycle, tenants: Tenants, pods: WorkloadPods
    ) -> None:
        """``pods``: which pods are those of which workload."""
        self._cluster, self._cycle, self._tenants = cluster, cycle, tenants
        self._book, self._pods = tenants.book, pods
        self.domains = WorkloadDomains(cluster, tenants.book, pods)

    def needs_place(self, work: Work) -> bool:
        """Whether all pods of a workload are ours: nobody else decides where they go."""
        return all(one.mold is not None for one in work.sets)

    def has_place(self, work: Work, assignment: Assignment, gone: Sequence[str] = ()) -> bool:
        """Whether there is a place for a workload, once the workloads ``gone`` have left theirs."""
        return self._try(work, assignment, gone) is not None

    def can_move(self, work: Work, assignment: Assignment, gone: Sequence[str]) -> bool:
        """Whether there is a place for a workload, and another one for each of those who leave theirs for it."""
        wanted = [(work, assignment)]
        for key in gone:
            one = self._tenants.works[key]
            held = self.read_assignment(one, _NO_PODS, _NO_PODS)
            if held is None:
                return False
            wanted.append((one, held))
        return self.has_places(wanted, gone)

    def has_places(self, wanted: Sequence[tuple[Work, Assignment]], gone: Sequence[str]) -> bool:
        """Whether there is a place for each of some workloads, once the workloads ``gone`` have left theirs."""
        stand_ins = self._cluster.stand_ins
        had = {pod.uid for work, _ in wanted for pod in stand_ins.list_of(work.key)}
        leaving = [uid for key in gone for uid in self._list_on_nodes(key)]
        entities = [self._make_entity(work, assignment, leaving) for work, assignment in wanted]
        with self._cluster.trial() as trial:
            trial.take_away(*leaving)
            fits = all(
                entity is None
                or (
                    isinstance(entity, Entity)
                    and self._is_whole(entity, self._cycle.place_group(entity))
                )
                for entity in entities
            )
        for work, _ in wanted:
            for pod in list(stand_ins.list_of(work.key)):
                if pod.uid not in had:
                    stand_ins.drop(pod.uid)
        return fits

    def find_problem(self, work: Work, assignment: Assignment) -> str:
        """Find why there would be no place for a workload even if all nodes were free; empty for no such reason."""
        return self.domains.find_problem(work, assignment)

    def find_run_seconds(self, work: Work) -> float | None:
        """Find for how many seconds a workload runs at most: what it says itself, or what its owner says if that is less."""
        said, owner = work.defined.run_seconds, work.defined.owner
        kind = None if owner is None else KEY_KINDS.get(owner[0])
        if owner is None or kind is None:
            return said
        definition = self._cluster.groups.find_definition(GroupKey(kind, *owner[1:]))
        of_owner = None if definition is None else definition.run_seconds
        return min((one for one in (said, of_owner) if one is not None), default=None)

    def list_sites(
        self, work: Work, assignment: Assignment, keys: Sequence[str]
    ) -> list[frozenset[str]]:
        """List those of some workloads who are in one domain that would do for a workload, domain by domain.

        The domain is that of the level which all its pods, or most of them, need in common: a node if they need none.
        Domains with more workloads are first.
        """
        labels = self.domains.find_labels(work, assignment)
        sites: dict[tuple[str, ...], set[str]] = {}
        for key in keys:
            for uid in self._list_on_nodes(key):
                node = self._cluster.pods[uid].node or ""
                if self._cluster.find_facts(node) is not None:
                    domain = self.domains.find_domain(uid, labels) or (node,)
                    sites.setdefault(domain, set()).add(key)
        ordered = sorted(sites.items(), key=lambda one: (-len(one[1]), one[0]))
        return [frozenset(keys) for _, keys in ordered]

    def take(self, work: Work, assignment: Assignment) -> bool:
        """Take a place for a workload, with stand-ins for its pods."""
        entity = self._make_entity(work, assignment)
        if isinstance(entity, str):
            return False
        if entity is None:
            return True
        with self._cluster.trial() as trial:
            plan = self._cycle.place_group(entity)
            if self._is_whole(entity, plan):
                trial.commit()
                return True
        self._cluster.stand_ins.drop_all(work.key)
        return False

    def take_beside(
        self,
        work: Work,
        assignment: Assignment,
        first: tuple[Work, Assignment],
        gone: Sequence[str],
    ) -> bool:
        """Take a place as ``take`` does, but none that ``first`` will have once the workloads ``gone`` have left theirs."""
        self.promise(*first, gone)
        try:
            return self.take(work, assignment)
        finally:
            self.let_go(first[0].key)

    def promise(self, work: Work, assignment: Assignment, gone: Sequence[str]) -> None:
        """Nominate stand-ins to the nodes that they will have once the workloads ``gone`` have left theirs."""
        binds = self._try(work, assignment, gone)
        if not binds:
            return
        entity = self._make_entity(work, assignment)
        if isinstance(entity, Entity):
            for bind in binds:
                self._cluster.nominations.put(bind.uid, bind.node, work.priority, bind.devices)

    def hand_over(self, key: str, to: str) -> None:
        """Let a workload have the places that another one keeps for pods that do not exist."""
        self._cluster.stand_ins.hand_over(key, to)

    def let_go(self, key: str) -> None:
        """Give up the place of a workload, and what was promised to it."""
        for pod in self._cluster.stand_ins.list_of(key):
            self._cluster.nominations.forget(pod.uid)
        self._cluster.stand_ins.drop_all(key)

    def _try(self, work: Work, assignment: Assignment, gone: Sequence[str]) -> list[Bind] | None:
        """Place a workload in a trial; return where its pods would go, or None if there is no place for all of them."""
        had = {pod.uid for pod in self._cluster.stand_ins.list_of(work.key)}
        leaving = [uid for key in gone for uid in self._list_on_nodes(key)]
        entity = self._make_entity(work, assignment, leaving)
        if isinstance(entity, str):
            return None
        if entity is None:
            return []
        with self._cluster.trial() as trial:
            trial.take_away(*leaving)
            plan = self._cycle.place_group(entity)
            found = list(plan.binds) if self._is_whole(entity, plan) else None
        for pod in entity.members:
            if pod.uid not in had:
                self._cluster.stand_ins.drop(pod.uid)
        return found

    def list_pods(self, key: str) -> list[str]:
        """List the uids of the pods of a workload that exist."""
        work = self._tenants.works.get(key)
        return [] if work is None else list(self._pods.list_of(work.defined))

    def _list_on_nodes(self, key: str) -> Iterator[str]:
        """Yield the uids of the pods of a workload that have a node, and of its stand-ins."""
        uids = self.list_pods(key)
        uids += [pod.uid for pod in self._cluster.stand_ins.list_of(key)]
        for uid in uids:
            pod = self._cluster.pods.get(uid)
            if pod is not None and pod.node:
                yield uid

    def restore(self, work: Work) -> bool:
        """Take places for those pods of a workload with quota that do not exist; return whether none is left."""
        if self._cluster.stand_ins.list_of(work.key):
            return True
        found = self.read_assignment(work, *self._pods.count_sets(work.defined))
        if found is None:
            return False
        exact = Assignment(sets=[self._keep_domains(work, one) for one in found.sets])
        if any(one.lots for one in exact.sets) and self.take(work, exact):
            return True
        # No domains were given, or they have no room any more: any place of the topology will do.
        return self.take(work, found)

    @contextmanager
    def suppose_restored(self, works: Sequence[Work]) -> Iterator[None]:
        """Have the places taken that ``restore`` would take for some workloads, as long as it lasts."""
        missing = [one for one in works if not self._cluster.stand_ins.list_of(one.key)]
        if not missing:
            yield
            return
        try:
            with self._cluster.trial():
                for one in missing:
                    self.restore(one)
                yield
        finally:
            for one in missing:
                self._cluster.stand_ins.drop_all(one.key)

    def _keep_domains(self, work: Work, given: SetAssignment) -> SetAssignment:
        """Give pods that do not exist the domains that their workload was given for them, but for those of the others."""
        assigned = work.defined.admission.assigned if work.defined.admission else ()
        domains = next((one.domains for one in assigned if one.name == given.name), None)
        if domains is None or not given.n_pods:
            return given
        left = Counter(dict(domains.domains))
        for uid in self._list_on_nodes(work.key):
            if self._pods.find_set(uid, work.defined) == given.name:
                left[self.domains.find_domain(uid, domains.levels)] -= 1
        kept = Counter(islice(left.elements(), given.n_pods))
        if kept.total() < given.n_pods:
            return given
        lots = [
            Lot(n, dict(zip(domains.levels, values, strict=True))) for values, n in kept.items()
        ]
        return replace(given, lots=lots)

    def read_assignment(
        self, work: Work, living: Mapping[str, int], succeeded: Mapping[str, int]
    ) -> Assignment | None:
        """Read what a workload has been given, but for pods that are there or have ended; None if a flavor of it is gone."""
        sets = []
        left = {one.name: n for one, n in zip(work.sets, work.counts, strict=True)}
        for one in work.defined.admission.assigned if work.defined.admission else ():
            if one.name not in left:
                # Its pod sets were renamed after it got quota.
                continue
            flavors = {name: Chosen(flavor, Mode.FIT, 0) for name, flavor in one.flavors}
            if not all(chosen.flavor in self._book.flavors for chosen in flavors.values()):
                return None
            # Pods that have ended may be gone by now, and their workload may not say yet that they have.
            n_missing = one.n_pods - living[one.name] - succeeded[one.name]
            n_missing = max(0, min(n_missing, left[one.name] - living[one.name]))
            sets.append(
                SetAssignment(
                    name=one.name,
                    n_pods=n_missing,
                    flavors=flavors,
                    requests={},
                    reasons=(),
                    attempts=(),
                )
            )
        return Assignment(sets=sets)

    @staticmethod
    def _is_whole(entity: Entity, plan: Plan) -> bool:
        return len(plan.binds) == len(entity.members)

    def _make_entity(
        self, work: Work, assignment: Assignment, leaving: Sequence[str] = ()
    ) -> Entity | str | None:
        """Make the group of a workload's stand-ins; None if it has no pods, a text if it may be placed nowhere.

        ``leaving``: the uids of the pods that leave their places for it.
        """
        teams: dict[str, list[Team]] = {}
        wheres: dict[str, Where | None] = {}
        sets = {one.name: one for one in work.sets}
        kept = self._count_kept(work)
        ones = [
            replace(given, n_pods=max(0, given.n_pods - kept.get(given.name, 0)))
            for given in assignment.sets
        ]
        if not all(self._may_have_room(work, sets[one.name], one, leaving) for one in ones):
            return "not enough is free for all its pods"
        # Each lot knows where it goes.
        found = [
            None if one.lots or not one.n_pods else self.domains.find_where(sets[one.name], one)
            for one in ones
        ]
        # Before any stand-in is made: nobody would drop it.
        if why := next((where for where in found if isinstance(where, str)), ""):
            return why
        for i, (one, where) in enumerate(zip(ones, found, strict=True)):
            if not one.n_pods or isinstance(where, str):
                continue
            pod_set = sets[one.name]
            together = pod_set.shape.group or f"{i}"
            is_alone = not pod_set.shape.group
            pods = list(self._list_stand_ins(work, pod_set, one))
            made = make_teams(one, pods, where if is_alone else None)
            teams.setdefault(together, []).extend(made)
            wheres[together] = None if is_alone else where
        if not teams:
            return None
        outer = [
            some[0] if len(some) == 1 and wheres[name] is None
            else Team(name, len(some), teams=tuple(some), where=wheres[name])
            for name, some in teams.items()
        ]  # fmt: skip
        whole = outer[0] if len(outer) == 1 else Team("", len(outer), teams=tuple(outer))
        return make_entity(GroupKey(_KIND, work.namespace, work.key.partition("/")[2]), whole)

    def _may_have_room(
        self, work: Work, pod_set: PodSet, given: SetAssignment, leaving: Sequence[str]
    ) -> bool:
        """Whether all nodes together have enough for the pods of a pod set, if these are too many to be tried for nothing."""
        known = tuple(self._cluster.stand_ins.list_sets(work.key).get(pod_set.name, ()))
        if given.n_pods - len(known) <= _MANY:
            return True
        (first,) = self._list_stand_ins(work, pod_set, replace(given, n_pods=1))
        if first.uid not in known:
            self._cluster.stand_ins.drop(first.uid)
        if not self._cycle.looks_at_all_resources(first):
            return True
        # Those that exist already may have their room.
        counts = [(first.template, given.n_pods - len(known))]
        counts += [(self._cluster.pods[uid].template, -1) for uid in leaving]
        least = np.maximum(0, sum_requests(self._cluster, counts))
        return have_enough(self._cluster, least, _EVERYWHERE)

    def _count_kept(self, work: Work) -> Mapping[str, int]:
        """Count by pod set the pods that have their places already: those of the slice that a workload replaces."""
        old = find_old(self._tenants.works, work)
        if old is None:
            return _NO_PODS
        return {one.name: n for one, n in zip(old.sets, old.counts, strict=True)}

    def _list_stand_ins(
        self, work: Work, pod_set: PodSet, given: SetAssignment
    ) -> Iterator[PodRecord]:
        """Yield as many stand-ins of a pod set as are given quota; those that exist already keep their promises."""
        known = self._cluster.stand_ins.list_sets(work.key).get(pod_set.name, [])
        pods = {uid: self._cluster.pods[uid] for uid in known}
        names = dict.fromkeys(chosen.flavor for chosen in given.flavors.values())
        flavors = [self._book.flavors[name] for name in names]
        numbers = range(given.n_pods)
        levels = self._book.get_levels(self.domains.find_topology(given))
        selectors = [lot.selector for lot in given.lots for _ in range(lot.n_pods)]
        made = molding.make_pods(work.defined, pod_set, numbers, flavors, selectors, levels)
        for pod in self._cluster.pauses.go_through(made):
            uid = pod.metadata.uid
            if uid in pods:
                yield pods[uid]
            else:
                yield from self._cluster.stand_ins.add(work.key, pod_set.name, [pod])
