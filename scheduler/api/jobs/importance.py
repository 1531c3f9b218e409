"""How important jobs are: by their classes, which are those of workloads or those of pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scheduler.api.jobs import workloads
from scheduler.api.jobs.parts import JobPart, Json, get_in
from scheduler.api.jobs.table import JobKind
from scheduler.api.jobs.workloads import Importance


class ClassMissing(Exception):  # noqa: N818
    """A job names a class that is not there."""


class Ranked(NamedTuple):
    """By what the priority of a job is found: the class of workloads that it names, else that of its pods."""

    of_workloads: str
    of_pods: str


def rank_job(row: JobKind, job: Json, parts: Sequence[JobPart]) -> Ranked:
    """Find by what the priority of a job is found; ``parts``: its own, or those of the object that is made of it."""
    of_pods = row.find_class(job) or workloads.find_pod_class(parts)
    return Ranked(workloads.find_class(job), of_pods)


def rank_pod(pod: Json) -> Ranked:
    """Find by what the priority of a pod that waits by itself is found."""
    of_pods = str(get_in(pod, ("spec", "priorityClassName")) or "")
    return Ranked(workloads.find_class(pod), of_pods)


def find_importance(
    ranked: Ranked,
    of_workloads: Mapping[str, int],
    of_pods: Mapping[str, int],
    default: Importance,
) -> Importance:
    """Find how important a job is.

    Args:
        ranked: by what.
        of_workloads: the values of the WorkloadPriorityClasses that are there, by name.
        of_pods: those of the PriorityClasses.
        default: how important pods are that name no class.

    Raises:
        ClassMissing: it names a class that is not there.
    """
    name = ranked.of_workloads
    if name:
        if name not in of_workloads:
            raise ClassMissing(f'WorkloadPriorityClass "{name}" not found')
        return Importance(of_workloads[name], name, is_of_workloads=True)
    name = ranked.of_pods
    if not name:
        return default
    if name not in of_pods:
        raise ClassMissing(f'PriorityClass "{name}" not found')
    return Importance(of_pods[name], name)
