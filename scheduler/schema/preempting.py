"""The bundles by which a pod of higher priority finds out who would have to go from a place. A place is a node today."""

from __future__ import annotations

import numpy as np

from scheduler.schema.handles import Flags1, Handle, Ints, Ints1, Ints2

# What came of asking a place, in its figures: see PLACE_CODE. Others may stand where no place was asked.
NOT_ASKED, NONE, NOT_ENOUGH, ENOUGH = 0, 1, 2, 3
# How good it is to take a place: the least cost by the protectors, the lowest priority of the first victim, the least
# sum of priorities, the fewest victims, the latest start of the oldest victim of the highest priority.
(
    PLACE_CODE,
    PLACE_COST,
    PLACE_TOP,
    PLACE_SUM,
    PLACE_COUNT,
    PLACE_START,
    N_FIGURES,
) = range(7)
# Above every priority.
NO_PRIORITY = 1 << 62


class Units(Handle):
    """Who may go from places. A unit goes as a whole or stays. n = places, U = units.

    The units of a place stand together, the most important first. Pods of a unit may be on other nodes than its place.
    """

    rows: Ints1  # [n] node rows of the places
    first: Ints1  # [n + 1] where the units of each place begin
    begins: Ints1  # [U + 1] where the pods of each unit begin in ``pods``
    pods: Ints1  # [..] rows of the pod table
    cost: Ints1  # [U] what protectors say that its going costs


class BudgetSets(Handle):
    """The budgets of some pods. M = rows of pods, S = sets of budgets, B = budgets."""

    sets: Ints1  # [M] which set of budgets covers a pod, -1 for none
    runs: Ints2  # [2, S] first position and number of budgets of each set in ``budgets``
    budgets: Ints1  # [..]
    allowed: Ints1  # [B] how many more pods may go
    left: Ints1  # [B] working space


class Search(Handle):
    """A search for those who have to go, and what came of it. N = nodes, M = rows of pods, T = tallies, W = words."""

    words: Ints1  # [n] why each place is refused for what it is, whoever goes
    gains: Ints2  # [T, M] what each pod adds to each tally, where that can refuse a node
    fewest: Ints1  # [T] working space: what the emptiest domains have with all pods in place; -1: count anew
    order: Ints1  # [U] working space: the units of a place in the order in which they are put back
    goes: Flags1  # [U] who has to go
    figures: Ints2  # [N_FIGURES, N] what came of it, see PLACE_*
    refused: Ints2  # [W, N] why a node is refused even when all who may go are gone


def make_figures(capacity: int) -> Ints:
    """Figures of places of which none was asked."""
    return np.zeros((N_FIGURES, capacity), np.int64)
