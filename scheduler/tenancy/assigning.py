"""Which flavors the pods of a workload get: per group of resources the first flavor that is good enough.

Source: Kueue (2026-08), ``pkg/scheduler/flavorassigner``: ``assignFlavors``, ``findFlavorForPodSets``,
``fitsResourceQuota``, ``shouldTryNextFlavor``, ``isPreferred`` and ``resolveNoFitReason``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.api import names
from scheduler.api.queues.amounts import write_amount, write_quota
from scheduler.api.queues.definitions import Policy, QueueDefinition, ResourceGroup
from scheduler.api.queues.workloads import PodSet
from scheduler.kernels import quotas
from scheduler.schema import quotas as q
from scheduler.tenancy.assignments import (
    Assignment,
    Attempt,
    Chosen,
    Mode,
    Reason,
    SetAssignment,
    resolve_reason,
)
from scheduler.tenancy.flavors import FlavorBook
from scheduler.tenancy.trees import Column, Tree

# Says whether others could make room for an amount of a column, and how high the queue borrows afterwards; it is told
# how high the queue borrows as long as everybody stays.
Simulate = Callable[[Column, int, int], tuple[Mode, int]]
# The flavor after which to go on, of each resource of each pod set.
Tried = Sequence[Mapping[str, int]]
_INT64_MAX = 2**63 - 1
_WORST = (Mode.NO_FIT, _INT64_MAX)


@dataclass(slots=True)
class _Found:
    """What came of a walk over the flavors of a group."""

    chosen: dict[str, Chosen] | None
    reasons: list[str] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    fits: bool = False


class Assigner:
    """Chooses flavors for one workload in its queue."""

    def __init__(
        self,
        queue: QueueDefinition,
        tree: Tree,
        book: FlavorBook,
        simulate: Simulate,
        *,
        is_fair: bool,
        kept: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """``simulate`` is asked where the quota does not suffice; ``is_fair``: shares decide who has to give way.

        ``kept``: the flavors that the slice has which the workload replaces; it gets no others. None or empty for no slice.
        """
        self._kept = kept or {}
        self._queue, self._tree, self._book, self._simulate = queue, tree, book, simulate
        self._node = tree.queues[queue.name]
        # Of a resource that is named twice the first group counts.
        self._groups = {
            resource: group for group in reversed(queue.groups) for resource in group.resources
        }
        preemption = queue.preemption
        self._may_borrow_by_force = preemption.borrows or (
            is_fair and preemption.reclaim != Policy.NEVER
        )
        flavors = [one.flavor for group in queue.groups for one in group.flavors]
        self._is_implied = book.is_of_topologies(flavors)
        self._barred: frozenset[str] = frozenset()

    def assign(
        self,
        sets: Sequence[PodSet],
        counts: Sequence[int],
        tried: Tried = (),
        only: Mapping[str, Mapping[str, str]] | None = None,
        barred: frozenset[str] = frozenset(),
    ) -> Assignment:
        """Choose the flavors for so many pods of each pod set.

        Args:
            sets: the pod sets.
            counts: how many pods of each.
            tried: after which flavors to go on.
            only: if given, the only flavor of each resource of each pod set that may be chosen.
            barred: flavors in which there is no place.
        """
        self._barred = barred
        made = Assignment()
        requests = [self._list_requests(one, n) for one, n in zip(sets, counts, strict=True)]
        for group in _group_sets(sets):
            found, total = _Found({}), _sum_up([requests[i] for i in group])
            chosen: dict[str, Chosen] | None = {}
            attempts: dict[str, Attempt] = {}
            for resource in sorted(total):
                if resource not in self._groups and not total[resource]:
                    continue
                if chosen is None or resource in chosen:
                    continue
                walk = self._walk_flavors(sets, group, total, resource, made.usage, tried, only)
                self._merge_attempts(attempts, walk.attempts, resource)
                if not walk.chosen:
                    chosen, found.reasons = None, walk.reasons
                    break
                chosen |= walk.chosen
                if not walk.fits:
                    found.reasons += walk.reasons
            failed = False
            for i in group:
                own = self._pick_own(sets[i], requests[i], chosen or {})
                made.add(
                    SetAssignment(
                        name=sets[i].name,
                        n_pods=counts[i],
                        flavors=own,
                        requests=requests[i],
                        reasons=list(found.reasons),
                        attempts=sorted(attempts.values(), key=lambda one: one.flavor),
                    )
                )
                failed = failed or bool(requests[i] and not own)
            if failed:
                break
        if made.mode == Mode.NO_FIT:
            # What suits but for a resource that the queue does not have has no reason of a flavor.
            made.why = resolve_reason(made.sets, self._queue.groups) or Reason.NO_MATCH
        else:
            self._refuse_topologies(sets, made)
        return made

    def _pick_own(
        self, one: PodSet, requests: Mapping[str, int], chosen: Mapping[str, Chosen]
    ) -> dict[str, Chosen]:
        """Pick what a pod set gets of the flavors of its group; one that requests nothing goes where the others go."""
        if requests or not one.shape.group:
            return {name: flavor for name, flavor in chosen.items() if name in requests}
        return {name: flavor for name, flavor in chosen.items() if self._has_topology(flavor)}

    def _has_topology(self, one: Chosen) -> bool:
        return self._book.is_of_topologies((one.flavor,))

    def _refuse_topologies(self, sets: Sequence[PodSet], made: Assignment) -> None:
        """Give nothing to pods that are placed by a topology, and have no flavor or several that have one."""
        for pod_set, one in zip(sets, made.sets, strict=True):
            if not one.n_pods or not (pod_set.shape.asks_topology or self._is_implied):
                continue
            found = sorted({of.flavor for of in one.flavors.values() if self._has_topology(of)})
            if len(found) == 1:
                continue
            why = f"more than one TAS flavor assigned: {', '.join(found)}" if found else "no TAS flavor assigned"  # fmt: skip
            one.flavors, one.reasons = {}, [why]
            made.why = Reason.NO_MATCH

    def _list_requests(self, one: PodSet, n_pods: int) -> dict[str, int]:
        requests = {
            resource: min(_INT64_MAX, amount * n_pods)
            for resource, amount in one.shape.requests
            if resource in self._groups or not self._book.ignores_undeclared
        }
        if names.PODS in self._groups:
            requests[names.PODS] = n_pods
        return requests

    def _walk_flavors(
        self,
        sets: Sequence[PodSet],
        group: Sequence[int],
        total: Mapping[str, int],
        resource: str,
        used: Mapping[Column, int],
        tried: Tried,
        only: Mapping[str, Mapping[str, str]] | None,
    ) -> _Found:
        """Walk the flavors of the group that a resource is in."""
        covered = self._groups.get(resource)
        if covered is None:
            return _Found(None, [f"resource {resource} unavailable in ClusterQueue"])
        asked = {name: total[name] for name in sorted(total) if name in covered.resources}
        found = _Found(None)
        best, last = _WORST, -1
        first = tried[group[0]].get(resource, -1) + 1 if group[0] < len(tried) else 0
        for k in range(first, len(covered.flavors)):
            last = k
            flavor = covered.flavors[k].flavor
            if only is not None and not any(
                only.get(sets[i].name, {}).get(resource) == flavor for i in group
            ):
                found.reasons.append(
                    f"skipping flavor {flavor} as it is not found in the nomination mapping for resource {resource}"
                )
                continue
            if flavor in self._barred:
                found.reasons.append(f"no place for all pods in flavor {flavor}")
                continue
            if why := (
                self._find_change(sets, group, flavor, asked)
                or self._find_refusal(sets, group, flavor, covered)
            ):
                found.reasons.append(why)
                found.attempts.append(Attempt(flavor, Mode.NO_FIT, 0, (why,), Reason.NO_MATCH))
                continue
            chosen, mode, height, attempt = self._judge_flavor(flavor, asked, used)
            found.reasons += attempt.reasons
            found.attempts.append(attempt)
            if not self._goes_on(mode, height):
                found.chosen, best = chosen, (mode, height)
                break
            if self._is_better((mode, height), best):
                found.chosen, best = chosen, (mode, height)
        found.fits = best[0] == Mode.FIT
        # After the last flavor the first one is next.
        at = -1 if last == len(covered.flavors) - 1 else last
        if found.chosen:
            found.chosen = {name: one._replace(tried=at) for name, one in found.chosen.items()}
        return found

    def _find_change(
        self, sets: Sequence[PodSet], group: Sequence[int], flavor: str, asked: Mapping[str, int]
    ) -> str:
        """Find whether pods would get another flavor than those of the slice that the workload replaces."""
        for resource in asked if self._kept else ():
            for i in group:
                kept = self._kept.get(sets[i].name, {}).get(resource, "")
                if kept != flavor:
                    return f"could not assign {flavor} flavor since the original workload is assigned: {kept}"
        return ""

    def _find_refusal(
        self, sets: Sequence[PodSet], group: Sequence[int], flavor: str, covered: ResourceGroup
    ) -> str:
        resources = frozenset(covered.resources)
        for i in group:
            why = self._book.find_refusal(
                flavor, sets[i].shape, resources, is_implied=self._is_implied
            )
            if why:
                return why
        return ""

    def _judge_flavor(
        self, flavor: str, asked: Mapping[str, int], used: Mapping[Column, int]
    ) -> tuple[dict[str, Chosen], Mode, int, Attempt]:
        """Judge all resources in one flavor; return what each gets, the worst mode, its height, and the words for it."""
        columns = [(flavor, name) for name in asked]
        places = np.array([self._tree.columns[one] for one in columns], np.int64)
        amounts = [
            min(_INT64_MAX, used.get(column, 0) + amount)
            for column, amount in zip(columns, asked.values(), strict=True)
        ]
        judged = np.zeros((q.N_JUDGED, len(columns)), np.int64)
        wanted = np.array(amounts, np.int64)
        quotas.judge_amounts(self._tree.handle, self._node, places, wanted, judged)
        chosen: dict[str, Chosen] = {}
        worst, most_height = (Mode.FIT, 0), 0
        reasons: list[str] = []
        why = Reason.NONE
        for i, (name, amount) in enumerate(asked.items()):
            free, most, height, reclaims = judged[:, i].tolist()
            mode = Mode.FIT
            if amounts[i] > most:
                mode, height = Mode.NO_FIT, 0
                reasons.append(
                    f"insufficient quota for {name} in flavor {flavor}, previously considered podsets requests "
                    f"({write_amount(name, used.get(columns[i], 0))}) + current podset request "
                    f"({write_amount(name, amount)}) > maximum capacity ({write_quota(name, most)})"
                )
                why = max(why, Reason.EXCEEDS)
            elif amounts[i] > free:
                short = write_amount(name, amounts[i] - free)
                reasons.append(
                    f"insufficient unused quota for {name} in flavor {flavor}, {short} more needed"
                )
                nominal = int(self._tree.handle.subtree[self._node, places[i]])
                if nominal >= amounts[i] or reclaims or self._may_borrow_by_force:
                    mode, height = self._simulate(columns[i], amounts[i], height)
                else:
                    mode = Mode.NO_FIT
                    why = max(why, Reason.WAITS)
            most_height = max(most_height, height)
            if self._is_better(worst, (mode, height)):
                worst = mode, height
            if worst[0] != Mode.NO_FIT:
                chosen[name] = Chosen(flavor, mode, height)
        attempt = Attempt(flavor, worst[0], most_height, tuple(sorted(reasons)), why)
        return chosen, *worst, attempt

    def _goes_on(self, mode: Mode, height: int) -> bool:
        """Whether the next flavor is tried before this one is taken."""
        if mode in {Mode.NO_FIT, Mode.NO_CANDIDATES}:
            return True
        fungibility = self._queue.fungibility
        if mode in {Mode.PREEMPT, Mode.RECLAIM} and fungibility.skips_preempting:
            return True
        return height > 0 and fungibility.skips_borrowing

    def _is_better(self, one: tuple[Mode, int], other: tuple[Mode, int]) -> bool:
        """Whether a mode, and how high the queue borrows, is better than another."""
        if one[0] == Mode.NO_FIT or other[0] == Mode.NO_FIT:
            return one[0] != Mode.NO_FIT
        if (one[0] == Mode.NO_CANDIDATES) != (other[0] == Mode.NO_CANDIDATES):
            return one[0] != Mode.NO_CANDIDATES
        first, second = (-one[0], one[1]), (-other[0], other[1])
        if self._queue.fungibility.prefers_preempting:
            first, second = first[::-1], second[::-1]
        return first < second

    def _merge_attempts(
        self, attempts: dict[str, Attempt], more: Sequence[Attempt], resource: str
    ) -> None:
        """Add the attempts of a walk to those of other walks of the same pod sets."""
        for one in more:
            known = attempts.get(one.flavor)
            attempts[one.flavor] = one if known is None else known.merge(one)
        if more and resource in self._groups:
            tried = {one.flavor for one in more}
            for flavor in self._groups[resource].flavors:
                known = attempts.get(flavor.flavor)
                if known is not None and flavor.flavor not in tried:
                    missing = f"flavor {flavor.flavor} does not provide resource {resource}"
                    attempts[flavor.flavor] = known.refuse(missing)


def _group_sets(sets: Sequence[PodSet]) -> list[list[int]]:
    """Group the places of pod sets: those that are placed as one together."""
    groups: dict[str, list[int]] = {}
    for i, one in enumerate(sets):
        groups.setdefault(f"={one.shape.group}" if one.shape.group else str(i), []).append(i)
    return list(groups.values())


def _sum_up(requests: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in requests:
        for resource, amount in one.items():
            total[resource] = min(_INT64_MAX, total.get(resource, 0) + amount)
    return total
