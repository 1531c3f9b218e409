"""The twins of the choosers of Ascend, AWS Neuron and Metax: HAMi's rules as lists, slow and plain.

``fitting`` are the places of the devices that a container may have, in the order of the walk.

Source: HAMi (v2.10), ``pkg/device/ascend``, ``awsneuron``, ``metax``, in our own words. Where HAMi takes what a map in Go shows
first, the twins take what the walk shows first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

Picks = list[int] | None
Choose = Callable[[list[int], list[int | None], int], Picks]


def _list_groups(fitting: Sequence[int], groups: Sequence[int | None]) -> list[list[int]]:
    """The devices by group, groups and devices in the order of the walk; devices without a group are left out."""
    found: dict[int, list[int]] = {}
    for i in fitting:
        group = groups[i]
        if group is not None:
            found.setdefault(group, []).append(i)
    return list(found.values())


def _flatten(found: Iterable[Iterable[int]]) -> list[int]:
    return [i for one in found for i in one]


def choose_by_network(fitting: list[int], groups: list[int | None], wanted: int) -> Picks:
    """Ascend: devices of the networks that have most."""
    if len(fitting) < wanted:
        return None
    if wanted in (1, len(fitting)) or None in groups:
        return fitting[:wanted]
    largest_first = sorted(map(list, _list_groups(fitting, groups)), key=len, reverse=True)
    return _flatten(largest_first)[:wanted]


def choose_pairs(fitting: list[int], _groups: list[int | None], wanted: int) -> Picks:
    """Ascend's 910C: modules of two as a whole."""
    if wanted == 1:
        return fitting[:1] or None
    modules = _list_groups(fitting, [i // 2 for i in range(max(fitting, default=0) + 1)])
    whole = _flatten(one for one in modules if len(one) == 2)
    return whole[:wanted] if wanted % 2 == 0 and len(whole) >= wanted else None


def choose_in_ring(fitting: list[int], _groups: list[int | None], wanted: int) -> Picks:
    """Inferentia: devices that follow each other."""
    if wanted == 1:
        return fitting[:1] or None
    spans = (list(range(i, i + wanted)) for i in sorted(fitting))
    return next((one for one in spans if set(one) <= set(fitting)), None)


def choose_aligned(fitting: list[int], groups: list[int | None], wanted: int) -> Picks:
    """Trainium: 4, 8 or 16 devices that begin at a multiple of their number."""
    if wanted == 1:
        return fitting[:1] or None
    if wanted not in (4, 8, 16):
        return None
    spans = (list(range(i, i + wanted)) for i in range(0, len(groups), wanted))
    return next((one for one in spans if set(one) <= set(fitting)), None)


def choose_by_zone(fitting: list[int], groups: list[int | None], wanted: int) -> Picks:
    """Metax: whole cards of small zones."""
    if len(fitting) <= wanted:
        return fitting if len(fitting) == wanted else None
    zones = sorted(_list_groups(fitting, groups), key=len)
    enough = [one for one in zones if len(one) >= wanted]
    if enough:
        return enough[0][:wanted]
    others = [i for i in fitting if groups[i] is None]
    return [*_flatten(zones), *others][:wanted]
