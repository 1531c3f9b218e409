"""Flavors together with a place: quota in which a workload could not start does not count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.tenancy.assigning import Assigner, Tried
from scheduler.tenancy.assignments import Assignment, Mode
from scheduler.tenancy.places import Places
from scheduler.tenancy.works import Work


def assign_with_place(
    assigner: Assigner,
    places: Places,
    work: Work,
    tried: Tried = (),
    only: Mapping[str, Mapping[str, str]] | None = None,
    gone: Sequence[str] = (),
    counts: Sequence[int] | None = None,
) -> Assignment:
    """Choose flavors in which there is a place; if there are none, those in which there would be quota.

    Args:
        assigner: chooses flavors in the queue of the workload.
        places: finds places.
        work: the workload.
        tried: after which flavors to go on, as ``Assigner.assign`` takes it.
        only: the only flavors that may be chosen, likewise.
        gone: the keys of workloads that have left their places.
        counts: how many pods of each pod set; None for all.
    """
    barred, counts = frozenset[str](), work.counts if counts is None else counts
    first = full = assigner.assign(work.sets, counts, tried, only)
    if not places.needs_place(work):
        return first
    while full.mode == Mode.FIT:
        if places.has_place(work, full, gone):
            return full
        first.lacks_place = True
        first.place_problem = first.place_problem or places.find_problem(work, full)
        given = {flavor for flavor, _ in full.usage}
        if given <= barred:
            # Its pods request nothing that has a quota, so they have no flavor, and no other one can be tried.
            break
        barred |= given
        full = assigner.assign(work.sets, counts, (), only, barred)
    return first
