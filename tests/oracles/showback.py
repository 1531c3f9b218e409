"""Who has what of a cluster, pod by pod and card by card, from the objects alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple


class Card(NamedTuple):
    """A card by its id, with its node, MiB and what its price a month is."""

    node: str
    mib: int
    price: Fraction


class Holder(NamedTuple):
    """A pod: who it is charged to, its node, cores and GiB, and what it holds: of cards (percent, MiB), and counted."""

    who: str | None
    node: str
    cpu: Fraction
    memory: Fraction
    cards: Mapping[str, tuple[int, int]]
    counted: int = 0


class Counted(NamedTuple):
    """What a node reports by number: how many, as how many each card is reported, and the price of a card."""

    n: int
    replicas: int
    price: Fraction


Row = dict[str, Fraction]


def rows(
    pods: Sequence[Holder],
    cards: Mapping[str, Card],
    counted: Mapping[str, Counted],
    prices: Mapping[str, Fraction],
) -> dict[str | None, Row]:
    """What each has, with its money."""
    found: dict[str | None, Row] = {}
    held = {
        card: [sum((_of_card(pod, card, told)[i] for pod in pods), Fraction(0)) for i in (0, 1)]
        for card, told in cards.items()
    }
    asked: dict[str, int] = defaultdict(int)
    for pod in pods:
        asked[pod.node] += pod.counted
    for pod in pods:
        row = found.setdefault(pod.who, defaultdict(Fraction))
        row["pods"] += 1
        row["cpu"] += pod.cpu
        row["memory"] += pod.memory
        row["money"] += pod.cpu * prices["cpu-core"] + pod.memory * prices["memory-gib"]
        for card, told in cards.items():
            parts = _of_card(pod, card, told)
            compute, memory = (
                part / max(Fraction(1), all_held)
                for part, all_held in zip(parts, held[card], strict=True)
            )
            row["gpus"] += compute
            row["gpuMemory"] += memory * told.mib / 1024
            row["money"] += (compute + memory) / 2 * told.price
        if (there := counted.get(pod.node)) is not None and pod.counted:
            n = (
                Fraction(pod.counted)
                * min(Fraction(1), Fraction(there.n, asked[pod.node]))
                / there.replicas
            )
            row["gpus"] += n
            row["money"] += n * there.price
    return found


def _of_card(pod: Holder, card: str, told: Card) -> tuple[Fraction, Fraction]:
    """Which part of a card's compute and of its memory a pod holds; without a limit on compute, as much as of memory."""
    if card not in pod.cards:
        return Fraction(0), Fraction(0)
    percent, mib = pod.cards[card]
    memory = Fraction(mib, told.mib)
    return (Fraction(percent, 100) if percent else memory), memory
