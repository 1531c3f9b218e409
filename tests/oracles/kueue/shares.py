"""Dominant resource shares (pkg/cache/scheduler/fair_sharing.go)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tests.oracles.kueue.amounts import (
    UNLIMITED,
    Amounts,
    FlavorResource,
    add_amounts,
    subtract_amounts,
)
from tests.oracles.kueue.tree import Node, find_potential, find_root


@dataclass(frozen=True)
class Share:
    """How much of what could be lent to it a node borrows, in thousandths, of the resource that it borrows most of."""

    ratio: float = 0.0
    weight: float = 1.0
    resource: str = ""
    is_borrowing: bool = False
    borrowed: tuple[FlavorResource, ...] = ()


# Below every share that there is.
LEAST_SHARE = Share(ratio=-1.0)


def find_share(node: Node, requests: Amounts | None = None) -> Share:
    """Find the node's share, with requests that it would have beside what it uses; a root has none."""
    if node.parent is None:
        return Share(weight=node.weight)
    by_resource: dict[str, int] = {}
    borrowed = []
    for fr, quota in node.subtree.items():
        used = add_amounts((requests or {}).get(fr, 0), node.usage.get(fr, 0))
        over = subtract_amounts(used, quota)
        if over > 0:
            by_resource[fr[1]] = add_amounts(by_resource.get(fr[1], 0), over)
            borrowed.append(fr)
    if not borrowed:
        return Share(weight=node.weight)
    lendable = find_lendable(node.parent)
    ratio, dominant = 0.0, ""
    for resource, over in sorted(by_resource.items()):
        if lendable.get(resource, 0) <= 0:
            continue
        one = float(over) * 1000.0 / float(lendable[resource])
        if one > ratio:
            ratio, dominant = one, resource
    return Share(ratio, node.weight, dominant, is_borrowing=True, borrowed=tuple(borrowed))


def find_lendable(node: Node) -> dict[str, int]:
    """Find how much the node may use of each resource in all flavors that its root knows."""
    lendable: dict[str, int] = {}
    for fr in find_root(node).subtree:
        lendable[fr[1]] = add_amounts(lendable.get(fr[1], 0), find_potential(node, fr))
    return lendable


def weigh_share(share: Share) -> float:
    if share.ratio == 0:
        return 0.0
    return math.inf if share.weight == 0 else share.ratio / share.weight


def round_share(share: Share) -> int:
    weighed = weigh_share(share)
    return UNLIMITED if weighed == math.inf else math.ceil(weighed)


def compare_shares(a: Share, b: Share) -> int:
    """Compare two shares: who borrows at weight zero is above all others, and among its like by what it borrows."""
    a_first = a.weight == 0 and a.ratio != 0
    b_first = b.weight == 0 and b.ratio != 0
    if a_first != b_first:
        return 1 if a_first else -1
    x, y = (a.ratio, b.ratio) if a_first else (weigh_share(a), weigh_share(b))
    return (x > y) - (x < y)


def check_borrowing_on(share: Share, requests: Mapping[FlavorResource, int]) -> bool:
    return any(requests.get(fr, 0) > 0 for fr in share.borrowed)
