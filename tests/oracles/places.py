"""What a pod costs a node as a whole, and what of it is learnt: everything one by one, in exact fractions.

Amounts are by the name of a resource, in base units; of the cards of a node ``CORES`` and ``MIB``.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

from tests.oracles import requests

CPU, MEMORY, PODS, CORES, MIB = "cpu", "memory", "pods", "cores", "mib"
Amounts = Mapping[str, Fraction | int]
Json = dict[str, Any]

# A quotient that falls short of a whole number by less is one.
LAST_BIT = Fraction(1, 10**7)
# Pods that are seen before a filling of them is believed.
ENOUGH = 60
# What kube-scheduler takes a pod to use that does not say: it counts in shares, not in what is free.
SHOWN = {CPU: 100, MEMORY: 200 << 20}
HALF_LIFE = 20_000
# Of the mean node, and how many pods of it are assumed.
ASSUMED = {Fraction(1, 2): 3, Fraction(1, 4): 6, Fraction(1, 8): 12, Fraction(1, 16): 24}
TYPICAL_MOST, SIZES_MOST, CELLS, CELLS_MOST = 32, 32, 1024, 1920


@dataclass
class Node:
    """A node, with what is in use."""

    name: str
    there: dict[str, int]
    used: dict[str, int] = field(default_factory=dict)
    shown: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, body: Json) -> "Node":
        there = body["status"]["allocatable"]
        return cls(body["metadata"]["name"], {r: requests.amount(r, n) for r, n in there.items()})

    def free(self, resource: str) -> int:
        return max(0, self.there.get(resource, 0) - self.used.get(resource, 0))

    def share(self, resource: str) -> Fraction:
        """In use, 0..1; of what the node has none of, all."""
        there = self.there.get(resource, 0)
        used = (self.shown if resource in SHOWN else self.used).get(resource, 0)
        return min(Fraction(1), Fraction(used, there)) if there else one()

    def holds(self, pod: Mapping[str, int]) -> bool:
        """Whether there is room; what a pod asks nothing of may be used up."""
        return all(self.free(r) >= amount for r, amount in pod.items() if amount)

    def with_pod(self, pod: Mapping[str, int]) -> "Node":
        used = {r: self.used.get(r, 0) + pod.get(r, 0) for r in {*self.used, *pod}}
        shown = {r: self.shown.get(r, 0) + pod.get(r, n) for r, n in SHOWN.items()}
        return Node(self.name, self.there, used, shown)

    def empty(self) -> "Node":
        return Node(self.name, self.there)


def one() -> Fraction:
    return Fraction(1)


@dataclass(frozen=True)
class Typical:
    """A typical pod; resources that it does not ask are left out. ``worth``: of a place for it."""

    asks: Amounts
    worth: Fraction


@dataclass(frozen=True)
class Weights:
    """What counts how much in a loss; ``step`` units are a step of a score."""

    step: float = 1.0
    full: float = 1.0
    part: float = 0.0
    mix: float = 0.0
    rest: float = 0.0
    used: float = 0.0
    uneven: float = 0.0
    square: float = 0.0
    packed: float = 0.0


@dataclass(frozen=True)
class Places:
    """What is known of one sort of nodes.

    Attributes:
        value: by resource, what the best filling of so many cells is worth; empty before it is known.
        cell: by resource, how large a cell is.
    """

    typical: Sequence[Typical]
    price: Mapping[str, Fraction]
    level: Mapping[str, Fraction]
    value: Mapping[str, Sequence[float]]
    cell: Mapping[str, Fraction]
    weights: Weights


def fits(free: Mapping[str, Fraction | int], asks: Amounts) -> Fraction:
    """How many pods there is room for, with parts of one."""
    return min(Fraction(free.get(r, 0)) / amount for r, amount in asks.items() if amount) + LAST_BIT


def held(node: Node, places: Places) -> Fraction:
    """H: places for typical pods, and the best filling by the resource of which it is worth least."""
    free = {r: node.free(r) for r in places.price}
    weights, total = places.weights, Fraction(0)
    for typical in places.typical:
        n = fits(free, typical.asks)
        whole = math.floor(n)
        total += typical.worth * (whole + Fraction(weights.part) * (n - whole) ** 3)
    total *= Fraction(weights.full)
    if weights.mix and any(places.value.values()):
        fillings = [
            places.value[r][min(len(places.value[r]) - 1, _cells(free[r], places.cell[r]))]
            for r, price in places.price.items()
            if price > 0
        ]
        total += Fraction(weights.mix) * Fraction(min(fillings))
    return total


def _cells(free: int, cell: Fraction) -> int:
    return math.floor(free / cell + Fraction(1, 10**9))


def used(node: Node, places: Places) -> Fraction:
    """U: the mean share in use."""
    return sum((level * node.share(r) for r, level in places.level.items()), Fraction(0))


def lost(node: Node, pod: Mapping[str, int], places: Places, *, packs: bool) -> Fraction:
    """Units that a pod costs on a node where it fits."""
    after, weights = node.with_pod(pod), places.weights
    cost = held(node, places) - held(after, places)
    rest = sum((price * after.free(r) for r, price in places.price.items()), Fraction(0))
    if packs:
        return cost + Fraction(weights.packed) * rest
    mean = used(after, places)
    apart = [level * (after.share(r) - mean) ** 2 for r, level in places.level.items()]
    cost += Fraction(weights.rest) * rest + Fraction(weights.used) * used(node, places)
    return cost + Fraction(weights.uneven) * sum(apart) + Fraction(weights.square) * mean**2


def points(cost: Fraction, step: float) -> int:
    """Milli-points: 10 for each whole step up to 4,000, then 10 for 16 of them."""
    steps = math.floor(-cost / Fraction(step))
    near = max(-4000, min(4000, steps))
    return max(0, min(100_000, 50_000 + 10 * near + 10 * (steps - near) // 16))


def second(node: Node, places: Places, objective: str, steps: int) -> Fraction:
    """How far up among equal placements, 0..``steps`` − 1, before it is rounded down."""
    # Some pods ask nothing at all.
    share = (9 * used(node, places) + node.share(PODS)) / 10
    return {"": Fraction(0), "pack": share, "spread": 1 - share}[objective] * (steps - 1)


@dataclass(frozen=True)
class Shape:
    """Pods of one shape that came."""

    asks: Mapping[str, int]
    count: Fraction


def counted(arrivals: Sequence[Mapping[str, int]]) -> list[Shape]:
    """An arrival counts half after so many others."""
    n = len(arrivals)
    found: dict[tuple[tuple[str, int], ...], Fraction] = {}
    for i, pod in enumerate(arrivals):
        key = tuple(
            sorted((r, amount) for r, amount in pod.items() if amount or r in (CPU, MEMORY))
        )
        found[key] = found.get(key, Fraction(0)) + Fraction(2.0 ** ((i + 1 - n) / HALF_LIFE))
    return [Shape(dict(key), count) for key, count in found.items()]


@dataclass(frozen=True)
class Learnt:
    """What follows from nodes and shapes; by typical pod, the largest at stake first."""

    places: Places
    val: Sequence[Fraction]
    share: Sequence[Fraction]
    mean: Fraction

    def above(self, one: Fraction, off: Fraction = Fraction(0)) -> Fraction:
        """The share of the demand, by value, of pods worth at least as much, give or take ``off``."""
        pairs = zip(self.every_val, self.every_share, strict=True)
        return sum((share for val, share in pairs if val >= one - off), Fraction(0))

    every_val: Sequence[Fraction] = ()
    every_share: Sequence[Fraction] = ()


def learnt(
    nodes: Sequence[Node], shapes: Sequence[Shape], resources: Sequence[str], *, believed: bool
) -> Learnt:
    """Prices, typical pods, the worth of a place for each, and fillings; every place as dear as can be."""
    empty = [node.empty() for node in nodes]
    mean_node = {r: Fraction(sum(n.there.get(r, 0) for n in empty), len(empty)) for r in resources}
    seen = [shape for shape in shapes if any(node.holds(shape.asks) for node in empty)]
    had = [
        r
        for r in resources
        if r == PODS or 2 * sum(node.there.get(r, 0) > 0 for node in empty) >= len(empty)
    ]
    assumed: list[tuple[Fraction, Amounts]] = [
        (Fraction(n), {r: one() if r == PODS else part * mean_node[r] for r in had})
        for part, n in ASSUMED.items()
    ]
    came: list[tuple[Fraction, Amounts]] = [(shape.count, shape.asks) for shape in seen]
    use = {
        r: sum(n * asks.get(r, 0) for n, asks in came or assumed) / (mean_node[r] * len(empty))
        for r in resources
        if mean_node[r]
    }
    total = sum(n for n, _ in came)
    common = {
        r
        for r, share in use.items()
        if share > 0
        and (r in (CPU, MEMORY, PODS) or 4 * sum(n for n, asks in came if asks.get(r)) >= total)
    } or {r for r, share in use.items() if share > 0}
    most = max(use[r] for r in common)
    scarce = {
        r: min(one(), max(Fraction(0), 1 - (1 - share / most) / Fraction(1, 4)))
        if r in common
        else Fraction(0)
        for r, share in use.items()
        if share > 0
    }
    price = {r: 1000 * s / sum(scarce.values()) / mean_node[r] for r, s in scarce.items()}
    typical = [(n, {r: asks.get(r, 0) for r in price}) for n, asks in (*came, *assumed)]
    vals = [worth(asks, price) for _, asks in typical]
    whole = sum((n * val for (n, _), val in zip(typical, vals, strict=True)), Fraction(0))
    shares = [n * val / whole for (n, _), val in zip(typical, vals, strict=True)]
    total = sum(worth(node.there, price) for node in empty)
    found = []
    for (_, asks), share in zip(typical, shares, strict=True):
        room = sum(math.floor(fits(node.there, asks)) for node in empty)
        found.append(Typical(_asked(asks), share * total / room if room else Fraction(0)))
    order = sorted(range(len(found)), key=lambda k: -shares[k] * vals[k])[:TYPICAL_MOST]
    value, cell = {}, {}
    if believed and came:
        sizes = [((pod.count, pod.asks), val) for pod, val in zip(seen, vals, strict=False)]
        for r in price:
            value[r], cell[r] = filling(empty, sizes, r)
    kinds = [r for r in price if r != PODS]
    level = {r: Fraction(int(r != PODS), max(1, len(kinds))) for r in price}
    mean = whole / sum((n for n, _ in typical), Fraction(0))
    return Learnt(
        Places([found[k] for k in order], price, level, value, cell, Weights()),
        [vals[k] for k in order], [shares[k] for k in order], mean, vals, shares,
    )  # fmt: skip


def worth(asks: Amounts, price: Mapping[str, Fraction]) -> Fraction:
    return sum((one * Fraction(asks.get(r, 0)) for r, one in price.items()), Fraction(0))


def _asked(asks: Amounts) -> Amounts:
    return {r: amount for r, amount in asks.items() if amount}


def filling(
    nodes: Iterable[Node],
    came: Sequence[tuple[tuple[Fraction, Mapping[str, int]], Fraction]],
    resource: str,
) -> tuple[list[float], Fraction]:
    """The most that pods are worth that share so many cells of a resource; how large a cell is.

    A cell is the largest amount of which all sizes are whole multiples, unless those are too many; a pod takes
    one at least.
    """
    heaviest = sorted(came, key=lambda pod: -pod[0][0] * pod[1])[:SIZES_MOST]
    sizes = [(asks.get(resource, 0), float(val)) for (_, asks), val in heaviest if val > 0]
    largest = max(node.there.get(resource, 0) for node in nodes)
    cell = Fraction(math.gcd(*(size for size, _ in sizes)) or 1)
    if largest / cell > CELLS_MOST:
        cell = max(Fraction(1), Fraction(largest, CELLS))
    pods = [(max(1, math.ceil(size / cell)), val) for size, val in sizes]

    @cache
    def best(free: int) -> float:
        return max((val + best(free - size) for size, val in pods if size <= free), default=0.0)

    return [best(x) for x in range(math.floor(largest / cell) + 1)], cell


@dataclass(frozen=True)
class Scarcity:
    """How scarce places are at a time, before it is rounded to twentieths."""

    scarce: Sequence[float]
    mix: float
    packs: float


def scarcity(learnt: Learnt, nodes: Sequence[Node], departures: float) -> Scarcity:
    """What is left against what is soon asked for."""
    price = learnt.places.price
    left = float(sum(worth({r: n.free(r) for r in price}, price) for n in nodes))
    in_use = float(sum(worth(node.there, price) for node in nodes)) - left
    swing = min(left, 0.15 * in_use + 2 * math.sqrt(in_use * learnt.mean))
    soon = (1 - departures) * left + departures * swing
    packs = 2 * _clip((in_use / (left + in_use) - 0.4) / 0.5) - 1
    if soon <= 0:
        return Scarcity([1.0] * len(learnt.val), 1.0, packs)
    found = []
    for typical, val in zip(learnt.places.typical, map(float, learnt.val), strict=True):
        share = float(learnt.above(Fraction(val), Fraction(val) / 10**9))
        enough = share * (1 + 1.5 * math.sqrt(val / (share * soon)))
        room = sum(
            math.floor(fits({r: node.free(r) for r in price}, typical.asks)) for node in nodes
        )
        beyond = (room * val / soon - enough) / max(1 - enough, 0.001) / (0.6 + 0.6 * departures)
        found.append(_clip(1 - beyond))
    return Scarcity(found, _clip((1.5 - left / soon) / 0.5), packs)


def weights(scarcity: Scarcity, departures: float, new: float) -> Weights:
    """By how scarce things are; ``new``: how far sizes do not come again, 0..1."""
    return Weights(
        full=2 * (1 - 0.7 * new),
        part=0.5 * new,
        mix=6 * (1 - departures * 2 / 3) * (1 - 0.8 * new) * scarcity.mix,
        rest=0.1 * max(0.0, scarcity.packs),
        used=50 * max(0.0, -scarcity.packs),
        uneven=30_000 * new * max(0.0, 1 - 2 * departures) * (0.1 if scarcity.packs <= -1 else 1),
        packed=0.1,
    )


def new_sizes(
    nodes: Sequence[Node], shapes: Sequence[Shape], price: Mapping[str, Fraction]
) -> float:
    """0 where of ten pods seven sizes are not seen before or fewer, 1 where all are.

    Sizes are told apart by what costs something, and those that no node holds are none.
    """
    fitting = [shape for shape in shapes if any(node.empty().holds(shape.asks) for node in nodes)]
    seen = float(sum(shape.count for shape in fitting))
    dear = [r for r, one in price.items() if one > 0]
    sizes = {tuple(shape.asks.get(r, 0) for r in dear) for shape in fitting}
    return _clip((len(sizes) / seen - 0.7) / 0.3) if seen else 0.0


def _clip(x: float) -> float:
    return min(1.0, max(0.0, x))
