"""What the comparison of modes comes to: which one to take, by which figure, and how sure that is.

A mode is better than the default by a figure only where its worst order beats the default's best one. It
is advised where it is better by one figure and by none worse, and keeps every pod placed in every order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Of what is free, in money, or of the nodes that the other empties: less than this share is no difference that
# matters.
_MATTERS = 0.01
_PROTECTS = (
    "What the default protects is not in this figure: it keeps whole GPUs and even remainders for pods that "
    "come and go, which one fill does not show, and spreads pods without GPUs, for room to grow."
)
_SPREADS = "While there is room to spare, what is stranded speaks for modes that spread. "
_UNSEEN = " Too few pods were seen to compare modes by what they strand."


@dataclass(frozen=True, slots=True)
class Tried:
    """What one mode did, order by order.

    Attributes:
        name: as the user writes it.
        empty: empty nodes.
        unplaced: pods without a place.
        gpus: GPUs stranded.
        money: dollars a month stranded, of everything.
    """

    name: str
    empty: Sequence[int]
    unplaced: Sequence[int]
    gpus: Sequence[float]
    money: Sequence[float]

    @property
    def keeps_all(self) -> bool:
        """Whether every pod found a place in every order."""
        return max(self.unplaced) == 0

    def empties_more(self, other: Tried) -> bool:
        """Whether it leaves more nodes empty, in whatever order, and not by next to nothing."""
        gained = _mean(self.empty) - _mean(other.empty)
        return min(self.empty) > max(other.empty) and gained >= _MATTERS * _mean(other.empty)

    def strands_less(self, other: Tried, least: float) -> bool:
        """Whether less is stranded, in whatever order, by ``least`` dollars at the least on average."""
        gained = _mean(other.money) - _mean(self.money)
        return max(self.money) < min(other.money) and gained >= least

    def told(self) -> str:
        """Both its figures."""
        nodes = "node" if set(self.empty) == {1} else "nodes"
        return (
            f"empties {spread(self.empty)} {nodes} and strands {spread(self.gpus)} GPUs "
            f"(${spread(self.money)} a month)"
        )


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do.

    Attributes:
        mode: the mode to take; empty where nothing can be compared.
        figure: by which it is better than the default: ``emptyNodes``, ``stranded``, ``unplaced``; empty for
            the default itself.
        text: the same in sentences.
    """

    mode: str
    figure: str
    text: str


def give(
    tried: Sequence[Tried], default: str, free_money: float, *, is_seen: bool = True
) -> Advice:
    """What follows for a cluster whose free resources cost ``free_money`` a month.

    ``default`` is the name of the default among those tried; where it was not tried there is none to compare with.
    Unless ``is_seen``, what is stranded was judged by assumed pods, and speaks against no mode.
    """
    base = next((one for one in tried if one.name == default), None)
    if base is None:
        return Advice("", "", f"None, for it compares modes with {default}, which was not tried.")
    n = len(base.empty)
    sure = f"in {n} of {n} orders tried" if n > 1 else "in the one order tried"
    others = [one for one in tried if one is not base and one.keeps_all]
    if not base.keeps_all:
        return _of_those_that_fit(base, others, sure)
    least = _MATTERS * free_money if is_seen else math.inf
    better = [one for one in others if _figure(one, base, least) and not _figure(base, one, least)]
    best = min(better, key=lambda one: (-_mean(one.empty), _mean(one.money)), default=None)
    if best is not None:
        figure = _figure(best, base, least)
        text = (
            f"{best.name}: it {best.told()}, while the {base.name} {base.told()}; {sure}, "
            f"with every pod placed. {_SPREADS if figure == 'stranded' else ''}{_PROTECTS}"
        )
        return Advice(best.name, figure, text)
    trades = [one for one in others if _figure(one, base, least)]
    if trades:
        texts = "; ".join(f"{one.name} {one.told()}" for one in trades)
        text = (
            f"Stay with the {base.name}: it {base.told()}, {sure}, with every pod placed. No mode is better by "
            f"one figure and as good by the other: {texts}."
        )
    else:
        is_better = any(_figure(base, one, least) for one in others) or len(others) < len(tried) - 1
        stay = "Stay" if is_better else "No difference that matters; stay"
        text = (
            f"{stay} with the {base.name}: it {base.told()}, {sure}, with every pod placed, and no mode does "
            "better in every order."
        )
    return Advice(base.name, "", text if is_seen else text + _UNSEEN)


def spread(values: Sequence[float]) -> str:
    """``14 to 17``, or one figure where they are the same as written."""
    low, high = (_amount(value) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _of_those_that_fit(base: Tried, others: Sequence[Tried], sure: str) -> Advice:
    left = f"the {base.name} leaves {spread(base.unplaced)} pods without a place"
    best = min(others, key=lambda one: (-_mean(one.empty), _mean(one.money)), default=None)
    if best is None:
        text = (
            f"Stay with the {base.name}: no mode keeps every pod placed in every order "
            f"({left}); the cluster is too full to tell modes apart."
        )
        return Advice(base.name, "", text)
    text = f"{best.name}: it keeps every pod placed {sure}, while {left}; it {best.told()}. {_PROTECTS}"
    return Advice(best.name, "unplaced", text)


def _figure(one: Tried, other: Tried, least: float) -> str:
    """By which figure one is better than another; empty for none."""
    if one.empties_more(other):
        return "emptyNodes"
    return "stranded" if one.strands_less(other, least) else ""


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _amount(value: float) -> str:
    if isinstance(value, int) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}"
