"""The time by which a group fits: once enough of the pods have ended that say how long they run.

The pods end one after another. The first end is looked for at which amounts allow that the group fits; from there on the
group is placed in trials, in which the pods that end by then leave. Both go on in steps that double, then by halving.
More room never hurts a group, but for rules about other pods that are gone by then; the end that is found fits in any case.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np
from msgspec.structs import replace

from scheduler.api.door.decisions import Plan
from scheduler.schema import columns as c
from scheduler.schema.handles import Floats
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity, list_kinds
from scheduler.state.later import LaterRoom, Place
from scheduler.state.pods import PodRecord

# The ends of so many nodes' pods are read in one piece of work.
_NODES_A_STEP = 128
# No room is promised for later than in a day: nodes are kept free until then.
LONGEST_SECONDS = 86_400.0

Found = LaterRoom | None
# Nodes with places for so many times the pods of a group are looked at, and so many nodes at least: amounts do not say all.
_SPARE, _ROWS_MIN = 2, 64
_NEVER = float("inf")
# Before it all pods end that say when they end.
_LAST = sys.float_info.max


class Ends(NamedTuple):
    """When pods [k] on nodes will have ended.

    Attributes:
        times: [k] the ends, in seconds since 1970.
        uids: the uids of the pods.
        rows: [k] their rows in the pod table as they were when the ends were read. Another pod may have a row by now; so
            rows serve for bounds, which may promise too much.
    """

    times: Floats
    uids: list[str]
    rows: c.Ints

    def get_first(self, n: int) -> Ends:
        """Return the first n."""
        return Ends(self.times[:n], self.uids[:n], self.rows[:n])


class Bounds(Protocol):
    """Answers by amounts alone; ``others`` [k] are rows of the pod table."""

    def count_without(
        self, kinds: Sequence[Sequence[PodRecord]], others: c.Ints
    ) -> list[c.Ints] | None:
        """Count [N] for each kind of pods how many would fit on each node at most without others; None: unknown."""

    def could_fit_without(self, entity: Entity, others: c.Ints) -> bool:
        """Whether the minimum of a group could have a node at once without others; True if it is not known."""


class Horizon:
    """Finds when groups fit on one cluster."""

    def __init__(self, cluster: Cluster, bounds: Bounds, most_percent: int) -> None:
        """``most_percent``: a group that needs more of the nodes is promised none."""
        self._cluster, self._bounds, self._most_percent = cluster, bounds, most_percent

    def find_room(
        self,
        entity: Entity,
        place: Place,
        place_group: Callable[[Entity], Plan],
        *,
        is_bounded: bool = True,
    ) -> Generator[None, None, Found]:
        """Find the first time at which a group fits, piece by piece; None if nothing that is said lets it fit.

        Args:
            entity: the group.
            place: its place in the queue.
            place_group: places a group in the open trial.
            is_bounded: no room is found that is beyond what may be promised: on too many nodes, or for too late a time.
        """
        parts: list[Ends] = []
        doubted: set[str] = set()
        latest = self._cluster.now + LONGEST_SECONDS if is_bounded else _LAST
        for part in self._list_ends(doubted, latest):
            parts.append(part)
            yield
        ends = _sort_ends(parts)
        # How many pods will have ended at each time at which one ends; at the first of them none.
        n_ended = [0, *(np.flatnonzero(np.diff(ends.times, append=_NEVER)) + 1).tolist()]
        could_fit = partial(self._could_fit, entity, ends)
        first = yield from _find_first(n_ended, could_fit)
        rooms: dict[int, LaterRoom] = {}

        def fits(n: int) -> bool:
            room = self._try(entity, place, ends.get_first(n), place_group)
            if room is not None and not (is_bounded and self._is_too_large(room)):
                rooms[n] = room
            return n in rooms

        later = n_ended[first:]
        first = yield from _find_first(later, fits)
        if first == len(later):
            return None
        return replace(rooms[later[first]], doubted=frozenset(doubted))

    def _is_too_large(self, room: LaterRoom) -> bool:
        return 100 * len(room.on) > self._most_percent * len(self._cluster.nodes.rows)

    def _could_fit(self, entity: Entity, ends: Ends, n: int) -> bool:
        """Whether amounts allow that a group fits once the first n pods have ended."""
        with self._cluster.later.set_aside():
            return self._bounds.could_fit_without(entity, ends.rows[:n])

    def _list_ends(self, doubted: set[str], latest: float) -> Iterator[Ends]:
        """Yield the ends and the uids of pods that will have ended by a time, for a part of the nodes each time.

        The namespaces of pods that run longer than was said are added to ``doubted``.
        """
        cluster, going = self._cluster, self._cluster.nominations.going
        names = iter(sorted(cluster.nodes.rows))
        while part := list(islice(names, _NODES_A_STEP)):
            times: list[float] = []
            pods: list[PodRecord] = []
            for pod in (pod for name in part for pod in cluster.pods_on.get(name, {}).values()):
                end = cluster.ends.find_end(pod, cluster.now, is_leaving=pod.uid in going)
                if end <= latest:
                    times.append(end)
                    pods.append(pod)
                if cluster.ends.is_late(pod, cluster.now):
                    doubted.add(pod.namespace)
            rows = np.array([pod.row for pod in pods], np.int64)
            yield Ends(np.array(times, np.float64), [pod.uid for pod in pods], rows)

    def _list_useful(self, entity: Entity, ends: Ends) -> list[str]:
        """List the pods of some ends that are still on nodes, without those whose end leaves no room that is needed.

        Of the nodes with room for a kind of pods, those count on which the fewest pods have to end, as many as may be
        needed for pods of this kind.
        """
        cluster = self._cluster
        kinds = list_kinds(entity.members)
        counts = self._bounds.count_without(kinds, ends.rows)
        chosen = list(range(len(ends.uids)))
        if counts is not None:
            there = cluster.ledger.pods.columns.node[ends.rows]
            useful = np.zeros(cluster.nodes.capacity, np.bool_)
            n_ended = np.bincount(there[there >= 0], minlength=useful.size)
            for like, places in zip(kinds, counts, strict=True):
                rows = np.flatnonzero(places > 0)
                rows = rows[np.argsort(n_ended[rows], kind="stable")]
                n = int(np.searchsorted(np.cumsum(places[rows]), _SPARE * len(like)))
                useful[rows[: max(n + 1, _ROWS_MIN)]] = True
            chosen = np.flatnonzero((there >= 0) & useful[there]).tolist()
        found = (cluster.pods.get(ends.uids[i]) for i in chosen)
        return [pod.uid for pod in found if pod is not None and pod.node]

    def _try(
        self,
        entity: Entity,
        place: Place,
        ends: Ends,
        place_group: Callable[[Entity], Plan],
    ) -> Found:
        """Place a group once these pods have ended; None if it does not fit."""
        cluster = self._cluster
        with cluster.later.set_aside(), cluster.trial() as trial:
            trial.take_away(*self._list_useful(entity, ends))
            plan = place_group(entity)
        if not plan.binds:
            return None
        on: dict[str, tuple[str, ...]] = {}
        team = entity.team
        # Pods beyond the minimum are promised nothing.
        for bind in plan.binds if team.teams else plan.binds[: team.count_least()]:
            on[bind.node] = (*on.get(bind.node, ()), bind.uid)
        domain = ("", ()) if plan.group is None else plan.group.domain
        until = float(ends.times[-1]) if ends.uids else cluster.now
        return LaterRoom(entity.uid, place, until, on, domain=domain)


def _sort_ends(parts: list[Ends]) -> Ends:
    """Put parts together, the earliest end first."""
    if not parts:
        return Ends(np.zeros(0), [], np.zeros(0, np.int64))
    times = np.concatenate([part.times for part in parts])
    uids = [uid for part in parts for uid in part.uids]
    order = np.argsort(times, kind="stable")
    rows = np.concatenate([part.rows for part in parts])[order]
    return Ends(times[order], [uids[i] for i in order.tolist()], rows)


def _find_first(options: Sequence[int], fits: Callable[[int], bool]) -> Generator[None, None, int]:
    """Find the place of the first option that fits, piece by piece; their number if none does.

    All options after one that fits are taken to fit as well.
    """
    short, step, n = -1, 1, len(options)
    while short + 1 < n:
        at = min(short + step, len(options) - 1)
        if fits(options[at]):
            n = at
            break
        short = at
        step *= 2
        yield
    while short + 1 < n < len(options):
        middle = (short + n) // 2
        if fits(options[middle]):
            n = middle
        else:
            short = middle
        yield
    return n
