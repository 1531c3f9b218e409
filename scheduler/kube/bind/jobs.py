"""Decisions on their way to the API server, and the record of those that have not ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from scheduler.api.door.decisions import Bind
from scheduler.devices import table as devices
from scheduler.state.pods import PodRecord


class Step(Protocol):
    """Something that must be done before a bind and undone when the bind comes to nothing."""

    @property
    def name(self) -> str:
        """What it is called in the log."""

    def concerns(self, job: Job) -> bool:
        """Whether the job needs it."""

    async def take(self, job: Job, may_write: Callable[[], bool]) -> bool:
        """Do it; False when somebody else rightly holds what it needs, so that the job must wait.

        Only a job that takes turns before its node can wait. ``may_write`` is asked before every write.
        """

    async def undo(self, job: Job) -> None:
        """Undo what an earlier ``take`` has done, or may have done without knowing."""


@dataclass(slots=True, eq=False)
class Job:
    """A decision on its way.

    Attributes:
        bind: the decision.
        pod: its pod, as it was when the decision was made.
        term: the term of leadership it was made in, 0 when that had lapsed.
        submitted_at: loop time.
        pod_is_gone: the pod was deleted meanwhile.
        is_sent: a bind of it was sent, and may take effect.
        withdrawn: why it was taken back before that; empty when it was not.
        begun: the steps that may have taken effect, in the order they were begun.
        claims_are_bound: what its claims were given is theirs by now.
    """

    bind: Bind
    pod: PodRecord
    term: int
    submitted_at: float
    pod_is_gone: bool = False
    begun: list[Step] = field(default_factory=list)
    is_sent: bool = False
    withdrawn: str = ""
    claims_are_bound: bool = False

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.bind.uid

    @property
    def node(self) -> str:
        """The node that the pod is to go to."""
        return self.bind.node

    @property
    def waits_for_claims(self) -> bool:
        """Whether its claims are to be bound before it."""
        return bool(self.bind.given) and not self.claims_are_bound

    @property
    def takes_turns(self) -> bool:
        """Whether the node's device plugin has to serve the pod, which it does one pod at a time."""
        return bool(self.bind.slots) and devices.cards_of(self.bind.driver).takes_turns


class OpenJobs:
    """The jobs that have not ended; each ends once."""

    def __init__(self) -> None:
        self._open: set[Job] = set()
        self._by_uid: dict[str, Job] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[str]:
        """The uids of their pods."""
        return iter(self._by_uid)

    def begin(self, job: Job) -> None:
        """A job was submitted."""
        self._open.add(job)
        self._by_uid[job.uid] = job

    def get_job(self, uid: str) -> Job | None:
        """The job of a pod; None when it has none."""
        return self._by_uid.get(uid)

    def pod_gone(self, uid: str) -> None:
        """A pod was deleted: nothing more is written for it if that has not begun."""
        if job := self._by_uid.get(uid):
            job.pod_is_gone = True

    def end(self, job: Job) -> None:
        """A job ends here.

        Raises:
            KeyError: it has ended before.
        """
        self._open.remove(job)
        if self._by_uid.get(job.uid) is job:
            del self._by_uid[job.uid]
