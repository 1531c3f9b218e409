"""Where ``keel`` cuts an instance, slowly: sets of slots and every way to fill what is left of a card.

A profile is (name, MiB, slices, places), a place (start, size). Cards are the sets of their slots that are in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

Slots = frozenset[int]


class Profile(NamedTuple):
    """A kind of instance."""

    name: str
    mib: int
    slices: int
    places: tuple[tuple[int, int], ...]


def list_places(profile: Profile, used: Slots) -> Iterator[tuple[tuple[int, int], Slots]]:
    """The places that are free, in HAMi's order, each with its slots."""
    for start, size in sorted(profile.places, reverse=profile.name[:2] in ("1g", "3g")):
        slots = frozenset(range(start, start + size))
        if not slots & used:
            yield (start, size), slots


@cache
def find_room(profiles: tuple[Profile, ...], used: Slots) -> int:
    """The most slices that instances can have which fit beside each other in what is left."""
    return max(
        (
            one.slices + find_room(profiles, used | slots)
            for one in profiles
            for _, slots in list_places(one, used)
        ),
        default=0,
    )


@cache
def count_fitting(profiles: tuple[Profile, ...], mib: int, used: Slots) -> int:
    """How many instances of at least so many MiB fit beside each other."""
    return max(
        (
            1 + count_fitting(profiles, mib, used | slots)
            for one in profiles
            if one.mib >= mib
            for _, slots in list_places(one, used)
        ),
        default=0,
    )


def measure_milli(profiles: tuple[Profile, ...], slices: int) -> int:
    return slices * 1000 // max(one.slices for one in profiles)


def compute_loss(profiles: tuple[Profile, ...], mib: int, before: Slots, after: Slots) -> float:
    """What a place costs that a pod of so many MiB gets while no pods leave and nothing is known of the demand."""
    room_before, room_after = (
        measure_milli(profiles, find_room(profiles, used)) for used in (before, after)
    )
    worth = measure_milli(profiles, next(one.slices for one in profiles if one.mib >= mib))
    fewer = [
        measure_milli(profiles, min(one.slices for one in profiles if one.mib == size))
        * (count_fitting(profiles, size, before) - count_fitting(profiles, size, after))
        for size in sorted({one.mib for one in profiles})
    ]
    lost = room_before - room_after - worth + 0.25 * sum(fewer) / len(fewer)
    # A milli-GPU that is taken costs as much as it is worth to others, here all of it.
    return 3 * lost + 0.07 * room_after + (room_before - room_after)


def choose_place(
    profiles: tuple[Profile, ...], mib: int, cards: Sequence[Slots]
) -> tuple[int, str, int, int] | None:
    """The card and the place (profile, start, size) of least loss, the first of equals; None where there is none."""
    found: list[tuple[float, int, str, int, int]] = []
    for card, used in enumerate(cards):
        suiting = [one for one in profiles if one.mib >= mib and any(list_places(one, used))]
        for (start, size), slots in list_places(suiting[0], used) if suiting else ():
            cost = compute_loss(profiles, mib, used, used | slots)
            found.append((cost, card, suiting[0].name, start, size))
    if not found:
        return None
    least = min(cost for cost, *_ in found)
    return next((card, *rest) for cost, card, *rest in found if cost <= least + 1e-9)  # type: ignore[return-value]


@cache
def list_patterns(profiles: tuple[Profile, ...], used: Slots) -> frozenset[tuple[int, ...]]:
    """Every number of instances of each MiB, ascending, that fit beside each other in what is left."""
    sizes = sorted({one.mib for one in profiles})
    found = {(0,) * len(sizes)}
    for one in profiles:
        for _, slots in list_places(one, used):
            for rest in list_patterns(profiles, used | slots):
                at = sizes.index(one.mib)
                found.add((*rest[:at], rest[at] + 1, *rest[at + 1 :]))
    return frozenset(found)


def compute_fewest_cards(profiles: tuple[Profile, ...], counts: Sequence[float]) -> float:
    """The fewest cards, in parts of cards as well, that hold so many instances of each MiB: the program, written out."""
    patterns = sorted(list_patterns(profiles, frozenset()))
    solved = linprog(
        np.ones(len(patterns)), A_ub=-np.array(patterns).T, b_ub=-np.array(counts), method="highs"
    )
    return float(solved.fun)
