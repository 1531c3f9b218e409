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
    head = f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} gauge\n"
    name = metric.name
    pairs = zip(labels, figures.tolist(), strict=True)
    return "".join([head, *(f"{name}{label} {figure}\n" for label, figure in pairs)]).encode()
