"""The advice: which mode to use, which figures support it, and how certain it is.

What counts is what the nodes hold once the cluster is filled up. A mode holds more than the default only where its
worst order beats the default's best one. A mode is advised where it holds more of one resource and less of none;
where the ranges overlap there is no advice. The number of pods is shown, and speaks for no mode alone: more pods
that hold no more are smaller pods, and larger ones were refused for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# A smaller share of what the default holds is no difference that matters.
_MATTERS = 0.01
# The figures by which modes are compared, what counts most first, and how they are written.
PODS = "pods"
FIGURES = {
    "gpuCompute": "{} GPUs",
    "cpu": "{} cores",
    "memory": "{} GiB of memory",
    PODS: "{} pods",
}
_PROTECTS = (
    "These figures do not include what the default protects: whole GPUs and balanced free capacity for pods that "
    "come and go. In this simulation no pod leaves."
)
_UNSEEN = "None, because the cluster has too few pods to predict which pods come next."
_ONE_ORDER = "None, because one order does not show how much the figures differ between orders."
_NO_CHANGE = "No reason to change the mode."


@dataclass(frozen=True, slots=True)
class Tried:
    """What one mode held in the end, order by order.

    Attributes:
        name: as the user writes it.
        held: by ``FIGURES``.
    """

    name: str
    held: Mapping[str, Sequence[float]]

    def holds_more(self, other: Tried) -> list[str]:
        """The figures of which it holds more, in whatever order, and not by next to nothing."""
        return [name for name in FIGURES if _is_more(self.held[name], other.held[name])]

    def describe(self, figures: Sequence[str]) -> str:
        """``612 to 629 GPUs and 1,531 to 1,564 pods``."""
        texts = [FIGURES[name].format(spread(self.held[name])) for name in figures]
        return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do.

    Attributes:
        mode: the mode to take; empty where nothing can be compared.
        figure: of what it holds more than the default; empty for the default itself.
        text: the same in sentences.
    """

    mode: str
    figure: str
    text: str


def give(tried: Sequence[Tried], default: str, *, is_seen: bool = True) -> Advice:
    """What follows from what each mode held.

    ``default`` is the name of the default among those tried; where it was not tried there is none to compare with.
    Unless ``is_seen``, the pods that came are no sample of those that will.
    """
    base = next((one for one in tried if one.name == default), None)
    if base is None:
        return Advice(
            "", "", f"None, because advice needs --mode {default} among the compared modes."
        )
    n_orders = len(base.held[PODS])
    if not is_seen or n_orders == 1:
        return Advice(base.name, "", _ONE_ORDER if is_seen else _UNSEEN)
    others = [one for one in tried if one is not base]
    better = [one for one in others if _is_better(one, base)]
    best = max(better, key=lambda one: _gains(one, base), default=None)
    if best is None:
        return Advice(base.name, "", _stay(base, others, n_orders))
    more = best.holds_more(base)
    text = (
        f"Use {best.name}. Filled up with {best.name}, the nodes hold {best.describe(more)}; with the {base.name} they "
        f"hold {base.describe(more)}. {best.name} holds more in all {n_orders} orders and no less of any "
        f"resource. {_PROTECTS}"
    )
    return Advice(best.name, more[0], text)


def spread(values: Sequence[float]) -> str:
    """``14 to 17``, or one figure where they are the same as written."""
    low, high = (_amount(value) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _stay(base: Tried, others: Sequence[Tried], n_orders: int) -> str:
    alike, sentences = [], []
    for one in others:
        more, less = one.holds_more(base), base.holds_more(one)
        if not (more or less):
            alike.append(one.name)
            continue
        parts = [f"more ({one.describe(more)})"] if more else []
        parts += [f"less ({one.describe(less)})"] if less else []
        told = f"{one.name} holds {' but also '.join(parts)}"
        smaller = (
            ": its pods are smaller and hold no more of any resource" if more == [PODS] else ""
        )
        sentences.append(f"{told}{smaller}.")
    figures = [name for name in FIGURES if any(base.held[name])] or [PODS]
    first = f"Filled up with the {base.name} in {n_orders} orders, the nodes hold {base.describe(figures)}."
    if alike:
        sentences.insert(
            0,
            f"With {', '.join(alike)} the nodes hold amounts that overlap with these or differ by less than "
            f"{_MATTERS:.0%}.",
        )
    return " ".join((_NO_CHANGE, first, *sentences))


def _is_better(one: Tried, other: Tried) -> bool:
    more, less = one.holds_more(other), other.holds_more(one)
    return bool(set(more) - {PODS}) and not set(less) - {PODS}


def _is_more(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    mean = _mean(theirs)
    return min(ours) > max(theirs) and _mean(ours) - mean >= _MATTERS * mean


def _gains(one: Tried, base: Tried) -> list[float]:
    """How much more it holds, of what counts most first."""
    more = one.holds_more(base)
    return [
        _mean(one.held[name]) / max(_mean(base.held[name]), 1e-9) if name in more else 1.0
        for name in FIGURES
    ]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _amount(value: float) -> str:
    if isinstance(value, int) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}"
