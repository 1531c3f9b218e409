"""The time by which a group fits: once enough of the pods have ended that say how long they run.

The pods end one after another. In a trial those that end first leave, and the group is placed: twice as many pods leave
in each trial until the group fits, then the first end is found that suffices by halving. More room never hurts a group,
but for rules about other pods that are gone by then; the end that is found fits in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import islice

from msgspec.structs import replace

from scheduler.api.door.decisions import Plan
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity
from scheduler.state.later import LaterRoom, Place

# The ends of so many nodes' pods are read in one piece of work.
_NODES_A_STEP = 128
# No room is promised for later than in a day: nodes are kept free until then.
_LONGEST_SECONDS = 86_400.0

Found = LaterRoom | None
# The ends of pods, with their uids.
Ends = list[tuple[float, str]]


class Horizon:
    """Finds when groups fit on one cluster."""

    def __init__(self, cluster: Cluster, most_percent: int) -> None:
        """``most_percent``: a group that needs more of the nodes is promised none."""
        self._cluster, self._most_percent = cluster, most_percent

    def find_room(
        self, entity: Entity, place: Place, place_group: Callable[[Entity], Plan]
    ) -> Generator[None, None, Found]:
        """Find the first time at which a group fits, piece by piece; None if nothing that is said lets it fit.

        Args:
            entity: the group.
            place: its place in the queue.
            place_group: places a group in the open trial.
        """
        ends: Ends = []
        doubted: set[str] = set()
        for part in self._list_ends(doubted):
            ends += part
            yield
        ends.sort()
        # So many of the first ends are not enough, and so many are.
        short, n = 0, min(1, len(ends))
        found = self._try(entity, place, [], place_group)
        while found is None and n > short:
            n = _include_equal(ends, n)
            if (found := self._try(entity, place, ends[:n], place_group)) is not None:
                break
            yield
            short, n = n, min(2 * n, len(ends))
        while found is not None and ends and short + 1 < n:
            yield
            middle = _include_equal(ends, (short + n) // 2)
            if middle >= n:
                # All ends in between are equal to the last one.
                middle = _exclude_equal(ends, (short + n) // 2)
                if middle <= short:
                    break
            better = self._try(entity, place, ends[:middle], place_group)
            if better is None:
                short = middle
            else:
                n, found = middle, better
        return None if found is None else replace(found, doubted=frozenset(doubted))

    def _list_ends(self, doubted: set[str]) -> Iterator[Ends]:
        """Yield the ends and the uids of pods that will have ended at some time, for a part of the nodes each time.

        The namespaces of pods that run longer than was said are added to ``doubted``.
        """
        cluster, going = self._cluster, self._cluster.nominations.going
        names = iter(sorted(cluster.nodes.rows))
        while part := list(islice(names, _NODES_A_STEP)):
            ends: Ends = []
            for pod in (pod for name in part for pod in cluster.pods_on.get(name, {}).values()):
                end = cluster.ends.find_end(pod, cluster.now, is_leaving=pod.uid in going)
                if end <= cluster.now + _LONGEST_SECONDS:
                    ends.append((end, pod.uid))
                if cluster.ends.is_late(pod, cluster.now):
                    doubted.add(pod.namespace)
            yield ends

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
            trial.take_away(
                *(uid for _, uid in ends if uid in cluster.pods and cluster.pods[uid].node)
            )
            plan = place_group(entity)
        if not plan.binds:
            return None
        on: dict[str, tuple[str, ...]] = {}
        team = entity.team
        # Pods beyond the minimum are promised nothing.
        kept = plan.binds if team.teams else plan.binds[: team.count_least()]
        for bind in kept:
            on[bind.node] = (*on.get(bind.node, ()), bind.uid)
        if 100 * len(on) > self._most_percent * len(cluster.nodes.rows):
            return None
        domain = ("", ()) if plan.group is None else plan.group.domain
        until = ends[-1][0] if ends else cluster.now
        return LaterRoom(entity.uid, place, until, on, domain=domain)


def _include_equal(ends: Ends, n: int) -> int:
    """Count the first n ends and all that are equal to the last of them."""
    while n < len(ends) and ends[n][0] == ends[n - 1][0]:
        n += 1
    return n


def _exclude_equal(ends: Ends, n: int) -> int:
    """Count the ends before the n-th that are less than it."""
    while n > 0 and ends[n - 1][0] == ends[n][0]:
        n -= 1
    return n
