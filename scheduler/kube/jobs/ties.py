"""What ties jobs to the rest of a scheduler."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from scheduler.api.kind import Kind
from scheduler.kube.report.reporter import Reporter


class JobTies(NamedTuple):
    """What ties jobs to the rest of a scheduler.

    Attributes:
        reporter: writes events.
        may_write: whether anything may be written.
        find_workloads: gives the kind of workloads in the version that the API server serves.
        clock: gives the time in seconds since 1970.
        schedulers: the names by which pods are ours.
        watches_pods: whether it is written on workloads that their pods are ready.
    """

    reporter: Reporter
    may_write: Callable[[], bool]
    find_workloads: Callable[[], Kind]
    clock: Callable[[], float]
    schedulers: tuple[str, ...]
    watches_pods: bool
