"""What is kept until the end of a cycle for an entry for which nobody may be asked to go.

Source: Kueue (2026-08), ``pkg/scheduler/scheduler.go``: ``reserveCapacityForUnreclaimablePreempt``.
"""

from __future__ import annotations

from scheduler.api.queues.definitions import UNLIMITED
from scheduler.tenancy.ordering import Entry
from scheduler.tenancy.trees import Amounts, Column, Tree


def list_reserved(tree: Tree, entry: Entry) -> Amounts:
    """List what is kept for an entry: up to what its queue may use."""
    handle, node = tree.handle, tree.queues[entry.queue.name]
    kept: dict[Column, int] = {}
    for column, amount in entry.usage.items():
        k = tree.columns[column]
        used, nominal = int(handle.usage[node, k]), int(handle.subtree[node, k])
        if entry.assignment.height > 0:
            limit = int(handle.borrowing[node, k])
            bound = amount if limit == UNLIMITED else nominal + limit - used
            # A queue that uses more than it may keeps nothing more; Kueue counts less than nothing.
            kept[column] = max(0, min(amount, bound))
        else:
            kept[column] = max(0, min(amount, nominal - used))
    return kept
