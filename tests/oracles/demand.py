"""What is expected of the pods to come, from the pods that came: prices, values, typical pods.

The value of a remainder is checked, not computed: the dual prices of a linear programme need not be unique.
`optimum` and `holds` say what any of them must be.
"""

import itertools
import json
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from tests.oracles import filters, fleet, fragments, hami

Mean = tuple[int, float]
HALF_LIFE = 20_000
HORIZON, PRIOR = 1000, 20
ENOUGH = 60
# Clusters of fewer cards begin with best fit.
FEW = 1000


@dataclass(frozen=True)
class Shape:
    """What a pod asks; `words` are its selectors, affinity and tolerations as JSON."""

    cpu: int
    memory: int = 0
    cards: int = 0
    mib: int = 0
    percent: int = 0
    cores: int = 0
    words: str = "{}"
    use: str = ""
    nouse: str = ""

    def asks(self, kind: Mean) -> tuple[int, int]:
        """Milli of cores and of memory of each card."""
        return fleet.asked_of(
            hami.Container(mem=self.mib, percent=self.percent, cores=self.cores), kind
        )

    def allowed(self, node: fleet.Node) -> bool:
        """Whether the node's words and the models of its cards take such a pod."""
        return self.welcome(node) and (not node.managed or any(map(self._likes, node.cards)))

    def welcome(self, node: fleet.Node) -> bool:
        body = {"spec": {"containers": [], **json.loads(self.words)}, "metadata": {}}
        return not filters.refusal(body, node.words(cordon=False), [])

    def _likes(self, card: hami.Card) -> bool:
        return hami.model_matches(
            card.model, hami.Pod((), use_type=self.use, nouse_type=self.nouse)
        )

    def hosted(self, node: fleet.Node) -> bool:
        """Whether the empty node can hold it."""
        if not self.welcome(node) or self.cpu > node.cpu or self.memory > node.memory:
            return False
        if not node.managed:
            # Whole GPUs of no known model; HAMi's words mean nothing there.
            return self.cards <= node.gpus and self.asks(fleet.NAMELESS) == (
                fleet.WHOLE,
                fleet.WHOLE,
            )
        fit = [
            card
            for card in node.cards
            if self._likes(card) and self.cores <= card.cores and self.mib <= card.mem
        ]
        return len(fit) >= self.cards


def shape_of(pod: fleet.Pod) -> Shape:
    """All cards of the pod, on each the most that any container asks."""
    if pod.gpu is None:
        return Shape(pod.cpu, pod.memory)
    mib = max(one.mem for one in pod.asking)
    percents = [0 if one.percent == hami.PERCENT_UNSET else one.percent for one in pod.asking]
    return Shape(
        pod.cpu,
        pod.memory,
        pod.gpus,
        mib,
        0 if mib else max(percents),
        max(one.cores for one in pod.asking),
        json.dumps(pod.spec, sort_keys=True),
        pod.gpu.use_type,
        pod.gpu.nouse_type,
    )


def counted(arrivals: Sequence[fleet.Pod]) -> dict[Shape, float]:
    """Pods of each shape, half after so many later ones; of those that ask GPUs and of those that ask none."""
    counts: dict[Shape, float] = defaultdict(float)
    for asks_gpus in (True, False):
        some = [pod for pod in arrivals if (pod.gpu is not None) is asks_gpus]
        for later, pod in enumerate(reversed(some)):
            counts[shape_of(pod)] += 2.0 ** (-later / HALF_LIFE)
    return dict(counts)


def possible(counts: Mapping[Shape, float], nodes: Sequence[fleet.Node]) -> dict[Shape, float]:
    """The counts without the pods that no empty node holds."""
    return {
        shape: n
        for shape, n in counts.items()
        if shape.cards and any(shape.hosted(node) for node in nodes if node.count)
    }


def departures(happened: Sequence[str]) -> float:
    """Departures per arrival, from "came" and "left" of pods that ask GPUs."""
    mean = 0.0
    for i, what in enumerate(_came(happened)):
        mean = min(1.0, mean + (what - mean) / min(HORIZON, PRIOR + i))
    return mean


def _came(happened: Sequence[str]) -> list[int]:
    """How many had left before each arrival, since the one before."""
    before, left = [], 0
    for what in happened:
        if what == "left":
            left += 1
        else:
            before.append(left)
            left = 0
    return before


def assumed(nodes: Sequence[fleet.Node]) -> dict[Shape, float]:
    """Before enough pods were seen: 30 pods with 0.75 times the median CPU per GPU."""
    cpu = 0.75 * statistics.median([node.cpu / node.count for node in nodes if node.count] or [0])
    counts = {Shape(int(cpu / 2), cards=1, percent=50, cores=50): 10.0}
    for cards, pods in ((1, 14.0), (2, 2.0), (4, 2.0), (8, 2.0)):
        counts[Shape(int(cpu * cards), cards=cards, percent=100, cores=100)] = pods
    return counts


def median(weighted: Sequence[tuple[float, float]]) -> float:
    """The first figure up to which half of the weight lies; 0 of nothing."""
    half, so_far = sum(weight for _, weight in weighted) / 2, 0.0
    for figure, weight in sorted(weighted):
        so_far += weight
        if so_far >= half:
            return figure
    return 0.0


def mean_card(nodes: Sequence[fleet.Node]) -> Mean:
    """A card of the mean MiB of all."""
    mib = [card.mem for node in nodes for card in node.cards]
    return 100, sum(mib) / len(mib) if mib else 0.0


def milli(shape: Shape, card: Mean) -> int:
    """Milli-GPU that a pod of the shape asks."""
    return shape.cards * int(min(fleet.WHOLE, max(shape.asks(card))))


def kappa(counts: Mapping[Shape, float], card: Mean, resource: str = "cpu") -> float:
    """The median of milli-CPU, or bytes of memory, per GPU, weighted by GPU."""
    return median([
        (fleet.WHOLE * getattr(shape, resource) / milli(shape, card), n * milli(shape, card))
        for shape, n in counts.items()
        if shape.cards and milli(shape, card)
    ])  # fmt: skip


@dataclass(frozen=True)
class Weights:
    """What is lost with a milli-GPU that is short of CPU, with one left on the node, and with a milli-CPU
    left there."""

    short: float
    left: float
    left_cpu: float


def weights(
    counts: Mapping[Shape, float], nodes: Sequence[fleet.Node], card: Mean, *, seen: bool
) -> Weights:
    there = [node for node in nodes if node.count]
    gpus = sum(fleet.WHOLE * node.count for node in there)
    cpu = sum(node.cpu for node in there)
    by_cpu = _plenty(counts, card, {s: s.cpu for s in counts}, cpu, gpus)
    memory = sum(node.memory for node in there)
    by_memory = _plenty(counts, card, {s: s.memory for s in counts}, memory, gpus)
    both, middle = min(by_cpu, by_memory), kappa(counts, card)
    of_cpu = min(fleet.WHOLE / (0.85 * middle), 2 * gpus / cpu) if middle and cpu else 0.0
    if is_cold(nodes, seen=seen):
        return Weights(0.3 * both, 0.3, 0.3 * of_cpu)
    return Weights(0.3 * both, 0.3 * (1 - by_memory), 0.3 * (1 - both) * of_cpu)


def _plenty(
    counts: Mapping[Shape, float], card: Mean, each: Mapping[Shape, int], there: int, gpus: int
) -> float:
    """1; less where GPU pods ask more than 1/1.25 of what GPU nodes have per GPU, down to 0."""
    asked = sum(n * each[shape] for shape, n in counts.items())
    milli_asked = sum(n * milli(shape, card) for shape, n in counts.items())
    if not asked or not gpus:
        return 1.0
    return min(1.0, max(0.0, (there / gpus * milli_asked / asked - 1) / 0.25))


def is_cold(nodes: Sequence[fleet.Node], *, seen: bool) -> bool:
    """Whether best fit decides beside all else."""
    return not seen and sum(node.count for node in nodes) < FEW


def prices(
    counts: Mapping[Shape, float], nodes: Sequence[fleet.Node], departures: float = 0.0
) -> dict[str, float]:
    """By node with GPUs, what a milli of it is worth to others."""
    card = mean_card(nodes)
    gpu_nodes = [node for node in nodes if node.count]
    capacity = sum(fleet.WHOLE * node.count for node in gpu_nodes)
    asked = {shape: n * milli(shape, card) for shape, n in counts.items() if shape.cards}
    room = {
        shape: sum(fleet.WHOLE * node.count for node in gpu_nodes if shape.hosted(node))
        for shape in asked
    }
    found = {}
    for node in gpu_nodes:
        need = (
            capacity
            / sum(asked.values())
            * sum(
                asked[shape] * (1 - room[shape] / capacity) / room[shape]
                for shape in asked
                if shape.hosted(node)
            )
        )
        found[node.name] = min(1.0, need) ** (3.5 - 2 * departures)
    return found


def keel_typical(counts: Mapping[Shape, float], card: Mean) -> list[fragments.Typical]:
    """Shares among the most frequent shapes that make 95 % of pods, and every multi-GPU shape."""
    merged: dict[Shape, float] = defaultdict(float)
    for one, n in counts.items():
        if one.cards:
            merged[Shape(one.cpu, 0, one.cards, one.mib, one.percent, one.cores)] += n
    everything = sum(merged.values())
    frequent = _top(merged, card)
    return [
        _typical(shape, n / everything * shape.cards, models=False)
        for shape, n in merged.items()
        if shape.cards > 1 or (shape in frequent and milli(shape, card) < fleet.WHOLE)
    ]


def fgd_typical(counts: Mapping[Shape, float], card: Mean) -> list[fragments.Typical]:
    """The most frequent shapes that make 95 % of all pods; memory plays no part."""
    merged: dict[Shape, float] = defaultdict(float)
    for one, n in counts.items():
        merged[
            Shape(
                one.cpu,
                0,
                one.cards,
                one.mib,
                one.percent,
                one.cores,
                one.words,
                one.use,
                one.nouse,
            )
        ] += n
    frequent = _top(merged, card)
    covered = sum(merged[shape] for shape in frequent)
    return [_typical(shape, merged[shape] / covered, models=True) for shape in frequent]


def _top(merged: Mapping[Shape, float], card: Mean) -> list[Shape]:
    ranked = sorted(
        merged,
        key=lambda s: (merged[s], s.cpu, milli(s, card), s.cards, s.use),
        reverse=True,
    )
    found: list[Shape] = []
    covered = 0.0
    for shape in ranked:
        if covered >= 0.95 * sum(merged.values()):
            break
        found.append(shape)
        covered += merged[shape]
    return found


def _typical(shape: Shape, weight: float, *, models: bool) -> fragments.Typical:
    return fragments.Typical(
        shape.cpu,
        shape.cards,
        shape.asks,
        round(weight * fragments.STEPS),
        shape.allowed if models else lambda _: True,
    )


def share_sizes(counts: Mapping[Shape, float], kind: fleet.Kind) -> dict[int, float]:
    """How many shares of each size in milli are cut, on cards of a kind; each card of a pod is one."""
    sizes: dict[int, float] = defaultdict(float)
    for shape, n in counts.items():
        if 0 < max(shape.asks(kind)) < fleet.WHOLE:
            sizes[max(shape.asks(kind))] += n * shape.cards
    return dict(sizes)


def patterns(sizes: Sequence[int], room: int = fleet.WHOLE) -> list[tuple[int, ...]]:
    """Every maximal way to fill a card: how many of each size, so that no size fits any more."""
    if not sizes:
        return [()]
    largest_first = sorted(sizes, reverse=True)
    found = []
    for n in range(room // largest_first[0], -1, -1):
        left = room - n * largest_first[0]
        found += [(n, *rest) for rest in patterns(largest_first[1:], left)]
    smallest = largest_first[-1]
    used = [sum(map(int.__mul__, counts, largest_first)) for counts in found]
    return [one for one, taken in zip(found, used, strict=True) if room - taken < smallest]


def optimum(sizes: Mapping[int, float]) -> float:
    """Fewest cards, in parts, that hold all shares: the cutting-stock programme, solved by HiGHS."""
    if not sizes:
        return 0.0
    ordered = sorted(sizes, reverse=True)
    columns = patterns(ordered)
    solved = linprog(
        np.ones(len(columns)),
        A_ub=-np.array(columns, float).T,
        b_ub=-np.array([sizes[size] for size in ordered]),
        method="highs",
    )
    assert solved.success, solved.message
    return float(solved.fun)


def knapsack(mu: Mapping[int, float]) -> list[float]:
    """The most that a remainder of each milli can hold, when a share of each size is worth so much."""
    value = [0.0]
    for room in range(1, fleet.WHOLE + 1):
        held = [value[room - size] + worth for size, worth in mu.items() if size <= room]
        value.append(max([value[room - 1], *held]))
    return value


def holds(value: Sequence[float], sizes: Mapping[int, float]) -> list[str]:
    """What is wrong with values as an optimal dual of the cutting-stock programme; empty: nothing."""
    wrong = []
    mu = {size: value[size] for size in sizes}
    if min(mu.values(), default=0.0) < -1e-9:
        wrong.append("a price is negative")
    remade = knapsack(mu)
    off = max(abs(a - b) for a, b in itertools.zip_longest(remade, value, fillvalue=1e9))
    if off > 1e-6:
        wrong.append(f"not what the prices of the sizes hold: off by {off}")
    if remade[fleet.WHOLE] > fleet.WHOLE + 1e-6:
        wrong.append(f"a card holds {remade[fleet.WHOLE]}: not feasible")
    cards = sum(n * mu[size] for size, n in sizes.items()) / fleet.WHOLE
    best = optimum(sizes)
    # Feasible and as good as the best is optimal, and so are its slacks complementary.
    if abs(cards - best) > 1e-6 * max(1.0, best):
        wrong.append(f"worth {cards} cards where {best} are needed")
    return wrong
