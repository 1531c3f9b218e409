"""Quota and usage in the tree of cohorts (pkg/cache/scheduler/resource_node.go)."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from tests.oracles.kueue.amounts import (
    Amounts,
    FlavorResource,
    add_amounts,
    subtract_amounts,
)


@dataclass(frozen=True)
class Quota:
    """What a node has of one resource in one flavor; no limit is None."""

    nominal: int = 0
    borrowing: int | None = None
    lending: int | None = None


@dataclass(eq=False)
class Node:
    """A cluster queue or a cohort.

    ``subtree`` is what it has with what its children lend it; ``usage`` is what counts against that.
    """

    name: str
    parent: "Cohort | None" = None
    quotas: dict[FlavorResource, Quota] = field(default_factory=dict)
    weight: float = 1.0
    subtree: Amounts = field(default_factory=dict)
    usage: Amounts = field(default_factory=dict)


@dataclass(eq=False)
class Cohort(Node):
    """A cohort and what stands right below it."""

    cohorts: "list[Cohort]" = field(default_factory=list)
    queues: list[Node] = field(default_factory=list)


def find_quota(node: Node, fr: FlavorResource) -> Quota:
    return node.quotas.get(fr, Quota())


def walk_ancestors(node: Node) -> Iterator[Cohort]:
    """Walk from the parent to the root."""
    while node.parent is not None:
        node = node.parent
        yield node


def find_root(node: Node) -> Node:
    return node if node.parent is None else find_root(node.parent)


def walk_queues(cohort: Cohort) -> Iterator[Node]:
    yield from cohort.queues
    for child in cohort.cohorts:
        yield from walk_queues(child)


def find_local_quota(node: Node, fr: FlavorResource) -> int:
    """Find what the node keeps for itself: nothing, unless it limits what it lends."""
    lending = find_quota(node, fr).lending
    if lending is None:
        return 0
    return max(0, subtract_amounts(node.subtree.get(fr, 0), lending))


def find_local_available(node: Node, fr: FlavorResource) -> int:
    return max(0, subtract_amounts(find_local_quota(node, fr), node.usage.get(fr, 0)))


def find_available(node: Node, fr: FlavorResource) -> int:
    """Find what is left for the node; below zero where there are debts."""
    quota, usage = node.subtree.get(fr, 0), node.usage.get(fr, 0)
    if node.parent is None:
        return subtract_amounts(quota, usage)
    above = find_available(node.parent, fr)
    limit = find_quota(node, fr).borrowing
    if limit is not None:
        local = find_local_quota(node, fr)
        stored = subtract_amounts(quota, local)
        used = max(0, subtract_amounts(usage, local))
        above = min(add_amounts(subtract_amounts(stored, used), limit), above)
    return add_amounts(find_local_available(node, fr), above)


def find_unused(queue: Node, fr: FlavorResource) -> int:
    """Find what is left for a cluster queue, at least nothing."""
    return max(0, find_available(queue, fr))


def find_potential(node: Node, fr: FlavorResource) -> int:
    """Find what would be left for the node if nobody used anything."""
    quota = node.subtree.get(fr, 0)
    if node.parent is None:
        return quota
    available = add_amounts(find_local_quota(node, fr), find_potential(node.parent, fr))
    limit = find_quota(node, fr).borrowing
    return available if limit is None else min(add_amounts(quota, limit), available)


def add_usage(node: Node, fr: FlavorResource, amount: int) -> None:
    """Add usage; what exceeds the node's own goes to its parent."""
    local = find_local_available(node, fr)
    node.usage[fr] = add_amounts(node.usage.get(fr, 0), amount)
    if node.parent is not None and amount > local:
        add_usage(node.parent, fr, subtract_amounts(amount, local))


def remove_usage(node: Node, fr: FlavorResource, amount: int) -> None:
    stored = subtract_amounts(node.usage.get(fr, 0), find_local_quota(node, fr))
    node.usage[fr] = subtract_amounts(node.usage.get(fr, 0), amount)
    if stored > 0 and node.parent is not None:
        remove_usage(node.parent, fr, min(amount, stored))


def add_all_usage(node: Node, amounts: Amounts) -> None:
    """Add usage; a slice may use less of one thing than the one before it, which is taken away."""
    for fr, amount in amounts.items():
        if amount < 0:
            remove_usage(node, fr, -amount)
        else:
            add_usage(node, fr, amount)


def remove_all_usage(node: Node, amounts: Amounts) -> None:
    add_all_usage(node, {fr: -amount for fr, amount in amounts.items()})


def fill_tree(node: Node) -> None:
    """Add up what children lend and use, from the leaves to this node."""
    node.subtree = {fr: quota.nominal for fr, quota in node.quotas.items()}
    if not isinstance(node, Cohort):
        return
    node.usage = {}
    for child in [*node.cohorts, *node.queues]:
        fill_tree(child)
        for fr, quota in child.subtree.items():
            lent = subtract_amounts(quota, find_local_quota(child, fr))
            node.subtree[fr] = add_amounts(node.subtree.get(fr, 0), lent)
        for fr, usage in child.usage.items():
            past = max(0, subtract_amounts(usage, find_local_quota(child, fr)))
            node.usage[fr] = add_amounts(node.usage.get(fr, 0), past)


def check_borrowing(node: Node, fr: FlavorResource, amount: int = 0) -> bool:
    """Check whether the node borrows with so much more; a cluster queue goes by its nominal quota."""
    own = node.subtree.get(fr, 0) if isinstance(node, Cohort) else find_quota(node, fr).nominal
    return own < add_amounts(node.usage.get(fr, 0), amount)


def check_within_nominal(node: Node, frs: Collection[FlavorResource]) -> bool:
    return all(node.subtree.get(fr, 0) >= node.usage.get(fr, 0) for fr in frs)


def fit_requests(node: Node, requests: Amounts) -> tuple[bool, Amounts]:
    """Fit requests into a node's quota; what its parents must give is left."""
    fits, left = True, {}
    for fr, amount in requests.items():
        if node.subtree.get(fr, 0) < add_amounts(node.usage.get(fr, 0), amount):
            fits = False
        left[fr] = max(0, subtract_amounts(amount, find_local_available(node, fr)))
    return fits, left


def measure_height(cohort: Cohort) -> int:
    """Measure how far the furthest leaf is."""
    height = 1 if cohort.cohorts or cohort.queues else 0
    return max([height, *(measure_height(child) + 1 for child in cohort.cohorts)])


def find_lowest_fit(queue: Node, fr: FlavorResource, amount: int) -> tuple[int, bool]:
    """Find the height of the lowest subtree that has so much, and whether it is smaller than the whole tree.

    Without one the height is the whole tree's. A queue that does not borrow is a subtree of height 0.
    """
    if queue.parent is None or not check_borrowing(queue, fr, amount):
        return 0, queue.parent is not None
    left = subtract_amounts(amount, find_local_available(queue, fr))
    root = queue.parent
    for cohort in walk_ancestors(queue):
        if not check_borrowing(cohort, fr, left):
            return measure_height(cohort), cohort.parent is not None
        left = subtract_amounts(left, find_local_available(cohort, fr))
        root = cohort
    return measure_height(root), False
