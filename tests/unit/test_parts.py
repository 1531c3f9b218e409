"""Parts that work side by side: none ends unheard, and all end at the stop."""

import asyncio

from scheduler.kube.parts import Parts


async def for_ever() -> None:
    await asyncio.Event().wait()


async def dies() -> None:
    raise RuntimeError("odd")


async def test_what_a_part_died_of_is_told_and_what_came_to_its_end_is_not() -> None:
    told: list[BaseException] = []
    parts = Parts(told.append)
    parts.keep(asyncio.sleep(0))
    parts.keep(dies())
    parts.keep(for_ever())
    await asyncio.sleep(0.01)
    assert [str(error) for error in told] == ["odd"]
    await parts.end()
    assert len(told) == 1


async def test_all_parts_end_or_all_but_one() -> None:
    parts = Parts(lambda _: None)
    kept, other = parts.keep(for_ever()), parts.keep(for_ever())
    await parts.end(but=kept)
    assert (kept.done(), other.cancelled()) == (False, True)
    await parts.end()
    assert kept.cancelled()
