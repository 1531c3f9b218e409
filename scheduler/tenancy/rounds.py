"""Cycles over all trees in which somebody may get quota, until nobody gets any more.

Kueue deals with one workload of each queue and then begins anew; whoever is admitted or parked makes room for the next
one. Here cycles follow each other at once as long as anything comes of them, so all get quota who could get it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from scheduler.tenancy.assignments import Assignment
from scheduler.tenancy.concessions import note_given_way
from scheduler.tenancy.outcomes import Kept
from scheduler.tenancy.tenants import Tenants
from scheduler.tenancy.trees import Tree
from scheduler.tenancy.victims import Victim
from scheduler.tenancy.works import Work


class Round(NamedTuple):
    """What came of a cycle over one tree.

    Attributes:
        admitted: who got quota, and in which flavors.
        preempted: who is asked to go, for whom and why.
        left: those who were tried and got nothing; each knows why.
    """

    admitted: list[tuple[Work, Assignment]]
    preempted: list[tuple[Victim, Work]]
    left: list[Work]


def run_rounds(tenants: Tenants, now: float) -> Iterator[Round]:
    """Run cycles until nothing comes of any; yield what came of each. The caller may stop, and go on later."""
    for tree in tenants.list_due(now):
        yield from _run_tree(tenants, tree, now)


def _run_tree(tenants: Tenants, tree: Tree, now: float) -> Iterator[Round]:
    # Whoever goes on with the next flavor in the next cycle comes back to the first one after so many cycles.
    n_flavors = max((len(group.flavors) for node in tree.nodes for group in node.groups), default=0)
    n_idle, heads = 0, tenants.find_heads(tree)
    kept: Kept = {}
    while heads and n_idle <= n_flavors:
        outcome = tenants.run_cycle(tree, heads, now, kept)
        for victim, asker in outcome.preempted:
            note_given_way(tenants.works[victim.key], asker)
        yield Round(outcome.admitted, outcome.preempted, [work for work, _ in outcome.left])
        before, heads = heads, tenants.find_heads(tree)
        if outcome.admitted or outcome.preempted or heads != before:
            n_idle = 0
            continue
        if all(what.is_parked or what.is_preemptor for _, what in outcome.left):
            return
        n_idle += 1
