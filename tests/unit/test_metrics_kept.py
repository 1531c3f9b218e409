"""What the metrics keep of pods until their binds end, and how often the cluster is measured."""

import asyncio

import pytest

from scheduler.api.door import events
from tests.unit.metrics_replica import Replica, node, of, pod


async def test_a_bind_of_a_pod_that_was_deleted_meanwhile_is_no_error() -> None:
    """Else whoever may create and delete pods could raise the alert that binds fail."""
    replica = Replica()
    replica.see(node(), pod("a"), pod("b"))
    assert len(replica.decide().binds) == 2
    replica.tally.note_report(events.BindFailed("default/a", "the pod is gone", gone=True))
    replica.tally.note_report(events.BindFailed("default/b", "422 Invalid: refused"))
    attempts = "scheduler_schedule_attempts_total"
    assert of(await replica.scrape(), attempts, result="error") == 1


async def test_a_pod_whose_bind_has_ended_is_remembered_no_more() -> None:
    """A second report of it says nothing, and pods that come and go take no memory."""
    replica = Replica()
    ends: tuple[events.BindDone | events.BindFailed, ...] = (
        events.BindDone("default/p"),
        events.BindFailed("default/p", "no"),
        events.BindFailed("default/p", "the pod is gone", gone=True),
    )
    for i, end in enumerate(ends):
        replica.see(node(f"n{i}"), pod("p"))
        assert replica.decide().binds
        for _ in range(2):
            replica.tally.note_report(end)
        assert not replica.tally._journeys
        replica.engine.handle(end, replica.now)
        replica.engine.handle(events.Gone("Pod", "default/p"), replica.now)
    found = await replica.scrape()
    assert of(found, "evenkeel_placements_total") == 1
    assert of(found, "scheduler_schedule_attempts_total", result="error") == 1


async def test_what_kept_a_pod_that_left_is_remembered_no_more() -> None:
    replica = Replica()
    replica.see(node(), pod("p", 99_999))
    assert replica.decide().holds
    assert replica.tally._causes
    for note in replica.engine.handle(events.Gone("Pod", "default/p"), replica.now):
        replica.tally.note_left(note.uid)  # type: ignore[union-attr]
    assert not replica.tally._causes


async def test_a_measure_that_takes_long_is_followed_by_a_hundred_times_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replica = Replica()
    replica.see(node())
    rests: list[float] = []
    took, measure, sleep = iter((0.01, 3.0)), replica.stranded._measure, asyncio.sleep

    async def slow() -> float:
        await measure()
        return next(took)

    async def rest(seconds: float) -> None:
        if seconds:
            rests.append(seconds)
        replica.is_deciding = len(rests) < 2
        await sleep(0)

    monkeypatch.setattr(replica.stranded, "_measure", slow)
    monkeypatch.setattr(asyncio, "sleep", rest)
    measuring = asyncio.create_task(replica.stranded.run())
    while len(rests) < 3:
        assert not measuring.done()
        await sleep(0)
    measuring.cancel()
    # Every ten seconds at most; a hundredth of the loop's time; a look each second by who stands by.
    assert rests[:3] == [10.0, pytest.approx(300.0), 1.0]


async def test_a_measure_that_fails_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    replica = Replica()
    replica.see(node())

    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("scheduler.measure.figures.measure_in_steps", fails)
    measuring = asyncio.create_task(replica.stranded.run())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not measuring.done()
    measuring.cancel()
    assert not [*replica.stranded.collect()]
    assert of(await replica.scrape(), "evenkeel_nodes") == 1
