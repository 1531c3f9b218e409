"""How figures and lists of names are written in the messages of waiting pods."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.api import names
from scheduler.errors import make_visible

_KI, _MI, _GI = 1 << 10, 1 << 20, 1 << 30
_BYTES = frozenset({names.MEMORY, names.EPHEMERAL})
# The most names in a list, and the length of a name. A longer name is left out, because half of it would be another name.
_LISTED, _NAME_MAX = 3, 64


def write_pair(resource: str, asked: int, free: int) -> tuple[str, str]:
    """Write the requested amount and the smaller free amount in one unit; rounding never makes them equal."""
    if resource == names.CPU:
        return _write_thousandths(asked), _write_thousandths(free)
    if resource in _BYTES or resource.startswith("hugepages-"):
        return _write_bytes(asked, free)
    return str(asked), str(free)


def write_amount(resource: str, figure: int) -> str:
    """Write a figure as in a pod: in the largest unit in which the figure is a whole number."""
    if resource == names.CPU:
        return _write_thousandths(figure)
    if resource in _BYTES or resource.startswith("hugepages-"):
        for unit, sign in ((_GI, "Gi"), (_MI, "Mi"), (_KI, "Ki")):
            if figure and figure % unit == 0:
                return f"{figure // unit}{sign}"
    return str(figure)


def write_rounded(resource: str, figure: int) -> str:
    """Write a figure for a quick reader: bytes with one decimal of the largest unit below the figure."""
    if resource in _BYTES or resource.startswith("hugepages-"):
        for unit, sign in ((_GI, "Gi"), (_MI, "Mi"), (_KI, "Ki")):
            if figure >= unit:
                # The figure is rounded down, so that the text never promises more than is free.
                return f"{figure * 10 // unit / 10:.12g}{sign}"
    return write_amount(resource, figure)


def write_some(names: Sequence[str], what: str) -> str:
    """Write the first names and how many more there are; if no name can be shown, only how many, as ``what``."""
    told = [make_visible(name) for name in names if name and len(name) <= _NAME_MAX][:_LISTED]
    more = len(names) - len(told)
    if not told:
        return count_nouns(more, what)
    return ", ".join(told) + (f" and {more} more" if more else "")


def write_all(names: Sequence[str], what: str) -> str:
    """Write all names, ``a, b and c``; if they are many or a name is too long, write them as ``write_some``."""
    if len(names) > _LISTED or not all(0 < len(name) <= _NAME_MAX for name in names):
        return write_some(names, what)
    told = [make_visible(name) for name in names]
    return " and ".join(filter(None, (", ".join(told[:-1]), told[-1])))


def count_nouns(n: int, what: str) -> str:
    """Write ``1 GPU`` or ``2 GPUs``."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _write_thousandths(milli: int) -> str:
    return str(milli // 1000) if milli % 1000 == 0 else f"{milli / 1000:.3f}".rstrip("0")


def _write_bytes(asked: int, free: int) -> tuple[str, str]:
    """Write both in the largest unit in which the request is a whole number; the free amount is rounded down."""
    if asked % _GI == 0:
        return f"{asked // _GI}Gi", f"{free * 10 // _GI / 10:g}Gi"
    for unit, sign in ((_MI, "Mi"), (_KI, "Ki")):
        if asked % unit == 0:
            return f"{asked // unit}{sign}", f"{free // unit}{sign}"
    return f"{asked} bytes", f"{free} bytes"
