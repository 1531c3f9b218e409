"""Writes many lines of one gauge at once, in a form that both exposition formats have."""

from __future__ import annotations

from scheduler.kube.report.metrics.families import Family
from scheduler.schema.columns import Floats, Ints

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def escape_label(value: str) -> str:
    """Escape the value of a label, for its place between quotes."""
    return value.translate(_ESCAPES)


def write_gauge(metric: Family, labels: list[str], figures: Ints | Floats) -> bytes:
    """Write a line for each figure; the labels come with their braces."""
    name = metric.name
    pairs = zip(labels, _print(figures), strict=True)
    lines = (f"{name}{label} {figure}\n" for label, figure in pairs)
    return "".join([_write_head(metric), *lines]).encode()


def write_gauge_in_parts(
    metric: Family, begins: list[str], which: list[int], ends: list[str], figures: Ints | Floats
) -> bytes:
    """Write a line for each figure; the labels begin with one of a few texts, and ``which`` says with which of them."""
    named = [f"{metric.name}{begin}" for begin in begins]
    parts = zip(which, ends, _print(figures), strict=True)
    lines = (f"{named[begin]}{end} {figure}\n" for begin, end, figure in parts)
    return "".join([_write_head(metric), *lines]).encode()


def _print(figures: Ints | Floats) -> list[int] | list[str]:
    """Return figures in a form that is quick to format: fractions are printed once each, whole numbers not yet."""
    found: list[int] = figures.tolist()
    if figures.dtype.kind != "f":
        return found
    printed = {figure: str(figure) for figure in set(found)}
    return [printed[figure] for figure in found]


def _write_head(metric: Family) -> str:
    return f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} gauge\n"
