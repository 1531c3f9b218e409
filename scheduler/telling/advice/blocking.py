"""For rules that count pods: the pods, or the number of pods, because of which a rule refuses a node."""

from __future__ import annotations

import numpy as np

from scheduler.plugins import table
from scheduler.plugins.contract import Tally
from scheduler.plugins.words import write_some
from scheduler.schema import columns as c
from scheduler.schema import domains as of_domains
from scheduler.shapes.boards import Shape
from scheduler.telling.advice.asking import Asking

# The most pods that are tried: each is removed in a trial to find out whether the rule counts it.
_LOOKED_AT_MAX = 200


def find_blocking(asking: Asking, shape: Shape, row: int) -> dict[str, list[str]]:
    """Find what blocks a node, by rule; rules that count no pods, or may count too many, have no entry."""
    asking.takes(shape, row)  # brings the tallies of the shape up to date
    said: dict[str, list[str]] = {}
    for tally, figures, there in shape.counted.find_refusing_tallies(row):
        text = _write_text(asking, tally, figures, there, row)
        if text:
            said.setdefault(table.REASONS[int(figures[of_domains.TALLY_BIT])][0].name, []).append(
                text
            )
    return said


def _write_text(asking: Asking, tally: Tally, figures: c.Ints, there: c.Flags, row: int) -> str:
    facts = asking.cluster.nodes.facts[row]
    value = facts.labels.get(tally.key) if facts is not None else None
    if tally.key and value is None:
        return f"it has no label {tally.key}"
    where = f"{tally.key}={value}" if tally.key else "the node"
    if tally.kind == of_domains.NEAR:
        return f"no pod that matches all of its affinity terms is in {where}"
    if tally.kind == of_domains.EVEN:
        n = int(tally.count.list_by_row(there.size)[there].sum()) if tally.count else 0
        fewest, skew = int(figures[of_domains.TALLY_FEWEST]), int(figures[of_domains.TALLY_SKEW])
        return f"pods counted in {where}: {n}; fewest in any domain: {fewest}; maxSkew {skew}"
    named = _list_pods_in_the_way(asking, tally, there) if tally.kind == of_domains.APART else []
    return f"in the way in {where}: {write_some(named, 'pod')}" if named else ""


def _list_pods_in_the_way(asking: Asking, tally: Tally, there: c.Flags) -> list[str]:
    """List the pods that a tally counts; none if too many pods may count."""
    count, cluster = tally.count, asking.cluster
    if count is None:
        return []
    rows = np.flatnonzero(there & (count.list_by_row(there.size) > 0)).tolist()
    pods = [(row, pod) for row in rows for pod in asking.list_pods(row)]
    named = []
    for row, pod in pods if len(pods) <= _LOOKED_AT_MAX else ():
        before = int(count.list_by_row(there.size)[row])
        with cluster.trial() as trial:
            trial.take_away(pod.uid)
            if int(count.list_by_row(there.size)[row]) < before:
                named.append(pod.key)
    return named
