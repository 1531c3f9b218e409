"""How figures and lists of names are written in the messages of waiting pods."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.api import names
from scheduler.errors import visible

_KI, _MI, _GI = 1 << 10, 1 << 20, 1 << 30
_BYTES = frozenset({names.MEMORY, names.EPHEMERAL})
# Names from a pod or a node: a long name is left out, because half of it would be another name.
_LISTED, _NAME_MAX = 3, 64


def pair(resource: str, asked: int, free: int) -> tuple[str, str]:
    """The requested amount and the smaller free amount, in one unit: never rounded to the same figure."""
    if resource == names.CPU:
        return _thousandths(asked), _thousandths(free)
    if resource in _BYTES or resource.startswith("hugepages-"):
        return _bytes(asked, free)
    return str(asked), str(free)


def amount(resource: str, figure: int) -> str:
    """A figure as one would write it in a pod: in the largest unit in which it is a whole number."""
    if resource == names.CPU:
        return _thousandths(figure)
    if resource in _BYTES or resource.startswith("hugepages-"):
        for unit, sign in ((_GI, "Gi"), (_MI, "Mi"), (_KI, "Ki")):
            if figure and figure % unit == 0:
                return f"{figure // unit}{sign}"
    return str(figure)


def about(resource: str, figure: int) -> str:
    """A figure as one reads it: as ``amount``, or with one decimal of the largest unit that it has one of."""
    if resource in _BYTES or resource.startswith("hugepages-"):
        for unit, sign in ((_GI, "Gi"), (_MI, "Mi"), (_KI, "Ki")):
            if figure >= unit:
                # What is free is never written as more.
                return f"{figure * 10 // unit / 10:.12g}{sign}"
    return amount(resource, figure)


def listed(names: Sequence[str], what: str) -> str:
    """The first of several names, and how many more there are; ``what`` they are, if no name can be shown."""
    told = [visible(name) for name in names if name and len(name) <= _NAME_MAX][:_LISTED]
    more = len(names) - len(told)
    if not told:
        return count_nouns(more, what)
    return ", ".join(told) + (f" and {more} more" if more else "")


def joined(names: Sequence[str], what: str) -> str:
    """``a, b and c``; of many the first, and how many more; as ``listed`` where no name can be shown."""
    if len(names) > _LISTED or not all(0 < len(name) <= _NAME_MAX for name in names):
        return listed(names, what)
    told = [visible(name) for name in names]
    return " and ".join(filter(None, (", ".join(told[:-1]), told[-1])))


def count_nouns(n: int, what: str) -> str:
    """``1 GPU``, ``2 GPUs``."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _thousandths(milli: int) -> str:
    return str(milli // 1000) if milli % 1000 == 0 else f"{milli / 1000:.3f}".rstrip("0")


def _bytes(asked: int, free: int) -> tuple[str, str]:
    """In the largest unit in which the request is a whole number; what is free is rounded down."""
    if asked % _GI == 0:
        return f"{asked // _GI}Gi", f"{free * 10 // _GI / 10:g}Gi"
    for unit, sign in ((_MI, "Mi"), (_KI, "Ki")):
        if asked % unit == 0:
            return f"{asked // unit}{sign}", f"{free // unit}{sign}"
    return f"{asked} bytes", f"{free} bytes"
