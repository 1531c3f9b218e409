"""FGD's fragment measure of one node, one typical pod after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.oracles import fleet

STEPS = 1 << 20


@dataclass(frozen=True)
class Typical:
    """A typical pod: milli-CPU, cards (0 for none), milli of each card by kind, integer weight."""

    cpu: int
    cards: int
    asks: Callable[[fleet.Kind], tuple[int, int]]
    weight: int
    allowed: Callable[[fleet.Node], bool]


def measure(node: fleet.Node, typical: Typical) -> int:
    """Idle milli of the node that the typical pod cannot use."""
    everything = sum(fleet.idles(node))
    if typical.cards == 0 or not typical.allowed(node):
        return everything
    core, memory = typical.asks(node.kind)
    useful = [
        min(pair)
        for pair in fleet.frees(node)
        if min(pair) > 0 and pair[0] >= core and pair[1] >= memory
    ]
    if node.cpu - node.cpu_used < typical.cpu or len(useful) < typical.cards:
        return everything
    return everything - sum(useful)


def total(node: fleet.Node, typicals: Sequence[Typical]) -> int:
    """Σ weight times measure, in 2^-20 milli."""
    return sum(typical.weight * measure(node, typical) for typical in typicals)
