"""Room for a group, what it costs, and a search for room that goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from scheduler.api.door.decisions import Bind, Plan
from scheduler.disruption.group_units import Unit
from scheduler.schema import columns as c
from scheduler.state.entities import Entity


class Cost(NamedTuple):
    """What it costs if some units go; lower costs come first, figure by figure.

    Attributes:
        budgets: how many pods go although a budget forbids it.
        priority: the highest priority of a pod that goes.
        groups: how many groups lose more than extra pods.
        hours: the hours that the cards of the pods have worked since they started, until the group came.
        pods: how many pods go.
        names: their names.
    """

    budgets: int
    priority: int
    groups: int
    hours: float
    pods: int
    names: tuple[str, ...]


class Cleared(NamedTuple):
    """Room for a group.

    Attributes:
        binds: where its pods go once the victims are gone, with their cards.
        units: the units that have to go.
        cost: what their going costs.
        rows: [N] the nodes of the domain, [0] for all nodes.
    """

    binds: tuple[Bind, ...]
    units: tuple[Unit, ...]
    cost: Cost
    rows: c.Flags


class Unfinished(NamedTuple):
    """The search goes on with the next call."""


UNFINISHED = Unfinished()


@dataclass(slots=True)
class Search:
    """A search for room that is done in pieces.

    Attributes:
        n_places: how many places there are.
        n_done: how many of them have been looked at.
        is_narrowed: of the next one the nodes that cost least have been looked at, and are not enough.
        best: the cheapest room so far.
        plan: why the group fits nowhere as things were at the end of the last piece.
        seen: the state of the cluster then.
        is_stale: anything has changed between two pieces.
    """

    entity: Entity
    n_places: int
    n_done: int = 0
    is_narrowed: bool = False
    best: Cleared | None = None
    plan: Plan | None = None
    seen: tuple[int, ...] = ()
    is_stale: bool = False


def choose_cheaper(one: Cleared | None, other: Cleared | None) -> Cleared | None:
    """Return the room that costs less; of equal ones the first."""
    if one is None or other is None:
        return other if one is None else one
    return other if other.cost < one.cost else one
