"""keel's cost of one placement on one node, and the points it comes to."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.oracles import fleet, fragments

STEP, MIDDLE, POINTS_MAX, POINTS_A_STEP = 30.0, 50_000, 100_000, 10


@dataclass(frozen=True)
class Tables:
    """What is known of the demand.

    Attributes:
        price: by node name, 0..1.
        value: by kind of card, the most that a free remainder of each milli can hold.
        kappa: milli-CPU per GPU.
        kappa_memory: bytes per GPU.
        typical: the shapes of F.
        departures: D.
        short: what a milli-GPU short of CPU counts.
        left: what a milli-GPU counts that stays idle on the node.
        left_cpu: what a milli-CPU counts that stays free on the node.
    """

    price: Mapping[str, float]
    value: Mapping[fleet.Kind, Sequence[float]]
    kappa: float
    kappa_memory: float
    typical: Sequence[fragments.Typical]
    departures: float
    short: float
    left: float
    left_cpu: float


def short(node: fleet.Node, tables: Tables) -> float:
    """Idle milli for which there is no CPU or no memory left."""
    served = [
        free / (0.85 * kappa / 1000)
        for free, kappa in (
            (node.cpu - node.cpu_used, tables.kappa),
            (node.memory - node.memory_used, tables.kappa_memory),
        )
        if kappa > 0
    ]
    return max(0.0, sum(fleet.idles(node)) - min(served)) if served else 0.0


def cost(node: fleet.Node, pod: fleet.Pod, charge: fleet.Charge, tables: Tables) -> float:
    """Milli-GPU that the placement loses."""
    after = fleet.placed(node, pod, charge)
    taken = sum(fleet.idles(node)) - sum(fleet.idles(after))
    result = tables.price.get(node.name, 1.0) * taken if taken else 0.0
    result += tables.short * (short(after, tables) - short(node, tables))
    for card, later in zip(node.cards, after.cards, strict=True):
        if card.uuid not in charge:
            continue
        size = fleet.size(pod, card, charge[card.uuid])
        if size < fleet.WHOLE:
            value = tables.value[fleet.kind_of(card)]
            lost = value[fleet.idle(card)] - value[fleet.idle(later)] - value[size]
            result += 3 * max(0.0, lost) + 0.07 * fleet.idle(later)
    result += tables.left * sum(fleet.idles(after))
    result += tables.left_cpu * (node.cpu - after.cpu_used)
    if tables.departures:
        was, then = (
            fragments.total(one, tables.typical, fragments.with_credit) for one in (node, after)
        )
        result += 2 * tables.departures * (then - was) / fragments.STEPS
    return result


def points(loss: float) -> int:
    """Milli-points of a cost, 0..100,000."""
    steps = math.floor(-loss / STEP + 1e-9)
    return min(POINTS_MAX, max(0, MIDDLE + POINTS_A_STEP * steps))


def is_at_a_step(loss: float) -> bool:
    """Whether the cost is so near to the edge of a step that the last bits decide."""
    steps = -loss / STEP + 1e-9
    return abs(steps - round(steps)) * STEP < 1e-6


def judged(node: fleet.Node, pod: fleet.Pod, tables: Tables) -> list[tuple[float, fleet.Charge]]:
    """Every choice of cards with its cost, the cheapest first, then as the cards lie."""
    found = [
        (cost(node, pod, charge, tables), charge) for charge in fleet.choices(node, pod, each=True)
    ]
    return sorted(found, key=lambda one: one[0])
