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
    useful = [min(pair) for pair in _useful(node, typical)]
    if node.cpu - node.cpu_used < typical.cpu or len(useful) < typical.cards:
        return everything
    return everything - sum(useful)


def _useful(node: fleet.Node, typical: Typical) -> list[tuple[int, int]]:
    """What is free of the cards that the pod could use, each judged by its own kind."""
    found = []
    for (cores, memory), kind in fleet.free_by_kind(node):
        core_asked, memory_asked = typical.asks(kind)
        if min(cores, memory) > 0 and cores >= core_asked and memory >= memory_asked:
            found.append((cores, memory))
    return found


def with_credit(node: fleet.Node, typical: Typical) -> int:
    """The same, but half of what is idle is forgiven where the pod almost fits."""
    everything, cpu = sum(fleet.idles(node)), max(0, node.cpu - node.cpu_used)
    cards = len(_useful(node, typical))
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
