"""What queues need to know of nodes: whether there is a place for a workload, and who keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from scheduler.tenancy.assignments import Assignment
from scheduler.tenancy.works import Work


class Places(Protocol):
    """Finds places for workloads, and keeps them."""

    def needs_place(self, work: Work) -> bool:
        """Whether a workload is only given quota together with a place."""

    def has_place(self, work: Work, assignment: Assignment, gone: Sequence[str] = ()) -> bool:
        """Whether there is a place for a workload, once the workloads ``gone`` have left theirs."""

    def find_problem(self, work: Work, assignment: Assignment) -> str:
        """Find why there would be no place for a workload even if all nodes were free; empty for no such reason."""

    def can_move(self, work: Work, assignment: Assignment, gone: Sequence[str]) -> bool:
        """Whether there is a place for a workload, and another one for each of those who leave theirs for it."""

    def has_places(self, wanted: Sequence[tuple[Work, Assignment]], gone: Sequence[str]) -> bool:
        """Whether there is a place for each of some workloads, once the workloads ``gone`` have left theirs."""

    def find_run_seconds(self, work: Work) -> float | None:
        """Find for how many seconds a workload runs at most, once it is admitted; None if nobody says it."""

    def list_sites(
        self, work: Work, assignment: Assignment, keys: Sequence[str]
    ) -> Sequence[frozenset[str]]:
        """List those of some workloads who are in one domain that would do for a workload, domain by domain."""

    def take(self, work: Work, assignment: Assignment) -> bool:
        """Take a place for a workload; return whether there was one."""

    def take_beside(
        self,
        work: Work,
        assignment: Assignment,
        first: tuple[Work, Assignment],
        gone: Sequence[str],
    ) -> bool:
        """Take a place as ``take`` does, but none that ``first`` will have once the workloads ``gone`` have left theirs."""

    def promise(self, work: Work, assignment: Assignment, gone: Sequence[str]) -> None:
        """Promise a workload the place that it will have once the workloads ``gone`` have left theirs."""

    def list_pods(self, key: str) -> Sequence[str]:
        """List the uids of the pods of a workload that exist."""

    def restore(self, work: Work) -> bool:
        """Take places for those pods of a workload with quota that are nowhere; return whether none is left."""

    def suppose_restored(self, works: Sequence[Work]) -> AbstractContextManager[None]:
        """Have the places taken that ``restore`` would take for some workloads, as long as it lasts."""

    def hand_over(self, key: str, to: str) -> None:
        """Let a workload have the places that another one keeps for pods that do not exist."""

    def let_go(self, key: str) -> None:
        """Give up the place of a workload, and what was promised to it."""


class Anywhere:
    """Places for those who need none: quota is enough."""

    def needs_place(self, work: Work) -> bool:
        """No workload does."""
        del work
        return False

    def has_place(self, work: Work, assignment: Assignment, gone: Sequence[str] = ()) -> bool:
        """There always is."""
        del work, assignment, gone
        return True

    def find_problem(self, work: Work, assignment: Assignment) -> str:
        """There is none."""
        del work, assignment
        return ""

    def can_move(self, work: Work, assignment: Assignment, gone: Sequence[str]) -> bool:
        """Nobody has to."""
        del work, assignment, gone
        return True

    def has_places(self, wanted: Sequence[tuple[Work, Assignment]], gone: Sequence[str]) -> bool:
        """There always is."""
        del wanted, gone
        return True

    def find_run_seconds(self, work: Work) -> float | None:
        """Only the workload itself says it."""
        return work.defined.run_seconds

    def list_sites(
        self, work: Work, assignment: Assignment, keys: Sequence[str]
    ) -> Sequence[frozenset[str]]:
        """None is needed."""
        del work, assignment, keys
        return ()

    def take(self, work: Work, assignment: Assignment) -> bool:
        """There always is one."""
        del work, assignment
        return True

    def take_beside(
        self,
        work: Work,
        assignment: Assignment,
        first: tuple[Work, Assignment],
        gone: Sequence[str],
    ) -> bool:
        """There always is one."""
        del work, assignment, first, gone
        return True

    def promise(self, work: Work, assignment: Assignment, gone: Sequence[str]) -> None:
        """Nothing has to be promised."""

    def list_pods(self, key: str) -> Sequence[str]:
        """None is known."""
        del key
        return ()

    def restore(self, work: Work) -> bool:
        """None has to be anywhere."""
        del work
        return True

    def suppose_restored(self, works: Sequence[Work]) -> AbstractContextManager[None]:
        """None has to be anywhere."""
        del works
        return nullcontext()

    def hand_over(self, key: str, to: str) -> None:
        """There are none."""
        del key, to

    def let_go(self, key: str) -> None:
        """Nothing is kept."""
