"""What is written before reports: binds, decisions about quota, and starts of jobs."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler.kube.jobs.looks import Looks, Named
from scheduler.kube.parts import Parts


class _Jobs:
    """Jobs, each of which has something to be done."""

    def list_keys(self) -> Iterable[str]:
        return ["a", "b"]

    def needs_look(self, key: str) -> bool:
        return bool(key)

    async def look_at(self, key: str) -> bool:
        return not key

    def find_object(self, key: str) -> Named | None:
        raise AssertionError(key)


@pytest.mark.parametrize(
    ("n_binds", "n_decisions", "n_jobs", "is_stopping", "is_urgent"),
    [
        (0, 0, 0, False, False),
        (1, 0, 0, False, True),
        (0, 1, 0, False, True),
        (0, 0, 1, False, True),
        (0, 0, 1, True, False),
        (0, 1, 0, True, False),
        (1, 0, 0, True, True),
    ],
)
def test_reports_wait_for_binds_decisions_and_jobs(
    n_binds: int, n_decisions: int, n_jobs: int, is_stopping: bool, is_urgent: bool
) -> None:
    parts: Any = SimpleNamespace(
        is_stopping=is_stopping,
        binder=SimpleNamespace(n_queued=n_binds),
        queues=SimpleNamespace(n_open=n_decisions),
        jobs=SimpleNamespace(n_waiting=n_jobs),
    )
    assert Parts._has_urgent_writes(parts) == is_urgent


def test_a_cluster_without_queues_has_binds_alone() -> None:
    parts: Any = SimpleNamespace(
        binder=SimpleNamespace(n_queued=0), queues=None, jobs=None, is_stopping=False
    )
    assert not Parts._has_urgent_writes(parts)


def test_jobs_wait_until_they_are_looked_at() -> None:
    looks: Looks[str] = Looks(_Jobs(), SimpleNamespace())  # type: ignore[arg-type]
    assert looks.n_waiting == 0
    looks.open()
    assert looks.n_waiting == 2
    assert looks._take_next() == "a"
    assert looks.n_waiting == 1
    looks.close()
    assert looks.n_waiting == 0
