"""Jobs, which are decisions on their way to the API server, and the record of those that have not ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from scheduler.api.claims.answers import ClaimKey
from scheduler.api.door.decisions import Bind
from scheduler.api.door.events import BindFailed
from scheduler.devices.answers import Drivers
from scheduler.devices.contract import CardDriver, Lock
from scheduler.devices.table import CARD_DRIVERS
from scheduler.engine.questions.waiting import Place
from scheduler.state.pods import PodRecord


@dataclass(frozen=True, slots=True)
class Done:
    """A step is done; the next one may be taken."""


@dataclass(frozen=True, slots=True)
class Waits:
    """A step is begun; the watch will show when it is done. No worker is held up until then."""

    what: str


@dataclass(frozen=True, slots=True)
class Contended:
    """Another owner rightly holds what a step needs.

    Attributes:
        by: the owner, for people.
        holder: the uid of the pod that holds it, if the watch will show that the pod needs it no more; else empty.
    """

    by: str
    holder: str = ""


Answer = Done | Waits | Contended


# The place before all others.
FIRST: Place = (-math.inf, 0.0, "", "")


class Impossible(Exception):  # noqa: N818
    """A step can never be done for this job; the text says why."""


class Start(NamedTuple):
    """Let a job that waited go on."""

    job: Job


class Release(NamedTuple):
    """Remove the locks of the node that a job has left: its pod was bound, and is gone before it was served."""

    job: Job


class GiveBack(NamedTuple):
    """End a job without effect; no worker has the job."""

    job: Job
    why: str


class Waiting(Protocol):
    """The jobs that wait for a step, and what becomes of them when something happens."""

    def __len__(self) -> int:
        """Return how many jobs wait."""

    def see_object(self, kind: str, namespace: str, name: str) -> Iterable[Start | GiveBack]:
        """Return what becomes of jobs now that an object is new, changed or gone."""

    def note_node_gone(self, node: str) -> Iterable[Start | GiveBack]:
        """Return what becomes of jobs now that a node was deleted."""

    def pass_time(self, now: float) -> Iterable[Start | GiveBack]:
        """Return what becomes of jobs now that the loop's time is ``now``."""

    def give_up_waiting(self, why: str) -> Iterable[Start | GiveBack]:
        """Give back all jobs that wait."""

    def drop_job(self, job: Job) -> bool:
        """Let a job wait no more; return whether it waited."""


class Step(Protocol):
    """A row of the table of what must be done before a bind."""

    @property
    def name(self) -> str:
        """Name of the step in the log."""

    @property
    def is_in_turn(self) -> bool:
        """Whether a job that takes turns takes the step in its turn before the node, not before the turn."""

    @property
    def is_final(self) -> bool:
        """Whether the step stays done if the bind comes to nothing."""

    @property
    def waiting(self) -> Waiting | None:
        """The jobs that wait for the step; None if the step makes no job wait."""

    def is_needed_by(self, job: Job) -> bool:
        """Whether a job needs the step."""

    async def take(self, job: Job, may_write: Callable[[], bool]) -> Answer:
        """Do the step for a job. ``may_write`` is called before every write.

        Raises:
            ApiError: the API server refused, or could not be reached.
            Impossible: the step cannot be done.
        """

    async def undo(self, job: Job) -> None:
        """Undo what an earlier ``take`` has done, or may have done if its answer was lost."""


@dataclass(slots=True, eq=False)
class Job:
    """A decision on its way.

    Attributes:
        bind: the decision.
        pod: its pod, as it was when the decision was made.
        term: the term of leadership in which the decision was made, 0 if the term had lapsed.
        submitted_at: loop time.
        is_pod_gone: whether the pod was deleted meanwhile.
        is_sent: whether a bind was sent, which may take effect.
        why_withdrawn: why the decision was taken back before a bind was sent; empty if it was not.
        n_taken: how many rows of the table of steps the job has passed.
        begun_steps: the steps that may have to be undone, in the order they were begun.
        has_turn: whether it is the job's turn before the node.
        is_to_release: whether all that is left to do is to remove the locks that it has left.
        has_lost_turn: whether its turn before the node did not come: the device plugin fell silent, or the node is gone.
        n_unanswered: how often in a row the API server did not let it take a step of its turn, through its own trouble.
        others: the jobs of the same plan, which stands or falls as a whole.
        place: its place among the jobs that wait for their turns, the lowest first.
        locked_at: the time that it wrote, or tried to write, into the locks of the node; empty before.
        drivers: the drivers of cards by name.
        claim_versions: the versions of the ResourceClaims that it may have written, empty while an answer is open.
        made_claims: by the keys of claims that it has made, or tried to make, for extended resources: namespace and name.
        pod_version: the version of the pod after the status was written; empty if it was not.
    """

    bind: Bind
    pod: PodRecord
    term: int
    submitted_at: float
    is_pod_gone: bool = False
    begun_steps: list[Step] = field(default_factory=list)
    is_sent: bool = False
    why_withdrawn: str = ""
    n_taken: int = 0
    has_turn: bool = False
    is_to_release: bool = False
    has_lost_turn: bool = False
    n_unanswered: int = 0
    others: Sequence[Job] = ()
    place: Place = FIRST
    locked_at: str = ""
    drivers: Drivers = field(default_factory=lambda: CARD_DRIVERS)
    claim_versions: dict[ClaimKey, str] = field(default_factory=dict)
    made_claims: dict[ClaimKey, ClaimKey] = field(default_factory=dict)
    pod_version: str = ""

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.bind.uid

    @property
    def node(self) -> str:
        """The node to which the pod is to go."""
        return self.bind.node

    @property
    def takes_turns(self) -> bool:
        """Whether device plugins of the node have to serve the pod; they serve one pod at a time."""
        return bool(self.bind.devices)

    def describe_failure(self, why: str, *, is_gone: bool) -> BindFailed:
        """Say that the job came to nothing; ``is_gone``: the pod was deleted meanwhile."""
        claims = tuple((*key, version) for key, version in self.claim_versions.items())
        behind = self.node if self.has_lost_turn else ""
        return BindFailed(self.uid, why, is_gone, behind, claims)

    def list_locks(self) -> list[Lock]:
        """List the locks of the node that the pod needs."""
        drivers = (self.drivers[grant.driver] for grant in self.bind.devices)
        return list(dict.fromkeys(one.lock for one in drivers if one.lock is not None))

    def list_unlocked(self) -> list[CardDriver]:
        """List the drivers whose plugins find the pod without a lock, among all pods of the node."""
        drivers = (self.drivers[grant.driver] for grant in self.bind.devices)
        return [one for one in drivers if one.lock is None]


class OpenJobs:
    """The jobs that have not ended; each ends once."""

    def __init__(self) -> None:
        self._open: set[Job] = set()
        self._by_uid: dict[str, Job] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the uids of the jobs' pods."""
        return iter(self._by_uid)

    def add_job(self, job: Job) -> None:
        """Add a job that was submitted."""
        self._open.add(job)
        self._by_uid[job.uid] = job

    def get_job(self, uid: str) -> Job | None:
        """Return the job of a pod; None if the pod has none."""
        return self._by_uid.get(uid)

    def note_pod_gone(self, uid: str) -> None:
        """Note that a pod was deleted: nothing more is written for it if that has not begun."""
        if job := self._by_uid.get(uid):
            job.is_pod_gone = True

    def end_job(self, job: Job) -> None:
        """Remove a job that ends.

        Raises:
            KeyError: the job has ended before.
        """
        self._open.remove(job)
        if self._by_uid.get(job.uid) is job:
            del self._by_uid[job.uid]
