"""The bundles of a tree of queues: what each node of it is owed, may lend and borrow, and uses.

A tree has a column for each pair of a flavor and a resource that any node of it names. Amounts are in base units:
milli-CPU for cpu, else bytes or counts.
"""

from __future__ import annotations

from scheduler.schema.handles import Flags1, Flags2, Floats1, Handle, Ints1, Ints2

# An amount without a bound; sums that exceed an int64 are this, too. Source: Kueue, ``resources.Unlimited``.
UNLIMITED = 2**63 - 1
# What ``judge_amounts`` finds out about an amount, see there.
(
    JUDGED_AVAILABLE,
    JUDGED_MOST,
    JUDGED_HEIGHT,
    JUDGED_RECLAIMS,
    N_JUDGED,
) = range(5)
# What ``find_share`` says beside the share: of which resource it is, -1 for none, and whether anything is borrowed.
SHARE_RESOURCE, SHARE_BORROWS, N_SHARE = range(3)
# By which rules a queue of a larger share gives way, as in ``Fair``. Source: Kueue's ``preemptionStrategies``.
FINAL_SHARE, INITIAL_SHARE = range(2)


class QuotaTree(Handle):
    """A tree of queues. N = nodes, the root first and each node behind its parent; F = columns, R = resources."""

    parent: Ints1  # [N] -1 for the root
    height: Ints1  # [N] how far the farthest leaf below is
    weight: Floats1  # [N] the weight of the node's share
    named: Flags2  # [N, F] whether the quotas of the node, or of a node below, name the column
    subtree: Ints2  # [N, F] the node's own quota and what those below lend to it
    local: Ints2  # [N, F] what of it is not lent to the parent
    borrowing: Ints2  # [N, F] how much the node may use beyond ``subtree``; UNLIMITED for no limit
    most: Ints2  # [N, F] the most that the node could have if nobody else used anything
    usage: Ints2  # [N, F] what is used: of a cohort, what its children use beyond their ``local``
    resource: Ints1  # [F] which resource a column is of
    lendable: Ints2  # [N, R] the most that the parent could have, over all flavors; 0 for the root


class Held(Handle):
    """Those who hold quota in a tree. W = workloads, F = columns."""

    node: Ints1  # [W] the queue of each
    amounts: Ints2  # [W, F] what each holds


class Asked(Handle):
    """What a workload asks of its queue. k = columns that it uses."""

    queue: int  # its node
    columns: Ints1  # [k]
    amounts: Ints1  # [k]
    needed: Ints1  # the columns in which others have to make room


class Going(Handle):
    """Those who may go, and those who do. n = candidates."""

    rows: Ints1  # [n] rows of ``Held``, in the order in which they are tried
    above: Ints1  # [n] the lowest node that is above the candidate's queue and the asker's; -1 in the asker's queue
    is_strict: Flags1  # [n] goes only if the asker borrows nothing afterwards
    taken: Ints1  # [n] places in ``rows`` of those who go, in the order in which they were taken
    n_taken: Ints1  # [1]
    at: Ints1  # [1] the next candidate


class Fair(Handle):
    """Those who may go by the rules of fair sharing. N = nodes, n = candidates, those of a queue together."""

    path: Flags1  # [N] whether a node is above the asker's queue
    children: Ints1  # [N - 1] the children of each node
    first_child: Ints1  # [N + 1] where the children of each node begin
    is_queue: Flags1  # [N]
    queued: Ints1  # [n] places in ``Going.rows``, by queue
    first: Ints1  # [N] the next candidate of each queue in ``queued``
    end: Ints1  # [N] where the candidates of each queue end
    pruned: Flags1  # [N] below the node nobody is left
    retried: Ints1  # [n] places of those whom the first rule refused
    n_retried: Ints1  # [1]
    reasons: Ints1  # [n] of each candidate that goes, one of REASON_*


# Why a candidate goes.
REASON_OWN, REASON_RECLAIM, REASON_FAIR, REASON_BORROWING = range(4)
