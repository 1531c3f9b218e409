"""A search for room in pieces, between which other decisions are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scheduler.api.door.decisions import Plan
from scheduler.disruption import protectors
from scheduler.disruption.cleared import Cleared, choose_cheaper
from scheduler.disruption.clearing import Clearing, PlaceAmong
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity

# So many pods on nodes are looked at in one piece of a search, which takes a few milliseconds.
_PODS_A_PIECE = 256
# To narrow a place down takes as long as a search among so many times fewer pods.
_PODS_NARROWED = 8
# So many searches go on side by side; one more ends the oldest, which begins anew.
_SEARCHES_MAX = 1024


class Unfinished(NamedTuple):
    """The search goes on with the next call."""


UNFINISHED = Unfinished()


@dataclass(slots=True)
class Search:
    """A search for room that is done in pieces.

    Attributes:
        size: how many places there are, and how many nodes the table of nodes has room for.
        n_done: how many of them have been looked at.
        parts: what is to be looked at of the next one; None if it has not been narrowed down.
        best: the cheapest room so far.
        plan: why the group fits nowhere as things were at the end of the last piece.
        seen: the state of the cluster then.
        is_stale: anything has changed between two pieces.
    """

    entity: Entity
    size: tuple[int, int]
    n_done: int = 0
    parts: list[c.Flags] | None = None
    best: Cleared | None = None
    plan: Plan | None = None
    seen: tuple[int, ...] = ()
    is_stale: bool = False


class Pieces:
    """The searches for room that go on, each for one group."""

    def __init__(self, cluster: Cluster, clearing: Clearing) -> None:
        self._cluster, self._clearing = cluster, clearing
        # By the uid of the group.
        self._searches: dict[str, Search] = {}

    def go_on(
        self, entity: Entity, plan: Plan, places: Sequence[c.Flags], place: PlaceAmong
    ) -> Cleared | Unfinished | None:
        """Find the place as ``Clearing.find_room`` does, but in pieces: look at a few places with each call.

        Other decisions may be made in between: ``begin_piece`` notes it. Then the best place is looked at once more in
        the end, and if it is not as cheap any more, all places are looked at again in one piece. ``plan`` says why the
        group fits nowhere as things are.
        """
        search = self._searches.get(entity.uid)
        # Room for more nodes in the table makes all flags of nodes longer.
        size = len(places), self._cluster.nodes.capacity
        if search is None or search.entity is not entity or search.size != size:
            if len(self._searches) >= _SEARCHES_MAX:
                # A group that is gone or has changed has left its search behind.
                del self._searches[next(iter(self._searches))]
            search = self._searches[entity.uid] = Search(entity, size)
        n_pods = 0
        while search.n_done < len(places):
            n_pods += self._take_step(entity, search, places[search.n_done], place)
            if n_pods >= _PODS_A_PIECE and search.n_done < len(places):
                search.plan, search.seen = plan, self._read_state()
                return UNFINISHED
        del self._searches[entity.uid]
        best = search.best
        if best is None or not search.is_stale:
            return best
        again = self._clearing.clear_place(entity, best.rows, place)
        if again is not None and again.cost <= best.cost:
            return again
        return self._clearing.find_room(entity, places, place)

    def _take_step(self, entity: Entity, search: Search, rows: c.Flags, place: PlaceAmong) -> int:
        """Narrow down the next place of a search, or look at a part of it; return how many pods that is worth."""
        self._cluster.pauses.take()
        if search.parts is None:
            parts = self._clearing.list_parts(entity, rows)
            search.parts, n_pods = parts, self._clearing.count_pods(rows) // _PODS_NARROWED
            is_done = not parts
        else:
            part = search.parts.pop(0)
            n_pods = self._clearing.count_pods(part)
            found = self._clearing.clear_place(entity, part, place)
            search.best = choose_cheaper(search.best, found)
            is_done = found is not None or not search.parts
        if is_done:
            search.parts, search.n_done = None, search.n_done + 1
        return n_pods

    def begin_piece(self, entity: Entity) -> Plan | None:
        """Note whether anything has changed since the last piece; to be called before anything is tried for the group.

        If nothing has, the plan that says why the group fits nowhere is as it was; it is returned.
        """
        search = self._searches.get(entity.uid)
        if search is None or search.entity is not entity:
            return None
        if search.seen != self._read_state():
            search.is_stale = True
            return None
        return search.plan

    def _read_state(self) -> tuple[int, ...]:
        """Return numbers that change with anything that may decide who goes, or where a group fits."""
        cluster = self._cluster
        return (
            cluster.moved.position,
            cluster.described.position,
            cluster.nominations.version,
            cluster.groups.changes.position,
            cluster.terms.version,
            cluster.storage.versions.total(),
            *protectors.get_versions(cluster),
        )
