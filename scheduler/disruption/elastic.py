"""Elastic groups lose the pods that are in the way, as long as enough others stay.

Which pods of a group are its minimum is settled by their order, without regard to where they are. Pods that have no ranks
do as well as each other: if enough of them are elsewhere, those are the minimum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, islice, product

from scheduler.api.groups.definitions import GroupKey
from scheduler.disruption.cleared import Cleared, Cost
from scheduler.disruption.group_units import Unit, is_core
from scheduler.state.cluster import Cluster
from scheduler.state.groups.running import Running
from scheduler.state.pods import PodRecord

# No more sets of units than so many are listed: as many as eight units have.
SETS_MAX = 256


def list_elastic(cluster: Cluster, units: Sequence[Unit]) -> dict[GroupKey, Running]:
    """List the groups whose minimum is among some units, and extra pods as well.

    Each comes with the pods of its teams that are not being evicted already.
    """
    with_extras = {unit.group for unit in units if unit.is_extra}
    going = cluster.nominations.going
    return {
        unit.group: [
            (minimum, [pod for pod in there if pod.uid not in going])
            for minimum, there in cluster.groups.kept.list_running(unit.group, cluster.groups)
        ]
        for unit in units
        if unit.group in with_extras and is_core(unit) and unit.group is not None
    }


def choose_extras(
    units: Sequence[Unit], elastic: Mapping[GroupKey, Running], nodes: set[str]
) -> list[Unit]:
    """Divide elastic groups anew, so that pods on some nodes are extra pods where enough others are left.

    Args:
        units: the units that were taken away.
        elastic: as ``list_elastic`` has listed them before.
        nodes: the names of the nodes that are needed.
    """
    kept = [unit for unit in units if unit.group not in elastic]
    taken: dict[GroupKey, list[PodRecord]] = {}
    for unit in units:
        if unit.group in elastic and unit.group is not None:
            taken.setdefault(unit.group, []).extend(unit.pods)
    for group, pods in taken.items():
        away = {pod.uid for pod in pods}
        core: list[PodRecord] = []
        for minimum, there in elastic[group]:
            core += [pod for pod in _list_minimum(minimum, there, nodes, away) if pod.uid in away]
        in_core = {pod.uid for pod in core}
        kept += [Unit((pod,), group, is_extra=True) for pod in pods if pod.uid not in in_core]
        if core:
            kept.append(Unit(tuple(sorted(core, key=lambda pod: pod.key)), group))
    return kept


def _list_minimum(
    minimum: int, there: Sequence[PodRecord], nodes: set[str], away: set[str]
) -> Sequence[PodRecord]:
    """List the pods that are the minimum of a team."""
    elsewhere = [pod for pod in there if pod.node not in nodes or pod.uid not in away]
    if _has_ranks(there) or len(elsewhere) < minimum:
        return there[:minimum]
    return elsewhere[:minimum]


def list_sets(
    units: Sequence[Unit], elastic: Mapping[GroupKey, Running]
) -> Iterator[tuple[Unit, ...]]:
    """List the sets of units that may go; ``elastic`` is as ``list_elastic`` lists them.

    No extra pod stays of a group that goes. Of a group with one team whose pods have no ranks, any pods may be the extra
    ones. Of more than ``SETS_MAX`` sets those with few pods of a group come first.
    """
    of_group: dict[GroupKey | None, list[Unit]] = {}
    for unit in units:
        of_group.setdefault(unit.group, []).append(unit)
    choices: list[list[tuple[Unit, ...]]] = [[(), (one,)] for one in of_group.pop(None, ())]
    for group, mine in of_group.items():
        teams = elastic.get(group, ()) if group is not None else ()
        if len(teams) == 1 and not _has_ranks(teams[0][1]):
            ((minimum, there),) = teams
            extras = [Unit((pod,), group, is_extra=True) for unit in mine for pod in unit.pods]
            most = len(there) - minimum
        else:
            extras = [one for one in mine if one.is_extra]
            most = len(extras)
        whole = [tuple(mine)] if any(map(is_core, mine)) else []
        # A group may have hundreds of pods, and 2 to the power of that many sets of them.
        choices.append([*islice(_list_subsets(extras, most), SETS_MAX), *whole])
    for chosen in islice(product(*choices), SETS_MAX):
        yield tuple(chain.from_iterable(chosen))


def split_elastic(
    units: Sequence[Unit], elastic: Mapping[GroupKey, Running]
) -> tuple[list[Unit], dict[GroupKey, int]]:
    """Split elastic groups of which any pods may be the extra ones in units of one pod each.

    Returns:
        All units, and of each group that was split how many pods may go alone.
    """
    most: dict[GroupKey, int] = {}
    for group, teams in elastic.items():
        if len(teams) == 1 and not _has_ranks(teams[0][1]):
            minimum, there = teams[0]
            most[group] = len(there) - minimum
    split = [
        Unit((pod,), unit.group, is_extra=True)
        for unit in units
        if unit.group in most
        for pod in unit.pods
    ]
    return [unit for unit in units if unit.group not in most] + split, most


def join_elastic(
    gone: Sequence[Unit], units: Sequence[Unit], most: Mapping[GroupKey, int]
) -> list[Unit]:
    """Let all ``units`` of a group go that was split if more of its pods go than may go alone."""
    n_gone = Counter(unit.group for unit in gone)
    broken = {group for group, n in most.items() if n_gone[group] > n}
    kept = [unit for unit in gone if unit.group not in broken]
    return kept + [unit for unit in units if unit.group in broken]


def find_alike(
    sets: Sequence[tuple[Cost, Sequence[Unit]]],
) -> dict[tuple[str, ...], set[int]]:
    """Find by the uids of pods that are in the same sets, of some sets of units: the numbers of these sets."""
    within: dict[str, list[int]] = {}
    for i, (_, units) in enumerate(sets):
        for pod in (pod for unit in units for pod in unit.pods):
            within.setdefault(pod.uid, []).append(i)
    alike: dict[tuple[int, ...], list[str]] = {}
    for uid, numbers in within.items():
        alike.setdefault(tuple(numbers), []).append(uid)
    return {tuple(uids): set(numbers) for numbers, uids in alike.items()}


def _list_subsets(units: Sequence[Unit], most: int) -> Iterator[tuple[Unit, ...]]:
    """Yield the subsets of at most so many units, the smallest first."""
    return chain.from_iterable(combinations(units, n) for n in range(most + 1))


def _has_ranks(pods: Sequence[PodRecord]) -> bool:
    says = (pod.member or pod.owned for pod in pods)
    return any(one is not None and one.index >= 0 for one in says)


def is_better(cost: Cost, chosen: Sequence[Unit], found: Cleared, units: Sequence[Unit]) -> bool:
    """Whether a set costs less than what was found; by names alone only if it is a set of just these ``units``.

    Among pods of a group that do as well as each other, those that come last in their order go.
    """
    if all(one in units for one in chosen):
        return cost < found.cost
    return cost[:-1] < found.cost[:-1]
