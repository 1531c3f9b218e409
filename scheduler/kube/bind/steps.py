"""The table of steps before a bind: rows are taken in order, and what was begun is undone when the bind fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from scheduler.kube.bind.jobs import Answer, Contended, Done, GiveBack, Job, Start, Step, Waits

_log = structlog.get_logger("evenkeel.binder")


class Steps:
    """Walks jobs through a table of steps; those before the turn come first.

    Args:
        steps: the rows, in the order they are taken.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._rows = sorted(steps, key=lambda step: step.is_in_turn)
        self._turn_at = sum(not step.is_in_turn for step in self._rows)
        self._waiting = [step.waiting for step in self._rows if step.waiting is not None]

    def are_before_turn(self, job: Job) -> bool:
        """Whether a row concerns the job that is taken before its turn."""
        rows = self._rows[job.n_taken : self._turn_at]
        return any(step.concerns(job) for step in rows)

    async def take(self, job: Job, may_write: Callable[[], bool]) -> Answer:
        """Take all rows that can be taken now: without its turn, those before it.

        A job that must wait for what another holds has nothing of its turn left begun, and takes the rows of its
        turn again.

        Raises:
            ApiError: a step failed; what was begun stays begun until ``undo``.
            Impossible: likewise.
        """
        while (step := self._next(job)) is not None:
            # Before it is taken: a write whose answer is lost may have taken effect.
            if not step.is_final:
                job.begun.append(step)
            answer = await step.take(job, may_write)
            if isinstance(answer, Contended):
                if not step.is_final:
                    job.begun.pop()
                await self._undo(job, may_write, lambda one: one.is_in_turn)
                job.n_taken = min(job.n_taken, self._turn_at)
            else:
                job.n_taken += 1
            if not isinstance(answer, Done):
                _say(job, step, answer)
                return answer
        return Done()

    def _next(self, job: Job) -> Step | None:
        """The next row that concerns the job, None when there is none before its turn comes."""
        end = self._turn_at if job.takes_turns and not job.has_turn else len(self._rows)
        while job.n_taken < end:
            step = self._rows[job.n_taken]
            if step.concerns(job):
                return step
            job.n_taken += 1
        return None

    async def undo(self, job: Job, may_write: Callable[[], bool]) -> None:
        """Undo what was begun, the last step first; a step that cannot be undone holds up no other.

        Nothing is undone once ``may_write`` says no: what is held may be a successor's by then, for the
        same pod, and a successor takes over what is left.
        """
        await self._undo(job, may_write, lambda _: True)

    async def _undo(
        self, job: Job, may_write: Callable[[], bool], is_meant: Callable[[Step], bool]
    ) -> None:
        while job.begun and is_meant(job.begun[-1]):
            step = job.begun.pop()
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
        """How many jobs wait for a step."""
        return sum(map(len, self._waiting))

    def see_object(self, kind: str, namespace: str, name: str) -> list[Start | GiveBack]:
        """An object is there, another, or gone."""
        return [one for some in self._waiting for one in some.seen(kind, namespace, name)]

    def node_gone(self, node: str) -> list[Start | GiveBack]:
        """A node was deleted."""
        return [one for some in self._waiting for one in some.node_gone(node)]

    def passed(self, now: float) -> list[Start | GiveBack]:
        """It is ``now``, by the loop's time."""
        return [one for some in self._waiting for one in some.passed(now)]

    def given_up(self, why: str) -> list[Start | GiveBack]:
        """Nothing that waits shall be carried out."""
        return [one for some in self._waiting for one in some.given_up(why)]

    def drop(self, job: Job) -> bool:
        """A job waits for no step any more; whether it did."""
        return any(some.drop(job) for some in self._waiting)


def _say(job: Job, step: Step, answer: Waits | Contended) -> None:
    """Why a bind takes its time."""
    what = {"waits_for": answer.what} if isinstance(answer, Waits) else {"contended_by": answer.by}
    _log.debug("a bind waits", step=step.name, pod=job.pod.key, node=job.node, **what)
