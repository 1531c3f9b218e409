"""Many lines of one gauge at once, as both exposition formats have them."""

from __future__ import annotations

from scheduler.kube.report.metrics.families import Family
from scheduler.schema.columns import Floats, Ints

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def escape_label(value: str) -> str:
    """The value of a label, as it stands between its quotes."""
    return value.translate(_ESCAPES)


def write_gauge(metric: Family, labels: list[str], figures: Ints | Floats) -> bytes:
    """A line for each of the labels, which stand in their braces, and its figure."""
    head = f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} gauge\n"
    name = metric.name
    pairs = zip(labels, figures.tolist(), strict=True)
    return "".join([head, *(f"{name}{label} {figure}\n" for label, figure in pairs)]).encode()
