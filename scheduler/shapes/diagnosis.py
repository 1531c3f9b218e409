"""Why a shape fits nowhere: the reasons of all nodes together."""

from __future__ import annotations

from collections import Counter

import numpy as np

from scheduler.api.door.decisions import Diagnosis
from scheduler.plugins import table
from scheduler.plugins.contract import Judged
from scheduler.plugins.refusal import Refusal
from scheduler.schema import columns as c
from scheduler.schema.world import World
from scheduler.shapes.boards import Shape
from scheduler.state.cluster import Cluster


def list_rows(cluster: Cluster) -> c.Ints:
    """List the rows of all nodes by rank, so that the first of several equal nodes is always the same node."""
    rows = np.fromiter(cluster.nodes.rows.values(), np.int64, len(cluster.nodes.rows))
    ordered: c.Ints = rows[np.argsort(cluster.nodes.columns.rank[rows])]
    return ordered


def gather_refusals(
    cluster: Cluster, shape: Shape, world: World, rows: c.Ints, bits: c.Ints
) -> Judged:
    """Put together rows and their refusal bits, from which rules make the reasons."""
    return Judged(shape.asked, shape.ask, cluster, world, rows, bits)


def refuse_for_claims(cluster: Cluster, refusal: Refusal) -> Diagnosis:
    """Diagnose a pod whose claims alone keep it off every node."""
    n = len(cluster.nodes.rows)
    return Diagnosis(n, ((refusal.text, n),), n, (), (refusal.rule,), refusal.text)


def sum_up_reasons(refused: Judged) -> Diagnosis:
    """Count how many rows have which reason, and collect the figures behind the reasons."""
    summaries = table.sum_up_reasons(refused)
    counts: Counter[str] = Counter()
    for _, one in summaries:
        counts.update(dict(one.reasons))
    return Diagnosis(
        refused.rows.size,
        tuple(sorted(counts.items())),
        sum(one.unresolvable for _, one in summaries),
        # A node that the last rule refuses has passed all other rules: it comes closest, so its figures come first.
        tuple(detail for _, one in reversed(summaries) for detail in one.details),
        tuple(dict.fromkeys(rule.name for rule, _ in summaries)),
        next((one.reasons[0][0] for rule, one in summaries if rule.is_of_pod), ""),
    )
