"""The bundle by which a node is asked for whose pods a pod of higher priority may take the place."""

from __future__ import annotations

import numpy as np

from scheduler.schema.handles import Flags1, Handle, Ints, Ints1, Ints2

# What came of asking a node, in Prey.figures: see PREY_CODE. Others may stand where no node was asked.
PREY_NOT_ASKED, PREY_NONE, PREY_NOT_ENOUGH, PREY_ENOUGH = 0, 1, 2, 3
# How good it is to take a node: fewer violated budgets, the lowest of the highest priorities of a victim, the least
# sum of priorities, the fewest victims, the latest start of the oldest victim of the highest priority.
(
    PREY_CODE,
    PREY_VIOLATIONS,
    PREY_TOP,
    PREY_SUM,
    PREY_COUNT,
    PREY_START,
    N_PREY,
) = range(7)
# Above every priority.
NO_PRIORITY = 1 << 62


class Prey(Handle):
    """Whom a pod may send away, and what came of it. N = nodes, M = rows of pods, T = tallies, W = words of bits.

    P is the most pods on a node; S = sets of budgets, B = budgets.
    """

    priority: int  # of the pod that needs room
    rows: Ints1  # [n] node rows to ask
    words: Ints1  # [n] why each of them is refused for what it is, whoever goes
    first: Ints1  # [N + 1] where the pods of each node begin in ``pods``
    pods: Ints1  # [M] rows of the pod table, node by node
    sets: Ints1  # [M] which set of budgets covers a pod, -1 for none
    runs: Ints2  # [2, S] first position and number of budgets of each set in ``budgets``
    budgets: Ints1  # [..]
    allowed: Ints1  # [B] how many more pods may go
    left: Ints1  # [B] working space
    gains: Ints2  # [T, M] what each pod adds to each tally, where that can refuse a node
    fewest: Ints1  # [T] working space: what the emptiest domains have with all pods in place
    order: Ints1  # [P] working space; then the pods that go from the last node, the most important first
    violates: Flags1  # [P] working space, likewise of ``order``
    goes: Flags1  # [P] working space
    figures: Ints2  # [N_PREY, N] what came of it, see PREY_*
    refused: Ints2  # [W, N] why a node is refused even when all whom the pod may send away are gone


def figures(capacity: int) -> Ints:
    """Figures of nodes of which none was asked."""
    return np.zeros((N_PREY, capacity), np.int64)
