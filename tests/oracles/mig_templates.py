"""MIG by templates, as HAMi up to 2.9 has it, slowly: a card in use keeps its template, an idle one may take any.

A template is the list of all its instances, an instance (MiB, slices). What is in use of a card are numbers of instances, each
with the number of its template.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Instance(NamedTuple):
    """An instance of a template."""

    mib: int
    slices: int


Templates = Sequence[Sequence[Instance]]
# (template, place in the template)
Used = frozenset[tuple[int, int]]


def list_free(templates: Templates, used: Used) -> Iterator[tuple[int, int]]:
    """The instances that a card can still have, in the order of the tables."""
    in_force = {template for template, _ in used}
    for number, template in enumerate(templates):
        for place in range(len(template)):
            if in_force <= {number} and (number, place) not in used:
                yield number, place


def choose_by_hami(templates: Templates, mib: int, used: Used) -> tuple[int, int] | None:
    """The first instance that suffices."""
    free = list_free(templates, used)
    return next(((t, i) for t, i in free if templates[t][i].mib >= mib), None)


def sum_best(templates: Templates, used: Used, worth: dict[int, int], least: int) -> int:
    """The most that instances of at least so many MiB are worth together, of one template."""
    free = list(list_free(templates, used))
    return max(
        (
            sum(
                worth[templates[t][i].slices]
                for t, i in free
                if t == number and templates[t][i].mib >= least
            )
            for number in range(len(templates))
        ),
        default=0,
    )


def compute_loss(templates: Templates, mib: int, before: Used, after: Used) -> float:
    """What an instance costs that a pod of so many MiB gets while no pods leave and nothing is known of the demand."""
    every = [one for template in templates for one in template]
    most = max(one.slices for one in every)
    of_slices = {one.slices: one.slices for one in every}
    once = dict.fromkeys(of_slices, 1)

    def milli(slices: int) -> int:
        return slices * 1000 // most

    rooms = [milli(sum_best(templates, used, of_slices, 0)) for used in (before, after)]
    smallest = min((one for one in every if one.mib >= mib), key=lambda one: one.mib)
    fewer = [
        milli(min(one.slices for one in every if one.mib == size))
        * (sum_best(templates, before, once, size) - sum_best(templates, after, once, size))
        for size in sorted({one.mib for one in every})
    ]
    lost = rooms[0] - rooms[1] - milli(smallest.slices) + 0.25 * sum(fewer) / len(fewer)
    return 3 * lost + 0.07 * rooms[1] + (rooms[0] - rooms[1])


def choose_by_keel(
    templates: Templates, mib: int, cards: Sequence[Used | None]
) -> tuple[int, int, int] | None:
    """The card and the instance of least loss, the first of equals; None where there is none. A card of None is closed."""
    found = []
    for card, used in enumerate(cards):
        if used is None:
            continue
        free = [(t, i) for t, i in list_free(templates, used) if templates[t][i].mib >= mib]
        # The first one of the least memory says of which profile it is to be; what is chosen are template and place.
        smallest = min((templates[t][i] for t, i in free), key=lambda one: one.mib, default=None)
        for at in free:
            if templates[at[0]][at[1]] == smallest:
                cost = compute_loss(templates, mib, used, used | {at})
                found.append((cost, (card, *at)))
    if not found:
        return None
    least_cost = min(cost for cost, _ in found)
    return next(at for cost, at in found if cost <= least_cost + 1e-9)
