"""Who has to give quota back so that a workload may have it: by priority and position in the tree, or by shares.

Sources: Kueue (2026-08), ``pkg/scheduler/preemption``: ``classicalPreemptions``, ``runFirstFsStrategy``,
``runSecondFsStrategy`` and ``fillBackWorkloads``. A search pauses where the quota suffices, because only the caller
knows whether there is a place, too; it goes on when it is called again.

The tree is as if all who were taken had gone, until ``put_back`` puts them back.
"""

from __future__ import annotations

from scheduler.kernels import quotas
from scheduler.kernels._jit import kernel, part
from scheduler.schema import quotas as q
from scheduler.schema.handles import Ints1


@part
def _move(tree: q.QuotaTree, held: q.Held, row: int, sign: int) -> None:
    """Take what a workload holds off its queue (-1), or add it again (1)."""
    for column in range(held.amounts.shape[1]):
        amount = held.amounts[row, column]
        if amount > 0:
            if sign > 0:
                quotas.add_used(tree, held.node[row], column, amount)
            else:
                quotas.take_used(tree, held.node[row], column, amount)


@part
def _take(tree: q.QuotaTree, held: q.Held, going: q.Going, i: int) -> None:
    """Let a candidate go."""
    _move(tree, held, going.rows[i], -1)
    going.taken[going.n_taken[0]] = i
    going.n_taken[0] += 1


@part
def _is_within(tree: q.QuotaTree, node: int, needed: Ints1) -> bool:
    """Whether a node uses no more than its quota of the needed columns."""
    for k in range(needed.size):
        if tree.subtree[node, needed[k]] < tree.usage[node, needed[k]]:
            return False
    return True


@part
def _fits(tree: q.QuotaTree, asked: q.Asked, may_borrow: bool) -> bool:
    return quotas.fits_within(tree, asked.queue, asked.columns, asked.amounts, may_borrow)


@part
def _may_go(
    tree: q.QuotaTree, held: q.Held, asked: q.Asked, going: q.Going, i: int, may_borrow: bool
) -> bool:
    """Whether a candidate still uses what is not its own queue's or cohort's."""
    if going.above[i] < 0:
        return True
    if may_borrow and going.is_strict[i]:
        return False
    node = held.node[going.rows[i]]
    while node != going.above[i]:
        if _is_within(tree, node, asked.needed):
            return False
        node = tree.parent[node]
    return True


@kernel
def take_next(
    tree: q.QuotaTree, held: q.Held, asked: q.Asked, going: q.Going, may_borrow: bool
) -> bool:
    """Let candidates go in their order until the quota suffices; return whether it does."""
    while going.at[0] < going.rows.size:
        i = going.at[0]
        going.at[0] += 1
        if _may_go(tree, held, asked, going, i, may_borrow):
            _take(tree, held, going, i)
            if _fits(tree, asked, may_borrow):
                return True
    return False


@kernel
def spare_next(
    tree: q.QuotaTree, held: q.Held, asked: q.Asked, going: q.Going, k: int, may_borrow: bool
) -> bool:
    """Put back the k-th of those who were taken; take it again, and return False, if the quota does not suffice then."""
    row = going.rows[going.taken[k]]
    _move(tree, held, row, 1)
    if _fits(tree, asked, may_borrow):
        return True
    _move(tree, held, row, -1)
    return False


@kernel
def move_workload(tree: q.QuotaTree, held: q.Held, row: int, sign: int) -> None:
    """Take what a workload holds off its queue (-1), or add it again (1)."""
    _move(tree, held, row, sign)


@kernel
def move_workloads(tree: q.QuotaTree, held: q.Held, rows: Ints1, sign: int) -> None:
    """Take what workloads hold off their queues (-1), or add it again (1); a row of -1 is nobody's."""
    for k in range(rows.size):
        if rows[k] >= 0:
            _move(tree, held, rows[k], sign)


@kernel
def put_back(tree: q.QuotaTree, held: q.Held, going: q.Going) -> None:
    """Put back all who were taken."""
    for k in range(going.n_taken[0]):
        _move(tree, held, going.rows[going.taken[k]], 1)


@part
def _charge_asked(tree: q.QuotaTree, asked: q.Asked, sign: int) -> None:
    """Add what is asked to the asker's queue (1), or take it off (-1)."""
    for k in range(asked.columns.size):
        if sign > 0:
            quotas.add_used(tree, asked.queue, asked.columns[k], asked.amounts[k])
        else:
            quotas.take_used(tree, asked.queue, asked.columns[k], asked.amounts[k])


@part
def _fits_itself(tree: q.QuotaTree, asked: q.Asked) -> bool:
    """Whether the quota suffices; what is asked is charged already."""
    _charge_asked(tree, asked, -1)
    fits = quotas.fits_within(tree, asked.queue, asked.columns, asked.amounts, True)
    _charge_asked(tree, asked, 1)
    return fits


@part
def _find_target(tree: q.QuotaTree, asked: q.Asked, fair: q.Fair, said: Ints1) -> int:
    """Find the queue that has to give next: at each node the child with the largest share; -1 if nobody is left.

    Of equal shares a cohort is before a queue, and of queues the one whose next candidate comes first.
    """
    root = asked.queue
    while tree.parent[root] >= 0:
        root = tree.parent[root]
    if root == asked.queue:
        if fair.pruned[root] or fair.first[root] >= fair.end[root]:
            return -1
        return root
    node = root
    while not fair.pruned[root]:
        best, best_ratio, best_weight = -1, -1.0, 1.0
        for k in range(fair.first_child[node], fair.first_child[node + 1]):
            child = fair.children[k]
            if fair.pruned[child]:
                continue
            ratio = quotas.find_share(tree, child, said)
            has_more = fair.first[child] < fair.end[child]
            if fair.is_queue[child]:
                is_over = (said[q.SHARE_BORROWS] == 0 and child != asked.queue) or not has_more
            else:
                is_over = said[q.SHARE_BORROWS] == 0 and not fair.path[child]
            if is_over:
                fair.pruned[child] = True
                continue
            order = quotas.compare_shares(ratio, tree.weight[child], best_ratio, best_weight)
            if order == 0 and best >= 0:
                if fair.is_queue[child] and fair.is_queue[best]:
                    order = int(fair.queued[fair.first[child]] < fair.queued[fair.first[best]])
                else:
                    order = int(fair.is_queue[best] and not fair.is_queue[child])
            if order > 0:
                best, best_ratio, best_weight = child, ratio, tree.weight[child]
        if best < 0:
            fair.pruned[node] = True
            node = root
        elif fair.is_queue[best]:
            return best
        else:
            node = best
    return -1


@part
def _find_sides(tree: q.QuotaTree, fair: q.Fair, asked: q.Asked, target: int) -> tuple[int, int]:
    """Return the asker's side and the target's: the children of the lowest node above both."""
    while not fair.path[tree.parent[target]]:
        target = tree.parent[target]
    own = asked.queue
    while tree.parent[own] != tree.parent[target]:
        own = tree.parent[own]
    return own, target


@part
def _may_give(
    tree: q.QuotaTree, held: q.Held, own: int, other: int, row: int, rule: int, said: Ints1
) -> bool:
    """Whether a workload of the other side has to give way by a rule about the shares of both sides."""
    share = quotas.find_share(tree, own, said)
    if rule == q.FINAL_SHARE:
        _move(tree, held, row, -1)
        left = quotas.find_share(tree, other, said)
        _move(tree, held, row, 1)
        return quotas.compare_shares(share, tree.weight[own], left, tree.weight[other]) <= 0
    had = quotas.find_share(tree, other, said)
    return quotas.compare_shares(share, tree.weight[own], had, tree.weight[other]) < 0


@kernel
def take_next_fairly(
    tree: q.QuotaTree,
    held: q.Held,
    asked: q.Asked,
    going: q.Going,
    fair: q.Fair,
    rule: int,
    said: Ints1,
) -> bool:
    """Let candidates go, always from the queue with the largest share, until the quota suffices; return whether it does.

    What is asked has to be charged to the asker's queue already. A queue that stays within its quota with it takes from
    all; else ``rule`` says who has to give way, one of FINAL_SHARE and INITIAL_SHARE. ``said`` [N_SHARE] is working space.
    """
    is_owed = True
    for k in range(asked.needed.size):
        is_owed = is_owed and not quotas.borrows_with(tree, asked.queue, asked.needed[k], 0)
    while True:
        target = _find_target(tree, asked, fair, said)
        if target < 0:
            return False
        if target == asked.queue or is_owed:
            i = fair.queued[fair.first[target]]
            fair.first[target] += 1
            fair.reasons[i] = q.REASON_OWN if target == asked.queue else q.REASON_RECLAIM
            _take(tree, held, going, i)
            if _fits_itself(tree, asked):
                return True
            continue
        own, other = _find_sides(tree, fair, asked, target)
        while fair.first[target] < fair.end[target]:
            i = fair.queued[fair.first[target]]
            fair.first[target] += 1
            if _may_give(tree, held, own, other, going.rows[i], rule, said):
                fair.reasons[i] = q.REASON_FAIR
                _take(tree, held, going, i)
                if _fits_itself(tree, asked):
                    return True
                break
            fair.retried[fair.n_retried[0]] = i
            fair.n_retried[0] += 1


@kernel
def take_refused(
    tree: q.QuotaTree,
    held: q.Held,
    asked: q.Asked,
    going: q.Going,
    fair: q.Fair,
    said: Ints1,
) -> bool:
    """Let those go whom the first rule refused, at most one of a queue, if their side has the larger share today.

    As in ``take_next_fairly``, but by the rule INITIAL_SHARE.
    """
    while True:
        target = _find_target(tree, asked, fair, said)
        if target < 0:
            return False
        i = fair.queued[fair.first[target]]
        fair.first[target] += 1
        fair.pruned[target] = True
        own, other = _find_sides(tree, fair, asked, target)
        if _may_give(tree, held, own, other, going.rows[i], q.INITIAL_SHARE, said):
            fair.reasons[i] = q.REASON_FAIR
            _take(tree, held, going, i)
            if _fits_itself(tree, asked):
                return True
