"""Why a shape fits nowhere: the reasons of all nodes, summed up."""

from __future__ import annotations

from collections import Counter

import numpy as np

from scheduler.api.door.decisions import Diagnosis
from scheduler.plugins import table
from scheduler.plugins.contract import Judged
from scheduler.plugins.volumes.refusals import Refusal
from scheduler.schema import columns as c
from scheduler.schema.world import World
from scheduler.shapes.boards import Shape
from scheduler.state.cluster import Cluster


def all_rows(cluster: Cluster) -> c.Ints:
    """Rows of all nodes, by rank: of several that are as good, the first one found is always the same."""
    rows = np.fromiter(cluster.nodes.rows.values(), np.int64, len(cluster.nodes.rows))
    ordered: c.Ints = rows[np.argsort(cluster.nodes.columns.rank[rows])]
    return ordered


def gather_refusals(
    cluster: Cluster, shape: Shape, world: World, rows: c.Ints, bits: c.Ints
) -> Judged:
    """Rows and their refusal bits, for rules to tell why."""
    return Judged(shape.asked, shape.ask, cluster, world, rows, bits)


def refuse_for_claims(cluster: Cluster, refusal: Refusal) -> Diagnosis:
    """What keeps a pod from every node for its claims, without a look at any."""
    n = len(cluster.nodes.rows)
    return Diagnosis(n, ((refusal.text, n),), n, (), (refusal.rule,), refusal.text)


def sum_up(refused: Judged) -> Diagnosis:
    """How many of the rows gave which reason, and the figures behind that."""
    summaries = table.sum_up(refused)
    counts: Counter[str] = Counter()
    for _, one in summaries:
        counts.update(dict(one.reasons))
    return Diagnosis(
        refused.rows.size,
        tuple(sorted(counts.items())),
        sum(one.unresolvable for _, one in summaries),
        # What the last rule refuses has passed all others: it came closest.
        tuple(detail for _, one in reversed(summaries) for detail in one.details),
        tuple(dict.fromkeys(rule.name for rule, _ in summaries)),
        next((one.reasons[0][0] for rule, one in summaries if rule.is_of_pod), ""),
    )
