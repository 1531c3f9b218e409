"""Tasks that work side by side: none ends with an error unheard, and all end at the stop."""

import asyncio
from contextlib import suppress

import pytest

from scheduler.kube import tasks as tasks_module
from scheduler.kube.tasks import Tasks


async def for_ever() -> None:
    await asyncio.Event().wait()


async def dies() -> None:
    raise RuntimeError("odd")


async def test_what_a_task_died_of_is_reported_and_what_came_to_its_end_is_not() -> None:
    reported: list[BaseException] = []
    tasks = Tasks(reported.append)
    tasks.start(asyncio.sleep(0))
    tasks.start(dies())
    tasks.start(for_ever())
    await asyncio.sleep(0.01)
    assert [str(error) for error in reported] == ["odd"]
    await tasks.end()
    assert len(reported) == 1


async def test_all_tasks_end_or_all_but_one() -> None:
    tasks = Tasks(lambda _: None)
    kept, other = tasks.start(for_ever()), tasks.start(for_ever())
    await tasks.end(but=kept)
    assert (kept.done(), other.cancelled()) == (False, True)
    await tasks.end()
    assert kept.cancelled()


async def test_a_task_that_does_not_end_holds_up_one_end_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a stop with several ends would take longer than Kubernetes waits for it."""
    monkeypatch.setattr(tasks_module, "_END_SECONDS", 0.05)
    is_over = asyncio.Event()

    async def resists() -> None:
        while not is_over.is_set():
            with suppress(asyncio.CancelledError):
                await is_over.wait()

    tasks = Tasks(lambda _: None)
    stuck = tasks.start(resists())
    await asyncio.sleep(0)
    clock = asyncio.get_running_loop().time
    began = clock()
    await tasks.end()
    first, began = clock() - began, clock()
    await tasks.end()
    second = clock() - began
    is_over.set()
    await stuck
    assert second < 0.05 <= first
