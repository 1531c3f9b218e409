"""Chooses who goes of many units: each stays if the group fits somewhere without its going, the dearest first.

Where a group is placed once all units are gone says little of who has to go: there may be another place, where fewer or less
important pods are. Of few units all sets are compared; these are too many for that.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

from scheduler.api.groups.definitions import GroupKey
from scheduler.disruption.cleared import Cleared, choose_cheaper
from scheduler.disruption.elastic import join_elastic, list_elastic, split_elastic
from scheduler.disruption.group_units import Unit, is_core
from scheduler.disruption.units import find_costs
from scheduler.disruption.weighing import find_hours, find_worth
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity

# So often a group is tried, and so many pods are taken away in these tries, at most.
_TRIES_MAX, _TAKEN_MAX = 24, 16_384
# Pods that are alike were put on the nodes that cost least to clear. If more units than so many may go for them, they are
# tried elsewhere only where a budget or a higher priority may be spared.
_UNITS_FOR_ALIKE = 16


class Tries(NamedTuple):
    """How a group is tried at one place.

    Attributes:
        could_fit: whether it may fit if some units go; False only if it certainly does not.
        fits: whether it fits if some units go.
        clear: places it if some units go, and spares those of them that need not go.
    """

    could_fit: Callable[[Sequence[Unit]], bool]
    fits: Callable[[Sequence[Unit]], bool]
    clear: Callable[[Sequence[Unit]], Cleared | None]


def spare_dearest(
    cluster: Cluster, entity: Entity, found: Cleared, units: Sequence[Unit], tries: Tries
) -> Cleared:
    """Find cheaper room for a group than was found at a place, where ``units`` may go; return the cheaper one."""
    if not found.units or not _is_worth_while(entity, found, units, tries):
        return found
    others = _find_room(cluster, entity, units, tries)
    # Of rooms that differ in names alone, only in this one is it known that nobody goes in vain.
    if others is not None and others.cost[:-1] <= found.cost[:-1]:
        return others
    # The tries have ended before all were judged, or the dearest are spared at the cost of more others.
    return choose_cheaper(found, _find_room(cluster, entity, found.units, tries)) or found


def _find_room(
    cluster: Cluster, entity: Entity, units: Sequence[Unit], tries: Tries
) -> Cleared | None:
    """Find room for a group among units, all of which are enough; None if the tries have not come to any."""
    split, most = split_elastic(units, list_elastic(cluster, units))
    order = _order_by_worth(cluster, entity, split, most)

    def fits(gone: Sequence[Unit]) -> bool:
        all_gone = join_elastic(gone, units, most)
        return tries.could_fit(all_gone) and tries.fits(all_gone)

    n_tries = min(_TRIES_MAX, 1 + _TAKEN_MAX // sum(len(unit.pods) for unit in units))
    return tries.clear(join_elastic(choose_units(order, fits, n_tries), units, most))


def _is_worth_while(entity: Entity, found: Cleared, units: Sequence[Unit], tries: Tries) -> bool:
    """Whether cheaper room than was found is likely."""
    if entity.team.template is None or len(units) <= _UNITS_FOR_ALIKE:
        return True
    if found.cost.budgets or any(one.where and one.where.slices for one in entity.team.list_all()):
        return True
    lower = [unit for unit in units if unit.priority < found.cost.priority]
    return bool(lower) and tries.could_fit(lower)


def _order_by_worth(
    cluster: Cluster, entity: Entity, units: Sequence[Unit], split: Container[GroupKey | None]
) -> list[Unit]:
    """Order units that may all go, the dearest first; pods of groups that are ``split`` follow no others."""
    pods = [pod for unit in units for pod in unit.pods]
    costs, hours = find_costs(cluster, pods), find_hours(cluster, entity, pods)
    alone = [
        one._replace(group=None, is_extra=False) if one.group in split else one for one in units
    ]
    worth = [find_worth(one, costs, hours) for one in alone]
    return [units[i] for i in sorted(range(len(units)), key=worth.__getitem__)]


def choose_units(
    units: Sequence[Unit], fits: Callable[[Sequence[Unit]], bool], most: int
) -> list[Unit]:
    """Choose the units that go.

    Whoever has to go is found by halving: of the units that are left, the first ones stay that can stay together.

    Args:
        units: those that may go, the dearest first, extra pods after their groups; the group fits if all of them go.
        fits: whether the group fits if some units go.
        most: how often this is tried; units that have not been judged then go.
    """
    gone: list[Unit] = []
    rest = list(units)
    while rest:
        # So many of the rest can stay for certain, and perhaps so many.
        n_stay, n_perhaps = 0, len(rest)
        while n_stay < n_perhaps:
            if not most:
                return gone + rest[n_stay:]
            most -= 1
            n = (n_stay + n_perhaps + 1) // 2
            if fits(gone + rest[n:]):
                n_stay = n
            else:
                n_perhaps = n - 1
        if n_stay == len(rest):
            break
        unit, rest = rest[n_stay], rest[n_stay + 1 :]
        gone.append(unit)
        if is_core(unit):
            # No extra pod stays of a group that goes.
            gone += [one for one in rest if one.group == unit.group]
            rest = [one for one in rest if one.group != unit.group]
    return gone
