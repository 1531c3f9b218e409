"""Decisions on their way to the API server, and the record of those that have not ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from scheduler.api.door.decisions import Bind
from scheduler.devices import table as devices
from scheduler.state.pods import PodRecord


@dataclass(frozen=True, slots=True)
class Done:
    """A step is done; the next one may be taken."""


@dataclass(frozen=True, slots=True)
class Waits:
    """A step is begun, and is done when the watch says so; no worker is held up until then."""

    what: str


@dataclass(frozen=True, slots=True)
class Contended:
    """Somebody else rightly holds what a step needs."""

    by: str


Answer = Done | Waits | Contended


class Impossible(Exception):  # noqa: N818
    """A step can never be done for this job; the text says why."""


class Start(NamedTuple):
    """Let a job that waited go on."""

    job: Job


class GiveBack(NamedTuple):
    """End a job that no worker has, without effect."""

    job: Job
    why: str


class Waiting(Protocol):
    """The jobs that wait for a step, and what is to become of them when something happens."""

    def __len__(self) -> int:
        """How many there are."""

    def seen(self, kind: str, namespace: str, name: str) -> Iterable[Start | GiveBack]:
        """An object is there, another, or gone."""

    def node_gone(self, node: str) -> Iterable[Start | GiveBack]:
        """A node was deleted."""

    def passed(self, now: float) -> Iterable[Start | GiveBack]:
        """It is ``now``, by the loop's time."""

    def given_up(self, why: str) -> Iterable[Start | GiveBack]:
        """Nothing that waits shall be carried out."""

    def drop(self, job: Job) -> bool:
        """A job waits no more; whether it did."""


class Step(Protocol):
    """A row of the table of what must be done before a bind."""

    @property
    def name(self) -> str:
        """What it is called in the log."""

    @property
    def is_in_turn(self) -> bool:
        """Whether it is taken while it is the job's turn before its node, where it takes turns; else before that."""

    @property
    def is_final(self) -> bool:
        """Whether nothing of it is undone when the bind comes to nothing."""

    @property
    def waiting(self) -> Waiting | None:
        """The jobs that wait for it; None where it makes none wait."""

    def concerns(self, job: Job) -> bool:
        """Whether the job needs it."""

    async def take(self, job: Job, may_write: Callable[[], bool]) -> Answer:
        """Do it. ``may_write`` is asked before every write.

        Raises:
            ApiError: the API server refused, or could not be reached.
            Impossible: it cannot be done.
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
        n_taken: how many rows of the table of steps are behind it.
        begun: the steps that may have to be undone, in the order they were begun.
        has_turn: it is its turn before the node.
        others: the jobs of the same plan, which stands or falls as a whole.
    """

    bind: Bind
    pod: PodRecord
    term: int
    submitted_at: float
    pod_is_gone: bool = False
    begun: list[Step] = field(default_factory=list)
    is_sent: bool = False
    withdrawn: str = ""
    n_taken: int = 0
    has_turn: bool = False
    others: Sequence[Job] = ()

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.bind.uid

    @property
    def node(self) -> str:
        """The node that the pod is to go to."""
        return self.bind.node

    @property
    def takes_turns(self) -> bool:
        """Whether the node's device plugin has to serve the pod, which it does one pod at a time."""
        return bool(self.bind.slots) and devices.get_card_driver(self.bind.driver).takes_turns


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
