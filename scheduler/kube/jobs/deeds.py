"""What can be done for a job: one write each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scheduler.api.jobs.changes import Change
from scheduler.api.jobs.importance import Ranked
from scheduler.api.jobs.parts import Json

# A type, a reason and a note of an event on the job.
Words = tuple[str, str, str]


class Refusal(Exception):  # noqa: N818
    """A job wants what it cannot have, and this changes only if the job or its workload changes.

    Attributes:
        reason: of the event on the job.
    """

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(why)
        self.reason = reason


class MakeWorkload(NamedTuple):
    """Make a workload, with the priority of its job; ``words``: reported on the job; None for what is usual."""

    body: Json
    ranked: Ranked
    words: Words | None = None


class DropWorkload(NamedTuple):
    """Let go of a workload, and delete it unless it may stay.

    Attributes:
        workload: as it was read.
        may_stay: whether it is left to others to delete it.
    """

    workload: Json
    may_stay: bool = False


class WriteWorkload(NamedTuple):
    """Merge into a workload.

    Attributes:
        workload: as it was read.
        patch: what to merge into it.
        is_status: whether its status is written.
        words: reported on the job once it is written; None for nothing.
    """

    workload: Json
    patch: Json
    is_status: bool = False
    words: Words | None = None


class WriteJob(NamedTuple):
    """Change a job; ``words``: reported on the job once it is written; None for nothing."""

    change: Change
    words: Words | None = None


class SetImportance(NamedTuple):
    """Give a workload the priority that its job has by now."""

    workload: Json
    ranked: Ranked


class ChangePods(NamedTuple):
    """Change pods: each with the operations of a JSON patch; ``words``: reported on each of them."""

    pods: Sequence[tuple[Json, Sequence[Json]]]
    words: Words | None = None


class StopPods(NamedTuple):
    """Delete pods; ``reason`` and ``message``: written on them before."""

    pods: Sequence[Json]
    reason: str
    message: str


OnWorkload = MakeWorkload | DropWorkload | WriteWorkload | SetImportance
Deed = OnWorkload | WriteJob
PodDeed = OnWorkload | ChangePods | StopPods
