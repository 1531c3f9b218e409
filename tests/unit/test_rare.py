"""The rare kinds: read before the first pod, and followed where kopf does not find them."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, cast

import kopf
import pytest
import structlog.testing

from scheduler.api import kinds
from scheduler.api.door import events
from scheduler.api.door.events import Heard
from scheduler.api.limits import DEFAULT
from scheduler.errors import ApiError
from scheduler.kube.client import ApiClient
from scheduler.kube.watch import rare, sources
from scheduler.kube.watch.rare import Rare
from scheduler.kube.watch.sources import Source
from tests import make

Json = dict[str, Any]
NOT_THERE = ApiError(404, "NotFound", "no such kind")
BUSY = ApiError(0, "Timeout", "no answer")
TABLE = sources.make_table(("evenkeel",), DEFAULT)
TEAM = events.Seen(make.namespace("team", {"a": "b"}))
POLICIES, NAMESPACES = kinds.POLICIES.path, kinds.NAMESPACES.path


class Server:
    """Answers a list of policies with one after another, and one of namespaces with always the same."""

    def __init__(self, *answers: ApiError | list[str]) -> None:
        self._answers: Iterator[ApiError | list[str]] = iter(answers)
        self.rare: Rare | None = None

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        assert method == "GET"
        if path == NAMESPACES:
            return listed({"metadata": {"name": "team", "labels": {"a": "b"}}})
        assert path == POLICIES
        answer = next(self._answers)
        if isinstance(answer, ApiError):
            raise answer
        if answer == ["too late"]:
            assert self.rare
            await tell(self.rare, "ADDED", "from-kopf")
        return listed(*(policy(name) for name in answer))

    @property
    def api(self) -> ApiClient:
        return cast("ApiClient", self)


def listed(*items: Json) -> bytes:
    return json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode()


def policy(name: str) -> Json:
    return {"metadata": {"name": name}}


def seen(name: str) -> events.Seen:
    return events.Seen(make.policy(policy(name)))


def gone(name: str) -> events.Gone:
    return events.Gone("BalancePolicy", name)


async def tell(to: Rare, kind: str, name: str) -> None:
    """As kopf tells of a policy."""
    (source,) = (one for one in TABLE if one.kind == kinds.POLICIES)
    await hear(to, source, kind, policy(name))


async def hear(to: Rare, source: Source[Any], kind: str | None, body: Json) -> None:
    await to._make_handler(source, asyncio.get_running_loop())(event={"type": kind}, body=body)
    # kopf is in another thread: what it tells comes with the next turn of the loop.
    await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rare, "_LATE_SECONDS", 0.0)
    monkeypatch.setattr(rare, "get_backoff", lambda *_, **__: 0.0)


async def started(server: Server) -> tuple[Rare, list[Heard]]:
    told: list[Heard] = []
    made = server.rare = Rare(TABLE, told.append)
    await made.read_all(server.api)
    return made, told


async def test_all_there_is_is_handed_in_and_nothing_is_followed() -> None:
    server = Server(["a", "b"])
    made, told = await started(server)
    await made.follow_late(server.api)
    assert told == [
        TEAM,
        seen("a"),
        seen("b"),
    ]


async def test_a_kind_that_is_not_served_is_reported_once_with_what_needs_it() -> None:
    server = Server(NOT_THERE, NOT_THERE, ["too late"])
    with structlog.testing.capture_logs() as logs:
        made, told = await started(server)
        await made.follow_late(server.api)
    assert [(line["event"], line["needed_by"]) for line in logs] == [
        (
            "the BalancePolicy CRD is not installed; pods are placed by the configuration",
            "placement by BalancePolicies",
        )
    ]
    assert TEAM in told


async def test_an_api_server_that_cannot_be_read_is_asked_until_it_can() -> None:
    server = Server(BUSY, ApiError(403, "Forbidden", "no"), ["a"], BUSY, ["a"])
    made, told = await started(server)
    # What could be read is not read again: of two kinds both would seldom be read in one go.
    assert told == [TEAM, seen("a")]
    assert not made.troubles
    # A later list that fails is trouble as well, until one comes.
    await made.relist(server.api)
    ((name, trouble),) = made.troubles.items()
    assert (name, trouble.is_refused) == ("policies", False)
    await made.relist(server.api)
    assert not made.troubles


async def test_objects_that_kopf_never_finds_come_and_go_all_the_same() -> None:
    server = Server(NOT_THERE, NOT_THERE, ["a", "b"], BUSY, ["b"], ["too late"])
    made, told = await started(server)
    del told[:]
    await made.follow_late(server.api)
    assert told[:4] == [
        seen("a"),
        seen("b"),
        seen("b"),
        gone("a"),
    ]


async def test_what_kopf_tells_is_newer_than_a_list_under_way() -> None:
    server = Server(NOT_THERE, ["too late"])
    made, told = await started(server)
    del told[:]
    await made.follow_late(server.api)
    assert told == [seen("from-kopf")]


async def test_what_is_read_again_hands_in_what_has_changed_and_what_is_gone() -> None:
    """kopf was away, and nobody knows what it has missed."""
    server = Server(["a", "b"], ["b", "c"])
    made, told = await started(server)
    del told[:]
    await tell(made, "ADDED", "by-kopf")
    await made.read_all(server.api)
    assert told[1:] == [
        TEAM,
        seen("b"),
        seen("c"),
        gone("a"),
        gone("by-kopf"),
    ]


async def test_objects_whose_version_is_known_are_not_handed_in_again() -> None:
    made, told = await started(Server([]))
    (source,) = (one for one in TABLE if one.kind == kinds.POLICIES)
    bodies = {version: {"metadata": {"name": "a", "resourceVersion": version}} for version in "12"}
    typed = {version: make.policy(body) for version, body in bodies.items()}
    del told[:]
    for version in "1122":
        made._take_list(source, [typed[version]])
    await hear(made, source, "DELETED", bodies["2"])
    made._take_list(source, [])
    assert told == [
        events.Seen(typed["1"]), events.Seen(typed["2"]), gone("a")
    ]  # fmt: skip


async def test_a_list_during_which_kopf_tells_of_a_change_is_not_compared() -> None:
    server = Server(["a"], ["too late"], BUSY, ["a"])
    made, told = await started(server)
    del told[:]
    for _ in range(2):
        await made.relist(server.api)
    policies = [one for one in told if one != TEAM]
    assert policies == [seen("from-kopf")]
    await made.relist(server.api)
    assert told[-1] == gone("from-kopf")


async def test_what_kopf_tells_becomes_the_events_of_the_table() -> None:
    made, told = await started(Server([]))
    del told[:]
    await tell(made, "MODIFIED", "a")
    await tell(made, "DELETED", "a")
    (source,) = (one for one in TABLE if one.kind == kinds.NAMESPACES)
    body = {"metadata": {"name": "team", "labels": None}}
    for kind in (None, "DELETED"):
        await hear(made, source, kind, body)
    assert told == [
        seen("a"), gone("a"), events.Seen(make.namespace("team")), events.Gone("Namespace", "team")
    ]  # fmt: skip


async def test_kopf_watches_the_rare_kinds_and_no_others() -> None:
    registry = kopf.OperatorRegistry()
    Rare(TABLE, lambda _: None).register_handlers(registry)
    found = {(one.group, one.version, one.plural or one.any_name) for one in registry._watching.get_all_selectors()}  # fmt: skip
    assert found == {(one.group, one.version, one.plural) for one in (kinds.POLICIES, kinds.NAMESPACES)}  # fmt: skip
