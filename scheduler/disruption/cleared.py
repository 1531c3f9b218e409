"""Room for a group, and what it costs."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api.door.decisions import Bind
from scheduler.disruption.group_units import Unit
from scheduler.schema import columns as c


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


def choose_cheaper(one: Cleared | None, other: Cleared | None) -> Cleared | None:
    """Return the room that costs less; of equal ones the first."""
    if one is None or other is None:
        return other if one is None else one
    return other if other.cost < one.cost else one
