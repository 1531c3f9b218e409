"""The arithmetic of quotas in a tree of queues: what is available, what is used, and what a share is.

Source: Kueue (kubernetes-sigs/kueue, 2026-08), ``pkg/cache/scheduler/resource_node.go`` and ``fair_sharing.go``. A walk
to the root takes a few nanoseconds a node; nothing here looks at more than one tree.
"""

from __future__ import annotations

from scheduler.kernels._jit import kernel, part, tiny
from scheduler.schema import quotas as q
from scheduler.schema.handles import Flags1, Floats1, Ints1, Ints2

_LEAST = -(2**63)


@tiny
def add_amounts(a: int, b: int) -> int:
    """Add two amounts; what is not limited stays so, and so is what is too large for an int64."""
    if max(a, b) == q.UNLIMITED:
        return q.UNLIMITED
    if b > 0 and a > q.UNLIMITED - b:
        return q.UNLIMITED
    if b < 0 and a < _LEAST - b:
        return _LEAST
    return a + b


@tiny
def take_amounts(a: int, b: int) -> int:
    """Subtract an amount: nothing is left of a limited one if an unlimited one is taken, 0 of two unlimited ones."""
    if a == q.UNLIMITED:
        return 0 if b == q.UNLIMITED else q.UNLIMITED
    if b == q.UNLIMITED:
        return _LEAST
    if b < 0 and a > q.UNLIMITED + b:
        return q.UNLIMITED
    if b > 0 and a < _LEAST + b:
        return _LEAST
    return a - b


@tiny
def find_kept(tree: q.QuotaTree, node: int, column: int) -> int:
    """Return how much a node has left of what it does not lend to its parent."""
    return int(max(0, take_amounts(tree.local[node, column], tree.usage[node, column])))


@part
def find_available(tree: q.QuotaTree, node: int, column: int) -> int:
    """Return how much more a node may use; negative if more is used than there is."""
    # From the root down it would take a list of the nodes on the way: each node adds its own on the way up instead,
    # and what is bounded by a limit is the sum of what was added below and the rest.
    kept = 0
    least = q.UNLIMITED
    while tree.parent[node] >= 0:
        if tree.borrowing[node, column] != q.UNLIMITED:
            local = tree.local[node, column]
            stored = take_amounts(tree.subtree[node, column], local)
            taken = max(0, take_amounts(tree.usage[node, column], local))
            bound = add_amounts(take_amounts(stored, taken), tree.borrowing[node, column])
            kept = add_amounts(kept, find_kept(tree, node, column))
            least = min(least, add_amounts(kept, bound))
        else:
            kept = add_amounts(kept, find_kept(tree, node, column))
        node = tree.parent[node]
    free = take_amounts(tree.subtree[node, column], tree.usage[node, column])
    return int(min(least, add_amounts(kept, free)))


@tiny
def borrows_with(tree: q.QuotaTree, node: int, column: int, amount: int) -> bool:
    """Whether a node would use more than its quota if it used so much more."""
    return bool(tree.subtree[node, column] < add_amounts(tree.usage[node, column], amount))


@part
def find_height(tree: q.QuotaTree, queue: int, column: int, amount: int) -> int:
    """Return 2 · the height of the lowest subtree whose quota takes an amount, +1 if it is less than the whole tree.

    If none does, it is the height of the whole tree.
    """
    if not borrows_with(tree, queue, column, amount) or tree.parent[queue] < 0:
        return int(tree.parent[queue] >= 0)
    left = take_amounts(amount, find_kept(tree, queue, column))
    node = tree.parent[queue]
    while True:
        if not borrows_with(tree, node, column, left):
            return int(2 * tree.height[node] + (tree.parent[node] >= 0))
        if tree.parent[node] < 0:
            return int(2 * tree.height[node])
        left = take_amounts(left, find_kept(tree, node, column))
        node = tree.parent[node]


@kernel
def judge_amounts(
    tree: q.QuotaTree, queue: int, columns: Ints1, amounts: Ints1, judged: Ints2
) -> None:
    """Find out what a queue could have of some columns. k = columns.

    Args:
        tree: the tree.
        queue: the node of the queue.
        columns: [k]
        amounts: [k] what is asked of each.
        judged: [N_JUDGED, k] is filled in: how much more the queue may use, 0 or more; the most that it could ever
            use; the height of the lowest subtree that takes the amount; 1 if that is less than the whole tree.
    """
    for i in range(columns.size):
        column = columns[i]
        judged[q.JUDGED_AVAILABLE, i] = max(0, find_available(tree, queue, column))
        judged[q.JUDGED_MOST, i] = tree.most[queue, column]
        found = find_height(tree, queue, column, amounts[i])
        judged[q.JUDGED_HEIGHT, i] = found // 2
        judged[q.JUDGED_RECLAIMS, i] = found % 2


@part
def add_used(tree: q.QuotaTree, node: int, column: int, amount: int) -> None:
    """Let a node use so much more; what exceeds its own goes on to its parent."""
    while True:
        kept = find_kept(tree, node, column)
        tree.usage[node, column] = add_amounts(tree.usage[node, column], amount)
        if tree.parent[node] < 0 or amount <= kept:
            return
        amount = take_amounts(amount, kept)
        node = tree.parent[node]


@part
def take_used(tree: q.QuotaTree, node: int, column: int, amount: int) -> None:
    """Let a node use so much less; so does its parent, as far as the node used what was its parent's."""
    while True:
        beyond = take_amounts(tree.usage[node, column], tree.local[node, column])
        tree.usage[node, column] = take_amounts(tree.usage[node, column], amount)
        if beyond <= 0 or tree.parent[node] < 0:
            return
        amount = min(amount, beyond)
        node = tree.parent[node]


@kernel
def charge_queue(tree: q.QuotaTree, queue: int, columns: Ints1, amounts: Ints1, sign: int) -> None:
    """Add amounts [k] of some columns [k] to what a queue uses (sign 1), or take them back (-1)."""
    for i in range(columns.size):
        if sign > 0:
            add_used(tree, queue, columns[i], amounts[i])
        else:
            take_used(tree, queue, columns[i], amounts[i])


@kernel
def fits_within(
    tree: q.QuotaTree, queue: int, columns: Ints1, amounts: Ints1, may_borrow: bool
) -> bool:
    """Whether a queue may use amounts [k] of some columns [k] more; without borrowing unless it ``may_borrow``."""
    for i in range(columns.size):
        if not may_borrow and borrows_with(tree, queue, columns[i], amounts[i]):
            return False
        if amounts[i] > max(0, find_available(tree, queue, columns[i])):
            return False
    return True


@part
def find_share(tree: q.QuotaTree, node: int, said: Ints1) -> float:
    """Return 1000 times the dominant share of a node, without its weight.

    It is the largest part, over all resources, that what the node borrows is of what could be lent to it. ``said``
    [N_SHARE] gets the number of the resource and whether the node borrows anything.
    """
    said[q.SHARE_RESOURCE], said[q.SHARE_BORROWS] = -1, 0
    if tree.parent[node] < 0:
        return 0.0
    ratio, column = 0.0, 0
    while column < tree.resource.size:
        # The columns of a resource stand together, and the resources are in the order of their names.
        resource, borrowed = tree.resource[column], 0
        while column < tree.resource.size and tree.resource[column] == resource:
            if tree.named[node, column]:
                beyond = take_amounts(tree.usage[node, column], tree.subtree[node, column])
                if beyond > 0:
                    borrowed = add_amounts(borrowed, beyond)
            column += 1
        if borrowed > 0:
            said[q.SHARE_BORROWS] = 1
            if tree.lendable[node, resource] > 0:
                found = float(borrowed) * 1000.0 / float(tree.lendable[node, resource])
                if found > ratio:
                    ratio, said[q.SHARE_RESOURCE] = found, resource
    return ratio


@tiny
def compare_shares(ratio: float, weight: float, other: float, other_weight: float) -> int:
    """Compare two dominant shares by their weights: -1, 0 or 1. Whoever borrows without a weight is above all others."""
    is_first, is_second = weight == 0 and ratio > 0, other_weight == 0 and other > 0
    if is_first != is_second:
        return 1 if is_first else -1
    if not is_first:
        ratio = ratio / weight if ratio != 0 else 0.0
        other = other / other_weight if other != 0 else 0.0
    return (ratio > other) - (ratio < other)


@kernel
def find_shares(tree: q.QuotaTree, nodes: Ints1, ratios: Floats1, said: Ints2) -> None:
    """Find the dominant shares of some nodes. k = nodes.

    Args:
        tree: the tree.
        nodes: [k]
        ratios: [k] is filled in: 1000 times the share without the weight.
        said: [k, N_SHARE] is filled in, see ``find_share``.
    """
    for i in range(nodes.size):
        ratios[i] = find_share(tree, nodes[i], said[i])


@kernel
def weigh_path(
    tree: q.QuotaTree,
    asked: q.Asked,
    path: Ints1,
    ratios: Floats1,
    borrows: Flags1,
    said: Ints1,
) -> None:
    """Find the shares that a queue and the nodes above it would have with what is asked. k = nodes.

    Args:
        tree: the tree, which is as before in the end.
        asked: what a workload asks of the queue.
        path: [k] the queue and the nodes above it, without the root.
        ratios: [k] is filled in: 1000 times the share without the weight.
        borrows: [k] is filled in: whether a node would borrow any of what is asked.
        said: [N_SHARE] working space.
    """
    _charge(tree, asked, 1)
    for i in range(path.size):
        ratios[i] = find_share(tree, path[i], said)
        borrows[i] = False
        for k in range(asked.columns.size):
            column = asked.columns[k]
            if asked.amounts[k] > 0 and tree.named[path[i], column]:
                borrows[i] = borrows[i] or borrows_with(tree, path[i], column, 0)
    _charge(tree, asked, -1)


@part
def _charge(tree: q.QuotaTree, asked: q.Asked, sign: int) -> None:
    for k in range(asked.columns.size):
        if sign > 0:
            add_used(tree, asked.queue, asked.columns[k], asked.amounts[k])
        else:
            take_used(tree, asked.queue, asked.columns[k], asked.amounts[k])
