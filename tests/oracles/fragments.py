"""FGD's fragment measure of one node, one typical pod after the other; and keel's, with its credit."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tests.oracles import fleet

STEPS = 1 << 20
# How near a node is to holding a pod is told in parts of this.
CLOSE = 1024


@dataclass(frozen=True)
class Typical:
    """A typical pod: milli-CPU, cards (0 for none), milli of each card by kind, integer weight."""

    cpu: int
    cards: int
    asks: Callable[[fleet.Kind], tuple[int, int]]
    weight: int
    allowed: Callable[[fleet.Node], bool]


Measure = Callable[[fleet.Node, Typical], int]


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


def with_credit(node: fleet.Node, typical: Typical) -> int:
    """The same, but half of what is idle is forgiven where the pod almost fits."""
    everything, cpu = sum(fleet.idles(node)), max(0, node.cpu - node.cpu_used)
    core, memory = typical.asks(node.kind)
    cards = sum(
        min(pair) > 0 and pair[0] >= core and pair[1] >= memory for pair in fleet.frees(node)
    )
    if cards >= typical.cards and node.cpu - node.cpu_used >= typical.cpu:
        return measure(node, typical)
    parts = [Fraction(cards, typical.cards)]
    if typical.cpu:
        parts.append(Fraction(cpu, typical.cpu))
    there = min(CLOSE, *(math.floor(CLOSE * part) for part in parts))
    return everything - everything * there // (2 * CLOSE)


def total(node: fleet.Node, typicals: Sequence[Typical], how: Measure = measure) -> int:
    """Σ weight times measure, in 2^-20 milli."""
    return sum(typical.weight * how(node, typical) for typical in typicals)
