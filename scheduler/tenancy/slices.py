"""Slices: a job that changes its size while it runs gets another workload, which replaces the one that it has.

The new slice needs quota only for what it asks beyond the old one, in the flavors of the old one. The moment it gets
quota, the old one has none any more.

Source: Kueue (2026-08), ``pkg/workloadslicing/workloadslicing.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler.api import names
from scheduler.api.jobs import table
from scheduler.api.queues.workloads import WorkloadDefinition
from scheduler.tenancy.works import Where, Work

# What is asked of a topology that some pods cannot have without the others, and as what it is asked.
_REFUSED = {
    "required": names.KUEUE_REQUIRED,
    "preferred": names.KUEUE_PREFERRED,
    "podSetSliceRequiredTopology": names.KUEUE_SLICE_LEVEL,
    "podsetSliceRequiredTopologyConstraints": names.KUEUE_SLICES,
}


def find_refusal(defined: WorkloadDefinition) -> str:
    """Find why the workload of a job that changes its size while it runs cannot be tried; empty if it can."""
    if defined.owner is not None and defined.owner[0] not in table.WITH_SLICES:
        return f"annotation {names.KUEUE_ELASTIC}: {table.describe_refusal(defined.owner[0])}"
    if any(one.least < one.n_pods for one in defined.sets):
        return f"{names.KUEUE_LEAST} is not supported with {names.KUEUE_ELASTIC}"
    for one in defined.sets:
        for key, name in _REFUSED.items():
            if (one.shape.topology or {}).get(key) is not None:
                return f"pod set {one.name}: {name} is not supported with {names.KUEUE_ELASTIC}"
    return ""


def find_old(works: Mapping[str, Work], new: Work) -> Work | None:
    """Find the slice that a workload replaces once it gets quota; None if there is none, or if that one has to go."""
    old = works.get(new.defined.replaces) if new.defined.replaces else None
    if old is None or old.where != Where.HOLDS or old.is_going or not _may_replace(new, old):
        return None
    return old


def find_replaced(works: Mapping[str, Work], new: Work) -> Work | None:
    """Find the slice whose quota a workload has taken over; None if there is none."""
    old = works.get(new.defined.replaces)
    return old if old is not None and old.replaced_by is new else None


def give_back(works: Mapping[str, Work], new: Work) -> Work | None:
    """Let nobody have the quota of the slice that a workload replaces, if its object does not say yet that it does; return that slice."""
    old = find_replaced(works, new) if new.is_assumed else None
    if old is not None:
        old.replaced_by = None
    return old


def is_over(work: Work) -> bool:
    """Whether a workload waits for nothing: it is finished, or another slice has quota in its place."""
    new = work.replaced_by
    return work.defined.is_finished or (new is not None and new.where == Where.HOLDS)


def find_new(old: Work, replacing: Iterable[Work]) -> Work | None:
    """Find the slice that has quota in the place of a workload; ``replacing``: those that say that they replace it.

    Beside a slice that got quota of its own, and whose object does not say so yet, the old one goes on: that slice may
    not get it after all.
    """
    if old.replaced_by is not None:
        return old.replaced_by
    for new in replacing:
        is_sure = not (new.is_assumed and old.where == Where.HOLDS)
        if new.where == Where.HOLDS and is_sure and _may_replace(new, old):
            return new
    return None


def _may_replace(new: Work, old: Work) -> bool:
    """Whether a slice may take over what another one holds: both are of one job that has slices, in one queue."""
    given = old.defined.admission
    return (
        given is not None
        and new is not old
        and (old.defined.owner is None or _find_uid(new) == _find_uid(old))
        and given.queue == new.queue
        and not old.defined.evicted
        and old.defined.owner == new.defined.owner
    )


def _find_uid(work: Work) -> str | None:
    """Find the uid of the job of a slice, empty for none; None for a workload of a job that has no slices."""
    return work.defined.chain.rpartition("/")[2] if work.defined.chain else None


def list_flavors(old: Work | None) -> dict[str, dict[str, str]]:
    """Return the flavor of each resource of each pod set of a slice; empty for None."""
    given = old.defined.admission if old is not None else None
    return {one.name: dict(one.flavors) for one in given.assigned} if given else {}
