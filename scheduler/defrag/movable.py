"""Which running pods may be moved, and why others stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scheduler.defrag.contract import Terms
from scheduler.disruption import units
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.pods import Life, PodRecord

OTHERS = "that another scheduler places"
LEAVING = "that are leaving"
NEW = "that have not run for the minimum"
GROUPED = "of a group that is placed as a whole"
CLAIMED = "with a ResourceClaim"
MALFORMED = "with a mistake or with something that Evenkeel does not place"
BUDGETED = "that a PodDisruptionBudget keeps"
TWICE = "that several PodDisruptionBudgets cover, so that the API server never evicts them"


class Movable(NamedTuple):
    """Who may be moved.

    Attributes:
        uids: the pods that may be moved, with the seconds for which each has run.
        stays: (why pods may not be moved, how many), the most first.
    """

    uids: dict[str, float]
    stays: tuple[tuple[str, int], ...]


def find_movable(
    cluster: Cluster, terms: Terms, find_minimum: Callable[[PodRecord], float]
) -> Movable:
    """Find the pods that may be moved; ``find_minimum``: for how long the queue of a pod lets it run at least."""
    start = cluster.ledger.pods.columns.start
    stays: Counter[str] = Counter()
    found: dict[str, PodRecord] = {}
    runs: dict[str, float] = {}
    for pod in cluster.pods.values():
        if pod.life != Life.BOUND or pod.row < 0 or pod.uid in terms.own:
            continue
        begun = int(start[pod.row])
        runs[pod.uid] = 0.0 if begun == c.NOT_STARTED else max(0.0, terms.now - begun)
        minimum = max(terms.run_seconds, find_minimum(pod))
        reason = _find_reason(cluster, pod, terms) or (NEW if runs[pod.uid] < minimum else "")
        if reason:
            stays[reason] += 1
        else:
            found[pod.uid] = pod
    kept = _find_budgeted(cluster, list(found.values()))
    stays.update(kept.values())
    return Movable(
        {uid: runs[uid] for uid in found if uid not in kept},
        tuple(sorted((+stays).items(), key=lambda one: (-one[1], one[0]))),
    )


def _find_reason(cluster: Cluster, pod: PodRecord, terms: Terms) -> str:
    """Find why a pod may not be moved by what is known of it alone; empty if it may."""
    if pod.uid in terms.kept:
        return terms.kept[pod.uid]
    if pod.deleting or pod.evicted or pod.uid in cluster.nominations.going:
        return LEAVING
    if not pod.ours:
        return OTHERS
    if cluster.groups.find_group(pod.uid) is not None:
        return GROUPED
    if pod.problem is not None or pod.template.problem is not None:
        return MALFORMED
    return CLAIMED if cluster.claims.has_claims(pod) else ""


def _find_budgeted(cluster: Cluster, pods: list[PodRecord]) -> dict[str, str]:
    """Find why budgets keep pods, by uid; each by itself, because one goes after the other."""
    costs = units.find_costs_alone(cluster, np.array([pod.row for pod in pods], np.int64))
    found = {pod.uid: BUDGETED for pod, cost in zip(pods, costs.tolist(), strict=True) if cost}
    # Every budget counts, whatever it allows: the API server refuses where there is more than one.
    size = cluster.ledger.pods.columns.node.size
    sets = cluster.budgets.make_sets(pods, size, np.iinfo(np.int64).max)
    for pod in pods:
        if (of := int(sets.sets[pod.row])) >= 0 and sets.runs[1, of] > 1:
            found[pod.uid] = TWICE
    return found
