"""Lists reach the engine page by page: what a list says holds at its end, and a list that breaks off says nothing false."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from scheduler.api import kinds
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine import rerun
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.recorded import Recorded
from scheduler.errors import ApiError
from scheduler.kube import client
from scheduler.kube.inbox import Inbox
from scheduler.kube.watch import sources
from scheduler.kube.watch.streams import Stream
from tests import make

OURS = "evenkeel"


def put_page(inbox: Inbox, *pods: str, scheduler: str = OURS, **more: bool) -> None:
    found: list[Any] = [make.pod(name=name, scheduler_name=scheduler or "other") for name in pods]
    inbox.put(events.Page("Pod", found, scheduler, **more))


def hand_on(inbox: Inbox, engine: Engine) -> list[str]:
    """Hand everything to the engine; return the types of the events."""
    heard = []
    while (event := inbox.take_next()) is not None:
        heard.append(type(event).__name__)
        engine.handle(event, 0.0)
    return heard


def test_a_page_is_handed_on_before_the_next_comes_and_what_is_gone_is_known_at_the_end() -> None:
    engine = Engine(Config())
    inbox = Inbox(engine)
    engine.handle(events.Seen(make.pod(name="old")), 0.0)
    put_page(inbox, "a", "b", is_last=False)
    assert inbox.lists_waiting == 0
    assert hand_on(inbox, engine) == ["ListBegins", "Seen", "Seen"]
    assert not len(inbox)
    put_page(inbox, "c", is_first=False, is_last=False)
    put_page(inbox, is_first=False)
    assert inbox.lists_waiting == 1
    assert hand_on(inbox, engine) == ["Seen", "Gone", "ListEnds"]
    assert inbox.lists_waiting == 0
    assert set(engine._cluster.pods) == {"default/a", "default/b", "default/c"}


def test_pages_of_several_lists_do_not_get_mixed_up() -> None:
    engine = Engine(Config())
    inbox = Inbox(engine)
    put_page(inbox, "a", is_last=False)
    put_page(inbox, "x", scheduler="", is_last=False)
    put_page(inbox, "b", is_first=False)
    put_page(inbox, "y", scheduler="", is_first=False)
    assert "Gone" not in hand_on(inbox, engine)


def test_what_a_list_showed_before_it_broke_off_is_no_part_of_the_next_one() -> None:
    engine = Engine(Config())
    inbox = Inbox(engine)
    put_page(inbox, "goes", "a", is_last=False)
    put_page(inbox, "a", is_last=False)
    put_page(inbox, "b", is_first=False)
    assert hand_on(inbox, engine).count("ListEnds") == 1
    assert set(engine._cluster.pods) == {"default/a", "default/b"}


def read_arrivals(engine: Engine) -> tuple[int, int]:
    """Return how many pods with GPUs are known, and how many of them were seen to come."""
    devices = engine._cluster.demand.devices
    return devices.seen, devices._watched


def gpu_pod(name: str, scheduler: str = OURS) -> events.Seen:
    return events.Seen(make.pod(name=name, gpu=1, scheduler_name=scheduler, node="n"))


def test_only_pods_of_the_first_list_of_their_own_stream_were_not_seen_to_come() -> None:
    engine = Engine(Config())

    def tell(*told: events.Event) -> None:
        for event in told:
            engine.handle(event, 0.0)

    tell(events.ListBegins("Pod", OURS), gpu_pod("listed"), gpu_pod("comes", "other"))
    assert read_arrivals(engine) == (2, 1)
    # The list broke off, and begins again.
    tell(events.ListBegins("Pod", OURS), gpu_pod("listed-too"), events.ListEnds("Pod", OURS))
    assert read_arrivals(engine) == (3, 1)
    tell(events.ListBegins("Pod", OURS), gpu_pod("new"), events.ListEnds("Pod", OURS))
    assert read_arrivals(engine) == (4, 2)
    tell(events.ListBegins("Pod", ""), gpu_pod("listed-other", "other"), gpu_pod("newer"))
    assert read_arrivals(engine) == (6, 3)


def test_a_recording_begun_within_a_first_list_knows_what_is_still_to_be_listed() -> None:
    files: list[list[bytes]] = [[]]

    def write(line: bytes) -> None:
        files[-1].append(line)

    engine = Recorded(Config(), "test", write)
    engine.handle(events.ListBegins("Pod", OURS), 0.0)
    engine.handle(gpu_pod("a"), 0.0)
    files.append([])
    engine.start_anew(1.0)
    engine.handle(gpu_pod("b"), 1.0)
    assert read_arrivals(engine) == (2, 0)
    engine.handle(events.ListEnds("Pod", OURS), 1.0)
    engine.handle(gpu_pod("c"), 1.0)
    assert read_arrivals(engine) == (3, 1)
    engine.decide(2.0, Unlimited())
    files.append([])
    engine.start_anew(2.0)
    engine.handle(gpu_pod("d"), 2.0)
    assert read_arrivals(engine) == (4, 2)
    assert [rerun.rerun(lines).difference for lines in files] == [None] * 3


NO = ApiError(500, "InternalError", "no")


class Server:
    """Two pages of pods; the second fails so often. A watch never says anything."""

    def __init__(self, error: ApiError = NO, n_failing: int = 1) -> None:
        self.error, self.n_failing, self.n_failures = error, n_failing, 0
        self.is_watched = asyncio.Event()

    async def request(self, *_: Any, params: dict[str, str], **__: Any) -> bytes:
        if params.get("continue") and self.n_failures < self.n_failing:
            self.n_failures += 1
            raise self.error
        name = "b" if params.get("continue") else f"a{self.n_failures}"
        meta = {"resourceVersion": "7", "continue": "" if name == "b" else "more"}
        return msgspec.json.encode({"metadata": meta, "items": [make.pod(name=name)]})

    @contextlib.asynccontextmanager
    async def stream(self, *_: Any, **__: Any) -> AsyncIterator[None]:
        self.is_watched.set()
        await asyncio.Event().wait()
        yield


def make_stream(server: Server, heard: list[Any]) -> Stream[Any]:
    api: Any = server
    [source] = [one for one in sources.make_table((OURS,), Config().pod_limits) if one.scheduler]
    return Stream(source, api, heard.append)


async def run_until_watched(stream: Stream[Any], server: Server) -> None:
    running = asyncio.create_task(stream.run())
    async with asyncio.timeout(10.0):
        await server.is_watched.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("error", [NO, ApiError(410, "Expired", "too old")])
async def test_a_list_whose_later_page_fails_is_tried_ever_more_slowly_and_its_trouble_stays(
    error: ApiError, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try brings a first page, which is no sign that the list can be read."""
    waits: list[tuple[int, Any, float]] = []
    server = Server(error, n_failing=4)
    stream = make_stream(server, [])

    def note_wait(attempt: int, **_: Any) -> float:
        waits.append((attempt, stream.trouble and stream.trouble.since, stream.alive_at))
        return 0.0

    monkeypatch.setattr(client, "get_backoff", note_wait)
    await run_until_watched(stream, server)
    attempts, since, alive_at = zip(*waits, strict=True)
    assert attempts == (0, 1, 2, 3)
    assert since[0] is not None
    assert set(since) == {since[0]}
    assert set(alive_at) == {0.0}
    assert stream.trouble is None
    assert stream.alive_at > 0.0


async def test_a_stream_hands_over_pages_and_begins_again_when_a_list_breaks_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "get_backoff", lambda *_, **__: 0.0)
    server, heard = Server(), list[Any]()
    stream = make_stream(server, heard)
    await run_until_watched(stream, server)
    assert [
        (page.kind, [one.metadata.name for one in page.found], page.is_first, page.is_last)
        for page in heard
    ] == [
        (kinds.PODS.name, ["a0"], True, False),
        (kinds.PODS.name, ["a1"], True, False),
        (kinds.PODS.name, ["b"], False, True),
    ]
    assert (stream.is_listed, stream.n_lists) == (True, 1)


class Versions:
    """Workloads in some versions; of each request the version is kept."""

    def __init__(self, *served: str) -> None:
        self.served = served
        self.listed: list[str] = []
        self.watched: list[str] = []
        self.is_watched = asyncio.Event()

    async def request(self, _: str, path: str, **__: Any) -> bytes:
        version = path.split("/")[3]
        self.listed.append(version)
        if version not in self.served:
            raise ApiError(404, "NotFound", "404 page not found")
        return msgspec.json.encode({"metadata": {"resourceVersion": "7"}, "items": []})

    @contextlib.asynccontextmanager
    async def stream(self, path: str, *_: Any, **__: Any) -> AsyncIterator[None]:
        self.watched.append(path.split("/")[3])
        self.is_watched.set()
        await asyncio.Event().wait()
        yield


@pytest.mark.parametrize(
    ("served", "listed", "watched"),
    [
        (("v1beta1", "v1beta2"), ["v1beta2"], "v1beta2"),
        (("v1beta1",), ["v1beta2", "v1beta1"], "v1beta1"),
    ],
)
async def test_a_kind_is_listed_and_watched_in_the_newest_version_that_is_served(
    served: tuple[str, ...], listed: list[str], watched: str
) -> None:
    """What is written on its objects goes to the same version."""
    server, heard = Versions(*served), list[Any]()
    api: Any = server
    limits = Config().pod_limits
    table = sources.make_table((OURS,), limits, with_queues=True)
    [source] = [one for one in table if one.kind == kinds.WORKLOADS]
    stream: Stream[Any] = Stream(source, api, heard.append)
    running = asyncio.create_task(stream.run())
    async with asyncio.timeout(10.0):
        await server.is_watched.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert (server.listed, server.watched) == (listed, [watched])
    assert stream.kind.version == watched
    assert heard == [events.Page("Workload", [])]
