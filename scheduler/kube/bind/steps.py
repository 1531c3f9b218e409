"""The steps before a bind: each is taken in turn, and what was begun is undone when the bind fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from scheduler.kube.bind.jobs import Job, Step

_log = structlog.get_logger("evenkeel.binder")


class Steps:
    """Walks jobs through a list of steps.

    Args:
        steps: the steps, in the order they are taken.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)

    async def take(self, job: Job, may_write: Callable[[], bool]) -> bool:
        """Take all steps; False when the job must wait, with nothing left begun.

        Raises:
            ApiError: a step failed; what was begun stays begun until ``undo``.
        """
        for step in self._steps:
            if not step.concerns(job):
                continue
            # Before it is taken: a write whose answer is lost may have taken effect.
            job.begun.append(step)
            if not await step.take(job, may_write):
                job.begun.pop()
                await self.undo(job, may_write)
                return False
        return True

    async def undo(self, job: Job, may_write: Callable[[], bool]) -> None:
        """Undo what was begun, the last step first; a step that cannot be undone holds up no other.

        Nothing is undone once ``may_write`` says no: what is held may be a successor's by then, for the
        same pod, and a successor takes over what is left.
        """
        while job.begun:
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
