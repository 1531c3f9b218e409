"""A search over nodes and cards for a group that did not fit at the first try, bounded by counted work.

The first try takes no choice back. The search does: the pods of all parts come one after another, those that ask most
first, each in every way; what was found to lead nowhere is not tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from scheduler.api.door.decisions import Bind
from scheduler.placing.groups.needs import MEMBERS_MAX, Needs, narrow_down
from scheduler.placing.groups.ways import Way, Ways
from scheduler.schema import columns as c
from scheduler.schema.world import ANYWHERE
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

# What a pod asks, so that the one that asks most is first.
_Size = tuple[int, ...]


def search_ways(
    cluster: Cluster,
    ways: Ways,
    needs: Needs,
    get_places: Callable[[PodRecord], c.Ints],
    among: c.Flags,
    *,
    leaves_half: bool,
) -> list[Bind]:
    """Place what is needed, in the open trial; nothing if that is impossible, would take too long, or is not needed.

    Args:
        cluster: the cluster.
        ways: the ways to place a pod.
        needs: what is needed.
        get_places: counts [N] how many pods like one fit on each node at most.
        among: [N] the only nodes that may be chosen; [0] for all.
        leaves_half: whether half of the work of this call is left to a wider search.
    """
    if needs.n_pods > MEMBERS_MAX or ways.is_spent:
        return []
    rows = _list_rows(cluster, among)
    able = narrow_down(needs, get_places, among)
    if able is None or not _have_room(cluster, able, rows):
        return []
    return _Search(cluster, ways, rows, able, leaves_half=leaves_half).find()


class _Search:
    """One search for places for what a team needs, among some rows."""

    def __init__(
        self, cluster: Cluster, ways: Ways, rows: c.Ints, needs: Needs, *, leaves_half: bool
    ) -> None:
        self._cluster, self._ways, self._needs = cluster, ways, needs
        self._leaves_half = leaves_half
        self._order = _list_in_order(needs)
        self._kinds = _number_kinds(self._order)
        # After each pod in order: how many pods of each part are left.
        self._left = _count_left(self._order, len(needs.parts))
        self._placed = [0] * len(needs.parts)
        # The domain that the pods of each bound share; -1 until one is placed.
        self._chosen = [-1] * len(needs.bounds)
        self._alike = ways.find_alike(
            [pod for pod, _ in self._order], rows, [bound.domain for bound in needs.bounds]
        )
        self._dead: set[Hashable] = set()

    def find(self) -> list[Bind]:
        """Place what is needed; nothing if that is impossible, or takes too long."""
        return self._place_rest(0) or []

    def _place_rest(self, at: int) -> list[Bind] | None:
        """Place what is needed of the pods from this one on."""
        verdict = self._needs.judge(self._placed, self._left[at])
        if verdict.is_met:
            return []
        if not verdict.can_be_met:
            return None
        state = at, *self._placed, *self._chosen, self._alike.describe_taken()
        if state in self._dead:
            return None
        pod, number = self._order[at]
        part = self._needs.parts[number]
        if self._placed[number] < part.least:
            for way in self._ways.list_ways(pod, self._alike, self._find_usable(part.bounds)):
                if self._ways.is_half_spent if self._leaves_half else self._ways.is_spent:
                    return None
                found = self._place_in(way, at)
                if found is not None:
                    return found
        found = self._place_rest(self._find_next(at))
        if found is None:
            self._dead.add(state)
        return found

    def _place_in(self, way: Way, at: int) -> list[Bind] | None:
        """Place one pod in one way, and the others as they fit."""
        pod, number = self._order[at]
        self._ways.spent += 1
        begins = [i for i in self._needs.parts[number].bounds if self._chosen[i] < 0]
        with self._cluster.trial() as trial:
            bind = self._ways.put(pod, way)
            self._alike.take(way.row, self._kinds[at])
            self._placed[number] += 1
            for i in begins:
                self._chosen[i] = int(self._needs.bounds[i].domain[way.row])
            found = self._place_rest(at + 1)
            for i in begins:
                self._chosen[i] = -1
            self._placed[number] -= 1
            self._alike.release(way.row)
            if found is None:
                return None
            trial.commit()
        return [bind, *found]

    def _find_usable(self, bounds: tuple[int, ...]) -> c.Flags:
        """Find [N] the rows that bounds leave to the next pod; [0] for all."""
        usable = ANYWHERE
        for i in bounds:
            domain, chosen = self._needs.bounds[i].domain, self._chosen[i]
            mine = domain >= 0 if chosen < 0 else domain == chosen
            usable = usable & mine if usable.size else mine
        return usable

    def _find_next(self, at: int) -> int:
        """Find the next pod that is unlike one: where one is left out, another like it need not be tried."""
        unlike = (i for i in range(at, len(self._order)) if self._kinds[i] != self._kinds[at])
        return next(unlike, len(self._order))


def _list_in_order(needs: Needs) -> list[tuple[PodRecord, int]]:
    """List the pods with their parts: those that ask most first, and those that share a domain one after another.

    A card whose cores are all taken takes no pod more, even if it asks for no cores. So pods that ask for none come first.
    """
    order: list[tuple[tuple[bool, _Size, int, _Size, int], PodRecord, int]] = []
    for i, part in enumerate(needs.parts):
        sizes = [_find_size(pod) for pod in part.pods]
        for pod, size in zip(part.pods, sizes, strict=True):
            first, block = (min(sizes), i) if part.bounds else (size, -1)
            order.append(((not _asks_no_cores(pod), first, block, (*size, i), pod.order), pod, i))
    order.sort(key=lambda one: one[0])
    return [(pod, i) for _, pod, i in order]


def _asks_no_cores(pod: PodRecord) -> bool:
    """Whether a pod asks for cards, and of one of them for no cores."""
    gpu = pod.template.gpu
    return gpu is not None and any(one.cards and not one.cores for one in gpu.containers)


def _number_kinds(order: Sequence[tuple[PodRecord, int]]) -> list[int]:
    """Number the kinds of pods: those of a part that ask the same, and are the same to others, are alike."""
    kinds: dict[Hashable, int] = {}
    found = []
    for pod, i in order:
        labels = frozenset((pod.labels or {}).items())
        own = pod.uid if pod.volumes is not None else ""
        found.append(
            kinds.setdefault((i, id(pod.template), pod.namespace, labels, own), len(kinds))
        )
    return found


def _count_left(order: Sequence[tuple[PodRecord, int]], n_parts: int) -> list[list[int]]:
    left = [[0] * n_parts]
    for _, i in reversed(order):
        left.append([n + (i == at) for at, n in enumerate(left[-1])])
    return left[::-1]


def _list_rows(cluster: Cluster, among: c.Flags) -> c.Ints:
    """List the rows of nodes, or those of them that may be chosen."""
    valid = cluster.nodes.columns.valid
    return np.flatnonzero(valid & among if among.size else valid)


def _have_room(cluster: Cluster, needs: Needs, rows: c.Ints) -> bool:
    """Whether rows together have as much of each resource free as the pods that ask least of it request."""
    nodes = cluster.nodes.columns
    if nodes.managed[:, rows].any():
        return True
    wanted: dict[int, int] = {}
    for part in needs.list_musts():
        asked: dict[int, list[int]] = {}
        for pod in part.pods:
            for name, amount in pod.template.requests.amounts:
                row = cluster.nodes.resources.find(name)
                if row >= 0:
                    asked.setdefault(row, []).append(amount)
        for row, amounts in asked.items():
            # Pods that do not request it ask for nothing of it.
            each = sorted([0] * (len(part.pods) - len(amounts)) + amounts)
            wanted[row] = wanted.get(row, 0) + sum(each[: part.least])
    for row, amount in wanted.items():
        free = nodes.allocatable[row, rows] - nodes.requested[row, rows]
        if int(np.maximum(free, 0).sum()) < amount:
            return False
    return True


def _find_size(pod: PodRecord) -> _Size:
    """Return a key that puts the pod first that asks most: of cards, then of everything."""
    gpu = pod.template.gpu
    n_cards = sum(one.cards for one in gpu.containers) if gpu is not None else 0
    amounts = [amount for _, amount in pod.template.requests.amounts]
    return -n_cards, -sum(amounts)
