"""The table of steps before a bind: steps are taken in order, and steps that were begun are undone if the bind fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from scheduler.errors import ApiError
from scheduler.kube import answers
from scheduler.kube.bind.jobs import Answer, Contended, Done, GiveBack, Job, Start, Step, Waits

# So often in a row a job tries a step of its turn: for a quarter of a minute. Then it is given back, as other nodes may do.
_TRIES = 7
_log = structlog.get_logger("evenkeel.binder")


class Steps:
    """Walks jobs through a table of steps; the steps before the turn come first.

    Args:
        steps: the rows, in the order in which they are taken.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._rows = sorted(steps, key=lambda step: step.is_in_turn)
        self._turn_at = sum(not step.is_in_turn for step in self._rows)
        self._waiting = [step.waiting for step in self._rows if step.waiting is not None]

    def has_step_before_turn(self, job: Job) -> bool:
        """Whether the job needs a step that is taken before its turn."""
        rows = self._rows[job.n_taken : self._turn_at]
        return any(step.is_needed_by(job) for step in rows)

    async def take(self, job: Job, may_write: Callable[[], bool]) -> Answer:
        """Take all steps that can be taken now: if it is not the job's turn, those before the turn.

        If a step is contended, the steps of the turn are undone, and the job takes them again later. It does so a few
        times if the API server is in trouble in a step of the turn, too: pods that wait behind it do not overtake it.

        Raises:
            ApiError: a step failed; what was begun stays begun until ``undo``.
            Impossible: likewise.
        """
        while (step := self._find_next(job)) is not None:
            # Noted before the step is taken: a write whose answer is lost may have taken effect.
            if not step.is_final:
                job.begun_steps.append(step)
            try:
                answer = await step.take(job, may_write)
            except ApiError as error:
                job.n_unanswered += 1
                if not (_may_try_again(step, job) and answers.is_transient(error)):
                    raise
                # What the step wrote may be there all the same, so it is undone.
                answer = Contended(str(error))
            else:
                if isinstance(answer, Contended):
                    job.n_unanswered = 0
                    if not step.is_final:
                        job.begun_steps.pop()
            if isinstance(answer, Contended):
                await self.undo_turn(job, may_write)
                job.n_taken = min(job.n_taken, self._turn_at)
            else:
                job.n_taken += 1
            if not isinstance(answer, Done):
                _log_wait(job, step, answer)
                return answer
        # Not before all steps are taken: a step that is taken each time does not hide one that never is.
        job.n_unanswered = 0
        return Done()

    def _find_next(self, job: Job) -> Step | None:
        """Return the next step that the job needs; None if it needs none before its turn comes."""
        end = self._turn_at if job.takes_turns and not job.has_turn else len(self._rows)
        while job.n_taken < end:
            step = self._rows[job.n_taken]
            if step.is_needed_by(job):
                return step
            job.n_taken += 1
        return None

    async def undo(self, job: Job, may_write: Callable[[], bool]) -> None:
        """Undo the steps that were begun, the last one first; a step that cannot be undone holds up no other.

        Nothing is undone once ``may_write`` says no: a successor may hold the same things for the same pod by then,
        and a successor takes over what is left.
        """
        await self._undo_where(job, may_write, lambda _: True)

    async def undo_turn(self, job: Job, may_write: Callable[[], bool]) -> None:
        """Undo the steps of the turn of a job that has ended."""
        await self._undo_where(job, may_write, lambda one: one.is_in_turn)

    async def _undo_where(
        self, job: Job, may_write: Callable[[], bool], is_undone: Callable[[Step], bool]
    ) -> None:
        while job.begun_steps and is_undone(job.begun_steps[-1]):
            step = job.begun_steps.pop()
            if not may_write():
                continue
            try:
                await step.undo(job)
            except Exception as error:  # noqa: BLE001 - the job is given up in any case
                _log.warning(
                    "a step before a bind was not undone",
                    step=step.name,
                    pod=job.pod.key,
                    node=job.node,
                    error=str(error),
                )

    # Jobs that wait.

    @property
    def n_waiting(self) -> int:
        """Number of jobs that wait for a step."""
        return sum(map(len, self._waiting))

    def see_object(self, kind: str, namespace: str, name: str) -> list[Start | GiveBack]:
        """Return what becomes of jobs now that an object is new, changed or gone."""
        return [one for some in self._waiting for one in some.see_object(kind, namespace, name)]

    def note_node_gone(self, node: str) -> list[Start | GiveBack]:
        """Return what becomes of jobs now that a node was deleted."""
        return [one for some in self._waiting for one in some.note_node_gone(node)]

    def pass_time(self, now: float) -> list[Start | GiveBack]:
        """Return what becomes of jobs now that the loop's time is ``now``."""
        return [one for some in self._waiting for one in some.pass_time(now)]

    def give_up_waiting(self, why: str) -> list[Start | GiveBack]:
        """Give back all jobs that wait."""
        return [one for some in self._waiting for one in some.give_up_waiting(why)]

    def drop_job(self, job: Job) -> bool:
        """Let a job wait for no step any more; return whether it waited."""
        return any(some.drop_job(job) for some in self._waiting)


def _may_try_again(step: Step, job: Job) -> bool:
    """Whether a job may keep its turn's place after a step that the API server did not let it take."""
    return step.is_in_turn and job.has_turn and job.n_unanswered < _TRIES


def _log_wait(job: Job, step: Step, answer: Waits | Contended) -> None:
    """Log why a bind waits."""
    what = {"waits_for": answer.what} if isinstance(answer, Waits) else {"contended_by": answer.by}
    _log.debug("a bind waits", step=step.name, pod=job.pod.key, node=job.node, **what)
