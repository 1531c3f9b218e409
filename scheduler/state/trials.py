"""Trials: place, remove and put back pods on the real state; the trial then undoes all of it or keeps it.

    with cluster.trial() as trial:
        trial.take_away(victim.uid)
        outcome = cycle.schedule([pod])

A trial that is not committed is rolled back exactly: columns, records, the counts of followers, nominations, the pods
that are sent away and the pods they make room for, and lots. The rows that a rollback changes are in the cluster's log
of rows that moved, so boards catch up with a rollback as with any change. A quiet trial, in which no board may be
brought up to date, takes these rows out of the log again, because they are as they were. Whoever only wants to know
whether anything has changed for good asks the log for ``n_lasting``, which no rollback changes. Time and memory are
proportional to what was touched. Trials nest: what an inner trial commits belongs to the outer one. No event arrives
inside a trial, and no trial touches the demand.
"""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple, Protocol, Self

from scheduler.errors import BrokenInvariant
from scheduler.state.charging.roster import Did, Roster, Step, Taken
from scheduler.state.nominations import Nominations
from scheduler.state.structures.changes import Changes
from scheduler.state.structures.lots import Lots

# So many pods are taken away, or forgotten by a rollback, between two places where a long decision may pause.
_PODS_A_STEP = 256


class Versioned(Protocol):
    """A part of the state whose answers change with the pods on nodes.

    Attributes:
        version: changes whenever an answer may change.
    """

    version: int


class Beside(NamedTuple):
    """The parts of a cluster that a trial may change beside the pods on nodes.

    A rollback restores the version of ``terms``, so that answers from before the trial stay valid.
    """

    terms: Versioned
    nominations: Nominations
    lots: Lots
    moved: Changes


class Trial:
    """Records what is done on a cluster until ``commit`` or ``rollback``, whichever comes first.

    Attributes:
        is_quiet: it is rolled back in the end, and no board is brought up to date until then.
    """

    def __init__(
        self, roster: Roster, open_trials: list[Trial], beside: Beside, *, is_quiet: bool
    ) -> None:
        """``open_trials``: the trials around this one, the innermost last; this one is appended."""
        self._roster, self._open = roster, open_trials
        if roster.log is None:
            roster.log = []
        self._beside = beside
        self._version, self._drawn = beside.terms.version, beside.lots.drawn
        self.is_quiet, self._position = is_quiet, beside.moved.position
        beside.nominations.begin_trial()
        self._at, self._ends = len(roster.log), roster.ledger.pods.ends
        open_trials.append(self)

    @property
    def is_open(self) -> bool:
        """Whether the trial is neither committed nor rolled back."""
        return self in self._open

    def take_away(self, *uids: str) -> None:
        """Take pods from their nodes, as if they were evicted.

        Raises:
            BrokenInvariant: a pod has no node, or was put on it after it was taken from another, and must be
                forgotten there; a pod is named twice; or the trial is not the innermost one.
        """
        self._check()
        pods = [self._roster.pods[uid] for uid in uids]
        for pod in pods:
            if not pod.node or pod.uid in self._roster.away:
                raise BrokenInvariant(f"pod {pod.key} is on no node that it could be taken from")
        if len(set(uids)) < len(uids):
            raise BrokenInvariant("a pod was to be taken from its node twice")
        for at in range(0, len(pods), _PODS_A_STEP):
            self._roster.pauses.take()
            self._roster.take_away(pods[at : at + _PODS_A_STEP])

    def put_back(self, uid: str) -> None:
        """Put back a pod that was taken away, in this trial or in one around it.

        Raises:
            BrokenInvariant: the pod was not taken away, or the trial is not the innermost one.
        """
        self._check()
        pod, was = self._roster.pods[uid], self._roster.away.get(uid)
        if was is None or pod.node:
            raise BrokenInvariant(f"pod {pod.key} is not away")
        self._roster.put_back(was)

    def commit(self) -> None:
        """Keep what was done; for good if this trial is the outermost.

        Raises:
            BrokenInvariant: a pod is away, and would run on uncharged: it leaves when the watch says so;
                or the trial is quiet, or not the innermost one.
        """
        self._check()
        if self.is_quiet:
            raise BrokenInvariant("a quiet trial is only rolled back")
        if len(self._open) == 1:
            if self._roster.away:
                raise BrokenInvariant(f"{len(self._roster.away)} pods were not put back")
            for step in self._roster.log or ():
                self._roster.settle(step)
        self._beside.nominations.keep()
        self._close()

    def rollback(self) -> None:
        """Undo what was done, the newest step first.

        Raises:
            BrokenInvariant: the trial is not the innermost one.
        """
        self._check()
        log = self._roster.log or []
        while len(log) > self._at:
            self._roster.pauses.take()
            entered = self._take_entries(log)
            if entered:
                self._roster.undo_entries(entered, self._ends)
            else:
                self._roster.undo(log.pop())
        self._beside.nominations.restore()
        self._beside.terms.version, self._beside.lots.drawn = self._version, self._drawn
        if self.is_quiet:
            self._beside.moved.rewind(self._position)
        elif len(self._open) == 1:
            self._beside.moved.note_undone(self._position)
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self.is_open:
            self.rollback()

    def _take_entries(self, log: list[Step | Taken]) -> list[Step]:
        """Take some of the last steps off the log that entered a pod each, as far as no other step was between them."""
        entered: list[Step] = []
        while len(log) > self._at and len(entered) < _PODS_A_STEP:
            step = log[-1]
            if not isinstance(step, Step) or step.did != Did.ENTERED:
                break
            entered.append(step)
            log.pop()
        return entered[::-1]

    def _check(self) -> None:
        if not self._open or self._open[-1] is not self:
            raise BrokenInvariant("a trial is over, or another is open within it")

    def _close(self) -> None:
        self._open.pop()
        if not self._open:
            self._roster.log = None
