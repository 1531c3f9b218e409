"""Reports: one of each kind for an object, the oldest first, until they are written."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable

import pytest

from scheduler.errors import ApiError
from scheduler.kube import client
from scheduler.kube.report import outbox
from scheduler.kube.report.outbox import Lane, Outbox, Report


class Api:
    """An API server that takes or refuses what it is sent, in its own words."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.seconds = 0.0
        self.refuse: Callable[[str], ApiError | None] = lambda _: None

    async def request(self, _method: str, path: str, *, body: bytes, content_type: str) -> bytes:
        assert content_type
        await asyncio.sleep(self.seconds)
        if error := self.refuse(path):
            raise error
        self.sent.append(f"{path} {json.loads(body)}")
        return b"{}"


def report(uid: str, text: str, lane: Lane = Lane.CONDITION, method: str = "PATCH") -> Report:
    what = {Lane.CONDITION: "condition", Lane.NEWS: "news", Lane.WHY: "why"}[lane]
    return Report((uid, what), lane, method, f"/{uid}/{what}", lambda: json.dumps(text).encode())


async def written(box: Outbox, seconds: float = 5.0) -> None:
    """Let it work until nothing waits."""
    working = asyncio.ensure_future(box.run())
    try:
        async with asyncio.timeout(seconds):
            while len(box) or box._working:
                await asyncio.sleep(0.005)
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def box(api: Api) -> Outbox:
    return Outbox(api, has_urgent=lambda: False)  # type: ignore[arg-type]


async def test_every_one_of_thousands_is_written_once_with_what_was_said_last(
    api: Api, box: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_SHARE", 1e6)
    for text in ("first", "last"):
        for i in range(3000):
            box.put(report(f"p{i}", text))
    await written(box, 30.0)
    assert Counter(api.sent) == Counter(f"/p{i}/condition last" for i in range(3000))
    assert box.n_dropped == 0


async def test_while_something_urgent_waits_one_report_at_a_time_is_written(api: Api) -> None:
    is_urgent, most = True, [0, 0]
    box = Outbox(api, has_urgent=lambda: is_urgent)  # type: ignore[arg-type]

    async def request(*_: object, **__: object) -> bytes:
        most[is_urgent] = max(most[is_urgent], box._working)
        await asyncio.sleep(0.002)
        return b"{}"

    api.request = request  # type: ignore[method-assign]
    for i in range(60):
        box.put(report(f"p{i}", "bound", Lane.NEWS, "POST"))
    working = asyncio.ensure_future(box.run())
    async with asyncio.timeout(5.0):
        while len(box) > 30:
            await asyncio.sleep(0.001)
        is_urgent = False
        while len(box) or box._working:
            await asyncio.sleep(0.001)
    working.cancel()
    assert most == [4, 1]


async def test_while_something_urgent_waits_reports_take_a_part_of_the_time(api: Api) -> None:
    api.seconds = 0.01
    box = Outbox(api, has_urgent=lambda: True)  # type: ignore[arg-type]
    for i in range(100):
        box.put(report(f"p{i}", "bound", Lane.NEWS, "POST"))
    working = asyncio.ensure_future(box.run())
    await asyncio.sleep(0.5)
    # One after another without a rest, they would be fifty.
    assert 1 <= len(api.sent) <= 30
    working.cancel()


async def test_what_is_said_anew_keeps_the_place_of_the_old(api: Api, box: Outbox) -> None:
    for uid in ("a", "b", "c"):
        box.put(report(uid, "old"))
    box.put(report("a", "new"))
    await written(box)
    assert api.sent[0] == "/a/condition new"


async def test_a_write_that_fails_is_tried_until_it_is_written(
    api: Api, box: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "get_backoff", lambda *_, **__: 0.001)
    tries: Counter[str] = Counter()

    def refuse(path: str) -> ApiError | None:
        tries[path] += 1
        return ApiError(500, "InternalError", "") if tries[path] <= 20 else None

    api.refuse = refuse
    for i in range(10):
        box.put(report(f"p{i}", "bound", Lane.NEWS, "POST"))
    await written(box)
    assert len(api.sent) == 10
    assert box.n_dropped == 0


async def test_after_an_hour_a_report_is_given_up_and_may_be_said_again(
    api: Api, box: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_GIVE_UP_SECONDS", 0.0)
    api.refuse = lambda _: ApiError(503, "ServiceUnavailable", "")
    given_up: list[str] = []
    late = report("p", "x")
    late.on_given_up = lambda: given_up.append("p")
    box.put(late)
    await written(box)
    assert (given_up, box.n_dropped) == (["p"], 1)


@pytest.mark.parametrize(
    ("error", "dropped"),
    [
        (ApiError(404, "NotFound", "gone"), 0),
        (ApiError(409, "AlreadyExists", "an earlier try took effect"), 0),
        (ApiError(403, "Forbidden", "unable to create: it is being terminated"), 0),
        (ApiError(422, "Invalid", "nobody will take it"), 1),
    ],
)
async def test_what_is_of_no_use_is_not_tried_for_ever(
    api: Api, box: Outbox, error: ApiError, dropped: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "get_backoff", lambda *_, **__: 0.001)
    api.refuse = lambda _: error
    box.put(report("p", "x", Lane.NEWS, "POST"))
    await written(box)
    assert (api.sent, box.n_dropped) == ([], dropped)


async def test_every_event_is_written_although_most_answers_are_wrong(
    api: Api, box: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven answers in ten are errors, some of which look final: what stands before an API server may say them."""
    monkeypatch.setattr(client, "get_backoff", lambda *_, **__: 0.001)
    rng = random.Random(1)
    faults = (429, 500, 503, 0, 404, 409, 422)

    def refuse(_: str) -> ApiError | None:
        fault = rng.randrange(10)
        return ApiError(faults[fault], "Injected", "") if fault < len(faults) else None

    api.refuse = refuse
    for i in range(300):
        box.put(report(f"p{i}", "bound", Lane.NEWS, "POST"))
    await written(box)
    assert len(api.sent) == 300
    assert box.n_dropped == 0


async def test_a_newer_report_takes_the_place_of_one_that_failed(
    api: Api, box: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "get_backoff", lambda *_, **__: 0.02)
    api.refuse = lambda _: ApiError(500, "InternalError", "")
    box.put(report("p", "old"))
    working = asyncio.ensure_future(box.run())
    while not box._failed:
        await asyncio.sleep(0.001)
    api.refuse = lambda _: None
    box.put(report("p", "new"))
    await asyncio.sleep(0.1)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert api.sent == ["/p/condition new"]


async def test_why_a_pod_waited_is_told_before_that_it_waits_no_more(api: Api, box: Outbox) -> None:
    box._allowance = 0.0
    for i in range(5):
        box.put(report(f"other-{i}", "why", Lane.WHY, "POST"))
    box.put(report("p", "why", Lane.WHY, "POST"))
    box.put(report("p", "bound", Lane.NEWS, "POST"))
    await written(box)
    ours = [line for line in api.sent if line.startswith("/p/")]
    assert ours == ["/p/why why", "/p/news bound"]


async def test_reports_take_a_bounded_part_of_the_servers_time_and_news_as_much_as_they_need(
    api: Api, box: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A status of a pod of a megabyte takes the API server a tenth of a second to write."""
    monkeypatch.setattr(outbox, "_SHARE", 0.0)
    monkeypatch.setattr(outbox, "_WORKERS", 1)
    box._allowance = 0.05
    api.seconds = 0.06
    for i in range(10):
        box.put(report(f"p{i}", "x"))
        box.put(report(f"p{i}", "bound", Lane.NEWS, "POST"))
    working = asyncio.ensure_future(box.run())
    while sum("/news" in line for line in api.sent) < 10:
        await asyncio.sleep(0.01)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    # After two the allowance of 50 ms is used up; on a busy machine already after one.
    assert 1 <= sum("/condition" in line for line in api.sent) <= 2


async def test_answers_that_take_long_stop_reports_for_seconds_and_not_for_minutes(
    api: Api, box: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every waiting pod gets its condition in the end, also from an API server that is overwhelmed."""
    monkeypatch.setattr(outbox, "_SHARE", 0.0)
    monkeypatch.setattr(outbox, "_DEBT", 0.01)
    api.seconds = 0.2
    for i in range(4):
        box.put(report(f"p{i}", "x"))
    await written(box)
    assert box._allowance >= -0.01


async def test_nothing_that_waits_is_written_on_a_pod_that_is_about_to_be_bound(
    api: Api, box: Outbox
) -> None:
    box.put(report("p", "waits"))
    box.put(report("q", "waits"))
    await box.quiet_key(("p", "condition"))
    await written(box)
    assert api.sent == ["/q/condition waits"]


async def test_what_is_forgotten_while_it_is_written_is_not_written_again_should_that_fail(
    api: Api, box: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a condition that failed would be said of a pod that was bound meanwhile."""
    monkeypatch.setattr(client, "get_backoff", lambda *_, **__: 0.001)
    api.seconds = 0.02
    api.refuse = lambda _: ApiError(0, "Timeout", "")
    box.put(report("p", "waits"))
    working = asyncio.ensure_future(box.run())
    while not box._writing:
        await asyncio.sleep(0.001)
    await box.quiet_key(("p", "condition"))
    api.refuse = lambda _: None
    await asyncio.sleep(0.1)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert (api.sent, len(box)) == ([], 0)


async def test_the_oldest_reasons_are_given_up_when_there_are_too_many_and_no_condition_is(
    box: Outbox, monkeypatch: pytest.MonkeyPatch, api: Api
) -> None:
    monkeypatch.setattr(outbox, "_WHY_MAX", 3)
    for i in range(5):
        box.put(report(f"p{i}", "why", Lane.WHY, "POST"))
        box.put(report(f"p{i}", "waits"))
    assert box.n_dropped == 2
    await written(box)
    told = {line.split()[0] for line in api.sent}
    conditions = {f"/p{i}/condition" for i in range(5)}
    assert told == conditions | {f"/p{i}/why" for i in (2, 3, 4)}
