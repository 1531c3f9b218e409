"""Evictions as the API server is told of them: in which order, for how long, and what becomes of them."""

import asyncio
from typing import Any

import msgspec
import pytest
import structlog

from scheduler.api.door.decisions import Evict, Why
from scheduler.api.door.events import EvictDone, EvictFailed
from scheduler.errors import ApiError
from scheduler.kube.evict.evictor import Evictor, EvictPermit
from scheduler.state.pods import PodRecord
from scheduler.telling.departures import describe_departure
from tests import make


class Api:
    """Answers every request, some of them with trouble."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, Any]] = []
        self.trouble: dict[tuple[str, str], ApiError] = {}

    async def send(self, method: str, path: str, body: Any, **_: Any) -> bytes:
        name = path.removesuffix("/status").removesuffix("/eviction").rpartition("/")[2]
        self.calls.append((method, name, body))
        await asyncio.sleep(0)
        if error := self.trouble.get((method, name)):
            raise error
        return b"{}"

    def order(self, method: str) -> list[str]:
        return [name for did, name, _ in self.calls if did == method]


class Stage:
    """An evictor, and what it says."""

    def __init__(self) -> None:
        self.api, self.term = Api(), 1
        self.withdrawn: set[str] = set()
        self.told: list[tuple[str, str]] = []
        self.reported: list[EvictDone | EvictFailed] = []
        api: Any = self.api
        self.evictor = Evictor(
            api,
            EvictPermit(lambda: self.term, lambda uid, _: uid in self.withdrawn),
            self.reported.append,
            lambda pod, _, note: self.told.append((pod.name, note)),
        )

    async def work(self, n_reports: int) -> None:
        task = asyncio.create_task(self.evictor.run())
        for _ in range(1000):
            await asyncio.sleep(0)
            if len(self.reported) >= n_reports:
                break
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def records(*names: str) -> list[PodRecord]:
    cluster = make.cluster(nodes=[make.node(name="n")])
    found = [cluster.see_pod(make.pod(name=name, node="n")) for name in names]
    return [one for one in found if one is not None]


def preemptor() -> PodRecord:
    record = make.cluster().see_pod(make.pod(name="p", uid="u-p"))
    assert record is not None
    return record


WORDS = describe_departure(Evict("u-p", "n", (), Why.PREEMPTED), "evenkeel")
FOR_GROUP = describe_departure(
    Evict("u-p", "n", (), Why.PREEMPTED, group="u-group", is_asked=True), "evenkeel"
)


async def test_the_last_victim_goes_after_all_others() -> None:
    stage, victims = Stage(), records("a", "b", "c")
    stage.evictor.evict(victims, WORDS)
    await stage.work(3)
    assert stage.api.order("DELETE")[-1] == "c"
    last = next(i for i, call in enumerate(stage.api.calls) if call[1] == "c")
    assert [call[:2] for call in stage.api.calls[last:]] == [("PATCH", "c"), ("DELETE", "c")]
    assert {one.uid for one in stage.reported} == {one.uid for one in victims}
    assert all(isinstance(one, EvictDone) for one in stage.reported)
    assert min(stage.told) == ("a", "Preempted by pod u-p on node n")


async def test_a_victim_is_told_why_and_named_by_its_uid() -> None:
    stage, victims = Stage(), records("a")
    stage.evictor.evict(victims, WORDS)
    await stage.work(1)
    (_, _, patch), (_, _, delete) = stage.api.calls
    assert patch["metadata"]["uid"] == delete["preconditions"]["uid"] == victims[0].uid
    (condition,) = patch["status"]["conditions"]
    assert condition["type"] == "DisruptionTarget"
    assert condition["reason"] == "PreemptionByScheduler"
    assert condition["message"] == "evenkeel: preempting to accommodate a higher priority pod"
    assert msgspec.json.encode(delete)


async def test_the_victims_of_a_group_are_evicted_as_far_as_budgets_allow() -> None:
    """A budget refuses one of them: who was not evicted before is spared."""
    stage, victims = Stage(), records(*(f"v{i}" for i in range(30)))
    stage.api.trouble["POST", "v2"] = ApiError(429, "TooManyRequests", "a budget refuses")
    stage.evictor.evict(victims, FOR_GROUP)
    await stage.work(30)
    assert stage.api.order("DELETE") == []
    evicted = stage.api.order("POST")
    assert 3 <= len(evicted) < 20
    failed = {one.uid for one in stage.reported if isinstance(one, EvictFailed)}
    assert len(failed) == 30 - len(evicted) + 1
    _, _, eviction = next(call for call in stage.api.calls if call[0] == "POST")
    assert eviction["kind"] == "Eviction"
    assert eviction["deleteOptions"]["preconditions"]["uid"] == victims[0].uid
    assert stage.told[0] == ("v0", "Preempted by podgroup u-group on node cluster")
    (condition,) = stage.api.calls[0][2]["status"]["conditions"]
    assert condition["message"] == "evenkeel: preempting to accommodate a higher priority podgroup"


async def test_who_was_refused_before_is_asked_first_and_alone() -> None:
    """A pod under two budgets is refused each time, and nobody else goes for nothing."""
    stage, victims = Stage(), records(*(f"v{i}" for i in range(10)))
    stage.api.trouble["POST", "v7"] = ApiError(500, "InternalError", "it has two budgets")
    stage.evictor.evict(victims, FOR_GROUP)
    await stage.work(10)
    assert EvictFailed(victims[7].uid, str(stage.api.trouble["POST", "v7"]), is_refused=True) in (
        stage.reported
    )
    stage.api.calls.clear()
    stage.evictor.evict(victims, FOR_GROUP)
    await stage.work(20)
    assert stage.api.order("POST") == ["v7"]
    del stage.api.trouble["POST", "v7"]
    stage.api.calls.clear()
    stage.evictor.evict(victims, FOR_GROUP)
    await stage.work(30)
    assert stage.api.order("POST")[0] == "v7"
    assert len(stage.api.order("POST")) == 10


async def test_where_one_stays_the_last_is_not_sent_away() -> None:
    stage, victims = Stage(), records("a", "b")
    stage.api.trouble["DELETE", "a"] = ApiError(403, "Forbidden", "no")
    stage.evictor.evict(victims, WORDS)
    await stage.work(2)
    assert stage.api.order("DELETE") == ["a"]
    assert all(isinstance(one, EvictFailed) for one in stage.reported)
    assert stage.told == []


async def test_a_victim_that_is_gone_by_itself_is_no_trouble() -> None:
    stage, victims = Stage(), records("a")
    stage.api.trouble["PATCH", "a"] = ApiError(404, "NotFound", "gone")
    stage.evictor.evict(victims, WORDS)
    await stage.work(1)
    assert stage.reported == [EvictDone(victims[0].uid)]
    assert stage.told == []


async def test_a_conflict_does_not_say_that_a_victim_goes() -> None:
    """It may be about words that were written at the same time: whoever waits for the victim would wait for ever."""
    stage, victims = Stage(), records("a", "b")
    stage.api.trouble["PATCH", "a"] = ApiError(409, "Conflict", "the object has been modified")
    stage.evictor.evict(victims, WORDS)
    await stage.work(2)
    assert stage.api.order("DELETE") == []
    assert all(isinstance(one, EvictFailed) for one in stage.reported)


async def test_who_leads_no_more_writes_nothing() -> None:
    """The next leader may have decided otherwise."""
    stage, victims = Stage(), records("a", "b")
    stage.evictor.evict(victims, WORDS)
    stage.evictor.nominate(preemptor(), "n")
    stage.term = 2
    await stage.work(2)
    assert stage.api.calls == []
    assert all(isinstance(one, EvictFailed) for one in stage.reported)


async def test_nobody_is_evicted_twice() -> None:
    stage, (a, b) = Stage(), records("a", "b")
    gone = msgspec.structs.replace(b, deleting=True)
    stage.evictor.evict([a, gone], WORDS)
    stage.evictor.evict([a], WORDS)
    await stage.work(1)
    assert stage.api.order("DELETE") == ["a"]


async def test_a_bind_that_has_not_begun_is_taken_back_in_memory() -> None:
    stage, victims = Stage(), records("a")
    stage.withdrawn = {victims[0].uid}
    stage.evictor.evict(victims, WORDS)
    await stage.work(1)
    assert stage.api.calls == []
    assert stage.told == [("a", "Preempted by pod u-p on node n (in kube-scheduler memory).")]


async def test_a_nomination_is_written_and_taken_back() -> None:
    stage = Stage()
    stage.evictor.nominate(preemptor(), "n")
    stage.evictor.nominate(preemptor(), "")
    task = asyncio.create_task(stage.evictor.run())
    for _ in range(100):
        await asyncio.sleep(0)
    task.cancel()
    assert [body["status"] for _, _, body in stage.api.calls] == [
        {"nominatedNodeName": "n"},
        {"nominatedNodeName": None},
    ]


@pytest.mark.parametrize(
    ("message", "n_warnings"),
    [
        ("status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node", 0),
        ("status.nominatedNodeName: Invalid value: no node has such a name", 1),
    ],
)  # fmt: skip
async def test_a_nomination_that_comes_after_the_bind_is_no_trouble(
    message: str, n_warnings: int
) -> None:
    stage = Stage()
    stage.api.trouble["PATCH", "p"] = ApiError(422, "Invalid", message)
    stage.evictor.nominate(preemptor(), "n")
    with structlog.testing.capture_logs() as logs:
        await stage.work(1)
    assert stage.api.order("PATCH") == ["p"]
    assert len(logs) == n_warnings
