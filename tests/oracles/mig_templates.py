"""MIG by templates, as HAMi up to 2.9 has it, slowly: a card in use keeps its template, an idle one may take any.

A template is the list of all its instances, an instance (MiB, slices). What is in use of a card are numbers of instances, each
with the number of its template.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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


def measure_milli(templates: Templates, slices: int) -> int:
    return slices * 1000 // max(one.slices for template in templates for one in template)


def measure_fitting(templates: Templates, used: Used, requested: Mapping[int, float]) -> float:
    """How much of each size fits if nothing else is cut, in milli-GPU; sizes count as often as pods request them."""
    every = [one for template in templates for one in template]
    once = {one.slices: 1 for one in every}
    found = 0.0
    for size, n in requested.items():
        worth = measure_milli(templates, min(one.slices for one in every if one.mib == size))
        found += n * worth * sum_best(templates, used, once, size)
    return found / sum(requested.values())


def compute_loss(templates: Templates, mib: int, before: Used, after: Used) -> float:
    """What an instance costs that a pod of so many MiB gets while nothing is known of the demand."""
    every = [one for template in templates for one in template]
    of_slices = {one.slices: one.slices for one in every}
    rooms = [
        measure_milli(templates, sum_best(templates, used, of_slices, 0))
        for used in (before, after)
    ]
    smallest = min((one for one in every if one.mib >= mib), key=lambda one: one.mib)
    lost = rooms[0] - rooms[1] - measure_milli(templates, smallest.slices)
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
