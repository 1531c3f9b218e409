"""The binder alone: one pod's trouble is that pod's, and nothing is written out of its term."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from scheduler.api import names
from scheduler.api.cards import Grant
from scheduler.api.door import events
from scheduler.api.door.decisions import Bind
from scheduler.devices.table import Devices
from scheduler.errors import ApiError
from scheduler.kube.bind.binder import Binder, BindWriters, Permit
from scheduler.kube.bind.binding import Binding
from scheduler.kube.bind.fence import Fence
from scheduler.kube.bind.jobs import Step
from scheduler.kube.bind.node_lock import NodeLock
from scheduler.kube.bind.volumes import VolumeClaims
from scheduler.state.cluster import Cluster
from scheduler.state.nodes import NodeTable
from scheduler.state.pods import PodRecord
from scheduler.state.pools import PoolTable
from scheduler.state.volumes.store import Storage
from tests import make
from tests.unit.volume_lookups import lookups_of

_LOST = ApiError(0, "Timeout", "no answer")


class Api:
    """Answers a binding or a look at a pod with what ``answer`` gives, or raises."""

    def __init__(self, answer: Callable[[str, str], Any]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []
        self.sent: list[Any] = []

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        self._ask(method, path)
        return b""

    async def send(self, method: str, path: str, body: Any, **_: Any) -> bytes:
        self.sent.append(body)
        return msgspec.json.encode(self._ask(method, path))

    async def get(self, path: str) -> Any:
        return self._ask("GET", path)

    def _ask(self, method: str, path: str) -> Any:
        self.asked.append((method, path))
        answer = self.answer(method, path)
        if isinstance(answer, Exception):
            raise answer
        return answer


@asynccontextmanager
async def binder(
    api: Api,
    *,
    term: Callable[[], int] = lambda: 1,
    in_flight: int = 2,
    storage: Storage | None = None,
    steps: Sequence[Step] | None = None,
) -> AsyncIterator[tuple[Binder, list[events.Event]]]:
    reported: list[events.Event] = []

    async def quiet(_: str) -> None:
        """Nothing else is written."""

    stored = storage or Storage(NodeTable(Devices(()), PoolTable()))
    known = lookups_of(stored, lambda _: {}, 600.0)
    fence = Fence(api, identity="test")  # type: ignore[arg-type]
    made = Binder(
        BindWriters(
            Binding(api, fence, lambda _: "1"),  # type: ignore[arg-type]
            (
                VolumeClaims(api, known),  # type: ignore[arg-type]
                NodeLock(api, schedulers=(names.SCHEDULER,), timeout_seconds=300.0),  # type: ignore[arg-type]
            )
            if steps is None
            else steps,
        ),
        Permit(term, lambda _: "", quiet),
        reported.append,
        in_flight=in_flight,
    )
    running = asyncio.create_task(made.run())
    try:
        yield made, reported
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def pod(name: str) -> PodRecord:
    record = Cluster().see_pod(make.pod(name=name))
    assert record is not None
    return record


def unbound(path: str, *, version: str) -> Any:
    """The pod of a path, without a node."""
    name = path.split("/")[6]
    return {"metadata": {"uid": f"default/{name}", "resourceVersion": version}, "spec": {}}


def submit(made: Binder, *wanted: str) -> None:
    for name in wanted:
        one = pod(name)
        made.submit_binds([Bind(one.uid, "node", ())], {one.uid: one})


async def until(check: Callable[[], bool]) -> None:
    for _ in range(1000):
        if check():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("not within ten seconds")


async def test_what_was_decided_while_the_lease_lapsed_is_not_written() -> None:
    api = Api(lambda *_: {})
    async with binder(api, term=lambda: 0) as (made, reported):
        submit(made, "p")
        await until(lambda: bool(reported))
    assert reported == [events.BindFailed("default/p", "no longer the leader")]
    assert not api.asked


async def test_pods_that_can_be_neither_bound_nor_read_hold_up_no_others() -> None:
    """A conflict is not believed before the pod is read, and that may be refused for long."""

    def answer(method: str, path: str) -> Any:
        if "/bad" not in path:
            return {}
        return ApiError(409, "Conflict", "") if method == "POST" else ApiError(403, "Forbidden", "")

    async with binder(Api(answer)) as (made, reported):
        submit(made, "bad-0", "bad-1", "bad-2", "good")
        await until(lambda: bool(reported))
        assert reported == [events.BindDone("default/good")]
        assert made.backlog == 3


async def test_what_nobody_thought_of_ends_one_bind_and_not_the_binder() -> None:
    """The bind is not given up before the pod was touched, because nobody knows whether it was sent."""

    def answer(method: str, path: str) -> Any:
        if "/bad" not in path:
            return {}
        if method == "POST":
            return RuntimeError("odd")
        return unbound(path, version="1" if method == "GET" else "2")

    api = Api(answer)
    async with binder(api, in_flight=1) as (made, reported):
        submit(made, "bad-0", "bad-1", "good")
        await until(lambda: len(reported) == 3)
    assert events.BindDone("default/good") in reported
    assert events.BindFailed("default/bad-0", "internal error: RuntimeError('odd')") in reported
    assert made.backlog == 0
    assert len(api.sent) == 2


async def test_a_pod_that_changed_meanwhile_is_bound_as_it_is_now() -> None:
    """A label set by anybody must not send a decided pod back to the queue."""
    versions: list[str] = []

    class Changed(Api):
        async def request(self, method: str, path: str, **sent: Any) -> bytes:
            versions.append(msgspec.json.decode(sent["body"])["metadata"]["resourceVersion"])
            if len(versions) < 3:
                raise ApiError(409, "Conflict", "the version moved")
            return await super().request(method, path)

    changed = Changed(lambda _, path: unbound(path, version=f"{len(versions) + 1}"))
    async with binder(changed) as (made, reported):
        submit(made, "p")
        await until(lambda: bool(reported))
    assert reported == [events.BindDone("default/p")]
    assert versions == ["1", "2", "3"]


async def test_a_pod_that_is_being_deleted_is_gone_for_its_bind() -> None:
    """A finalizer keeps it there; the API server refuses its binding, and that is nobody's failure."""

    def answer(method: str, path: str) -> Any:
        if method == "POST":
            return ApiError(409, "Conflict", "pod p is being deleted, cannot be assigned to a host")
        going = unbound(path, version="2")
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return going

    async with binder(Api(answer)) as (made, reported):
        submit(made, "p")
        await until(lambda: bool(reported))
    (failed,) = reported
    assert isinstance(failed, events.BindFailed)
    assert failed.gone


async def bind_without_answers(touched: Any) -> tuple[Api, list[Any]]:
    """A bind whose answers are all lost, and with them the lease; what is sent and reported if the fence gets that."""
    term = 1

    def answer(method: str, path: str) -> Any:
        nonlocal term
        if method == "POST":
            term = 0
            return _LOST
        return touched(path)

    api = Api(answer)
    async with binder(api, term=lambda: term) as (made, reported):
        submit(made, "p")
        await until(lambda: bool(reported))
    return api, reported


async def test_after_lost_answers_a_pod_is_fenced_before_it_is_given_up() -> None:
    """No answer tells whether the bind took effect, and the lease is lost: only the touch makes sure."""
    api, reported = await bind_without_answers(lambda path: unbound(path, version="2"))
    assert reported == [events.BindFailed("default/p", str(_LOST))]
    assert [method for method, _ in api.asked] == ["POST", "PATCH"]
    (touch,) = api.sent
    assert (touch["metadata"]["uid"], touch["metadata"]["resourceVersion"]) == ("default/p", "1")


async def test_a_bind_in_doubt_is_found_when_the_fence_touches_the_pod_that_it_has_bound() -> None:
    """No try was answered; the watch told the version of the bound pod, so the fence carries that and is not refused."""

    def find_bound(path: str) -> Any:
        bound = unbound(path, version="2")
        bound["spec"]["nodeName"] = "node"
        return bound

    _, reported = await bind_without_answers(find_bound)
    assert reported == [events.BindDone("default/p")]


async def test_workers_neither_grow_nor_shrink_in_number_by_binds_in_doubt() -> None:
    """After many such binds, as many as before are under way at once."""
    refuse, at_once, most = True, 0, 0

    class Slow(Api):
        async def request(self, *_: Any, **__: Any) -> bytes:
            nonlocal at_once, most
            if refuse:
                raise ApiError(429, "TooManyRequests", "")
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0.05)
            at_once -= 1
            return b""

    async with binder(Slow(lambda *_: {}), in_flight=3) as (made, reported):
        submit(made, *(f"p{i}" for i in range(9)))
        await asyncio.sleep(0.05)
        refuse = False
        await until(lambda: len(reported) == 9)
        most = 0
        submit(made, *(f"q{i}" for i in range(12)))
        await until(lambda: len(reported) == 21)
    assert all(isinstance(one, events.BindDone) for one in reported)
    assert most == 3


async def test_a_plan_falls_with_the_first_of_its_binds_that_comes_to_nothing() -> None:
    """What was not sent yet is not sent any more, and what is bound stays bound; other plans go on."""

    def answer(_: str, path: str) -> Any:
        if "/bad/" in path:
            raise ApiError(403, "Forbidden", "no")
        return {}

    api = Api(answer)
    async with binder(api, in_flight=1) as (made, reported):
        group = [pod(name) for name in ("first", "bad", "x", "y")]
        binds = [Bind(one.uid, "node", ()) for one in group]
        made.submit_binds(binds, {one.uid: one for one in group})
        submit(made, "other")
        await until(lambda: len(reported) == 5)
        assert made.backlog == 0
    why = "pod default/bad of its group was not bound"
    told = {event.uid: getattr(event, "message", "") for event in reported}  # type: ignore[union-attr]
    assert told.pop("default/bad")
    assert told == {"default/first": "", "default/x": why, "default/y": why, "default/other": ""}
    assert [path.split("/")[6] for _, path in api.asked] == ["first", "bad", "other"]


async def test_a_large_plan_falls_at_once() -> None:
    """Those that wait for their turn before a node are given back, also if they are many."""
    group = [pod(f"p{i}") for i in range(500)]
    async with binder(Api(lambda *_: {}), term=lambda: 0) as (made, reported):
        made.submit_binds(
            [Bind(one.uid, "n", (Grant("HAMi", ((),)),)) for one in group],
            {one.uid: one for one in group},
        )
        await until(lambda: len(reported) == len(group))
        assert made.backlog == 0
    assert all(isinstance(event, events.BindFailed) for event in reported)
