"""Tasks that work side by side: none ends with an error unheard, and all end at the stop."""

import asyncio

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
