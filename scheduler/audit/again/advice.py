"""The advice: which mode to use, which figures support it, and how certain it is.

What counts is what the nodes hold when the cluster is filled up. A mode holds more than the default only if its
worst order beats the default's best order. A mode is advised if it holds more of one resource and less of none;
if the ranges overlap, no mode is advised. The number of pods is shown, but is no reason for a mode by itself: more pods
that hold no more are smaller pods, and larger pods were refused for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# A difference below this share of what the default holds does not matter.
_MATTERS = 0.01
# The figures by which modes are compared, the most important first, and how they are written.
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
    """What the nodes held with one mode in the end, order by order.

    Attributes:
        name: the mode as users write it.
        held: what the nodes held, by ``FIGURES``.
    """

    name: str
    held: Mapping[str, Sequence[float]]

    def list_more(self, other: Tried) -> list[str]:
        """List the figures of which the mode holds clearly more, whatever the order."""
        return [name for name in FIGURES if _is_more(self.held[name], other.held[name])]

    def describe(self, figures: Sequence[str]) -> str:
        """Describe figures, as in ``612 to 629 GPUs and 1,531 to 1,564 pods``."""
        texts = [FIGURES[name].format(write_range(self.held[name])) for name in figures]
        return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


@dataclass(frozen=True, slots=True)
class Advice:
    """The advice.

    Attributes:
        mode: the mode to take; empty if nothing can be compared.
        figure: the figure of which the mode holds more than the default; empty for the default itself.
        text: the advice in sentences.
    """

    mode: str
    figure: str
    text: str


def give_advice(tried: Sequence[Tried], default: str, *, is_seen: bool = True) -> Advice:
    """Give advice from what the nodes held with each mode.

    ``default`` is the name of the default mode; if it was not tried, nothing can be compared.
    Unless ``is_seen``, the pods seen so far are no sample of later pods.
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
    best = max(better, key=lambda one: _list_gains(one, base), default=None)
    if best is None:
        return Advice(base.name, "", _advise_default(base, others, n_orders))
    more = best.list_more(base)
    text = (
        f"Use {best.name}. Filled up with {best.name}, the nodes hold {best.describe(more)}; with the {base.name} they "
        f"hold {base.describe(more)}. {best.name} holds more in all {n_orders} orders and no less of any "
        f"resource. {_PROTECTS}"
    )
    return Advice(best.name, more[0], text)


def write_range(values: Sequence[float]) -> str:
    """Write ``14 to 17``, or one figure if both read the same."""
    low, high = (_write_amount(value) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _advise_default(base: Tried, others: Sequence[Tried], n_orders: int) -> str:
    alike, sentences = [], []
    for one in others:
        more, less = one.list_more(base), base.list_more(one)
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
    more, less = one.list_more(other), other.list_more(one)
    return bool(set(more) - {PODS}) and not set(less) - {PODS}


def _is_more(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    mean = _find_mean(theirs)
    return min(ours) > max(theirs) and _find_mean(ours) - mean >= _MATTERS * mean


def _list_gains(one: Tried, base: Tried) -> list[float]:
    """List how much more a mode holds, by figure, the most important first."""
    more = one.list_more(base)
    return [
        _find_mean(one.held[name]) / max(_find_mean(base.held[name]), 1e-9) if name in more else 1.0
        for name in FIGURES
    ]


def _find_mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _write_amount(value: float) -> str:
    if isinstance(value, int) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}"
