"""Policies of a CRD that came after the scheduler, when kopf finds them and when it does not."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from scheduler.api import events
from scheduler.errors import ApiError
from scheduler.kube.client import ApiClient
from scheduler.kube.watch import sources

Json = dict[str, Any]
NOT_THERE = ApiError(404, "NotFound", "no such kind")


class Server:
    """Answers one after another; the last of them ends the test."""

    def __init__(self, *answers: ApiError | list[str]) -> None:
        self._answers: Iterator[ApiError | list[str]] = iter(answers)

    async def get(self, path: str) -> Json:
        assert path == "/apis/scheduling.evenkeel.dev/v1alpha1/balancepolicies"
        answer = next(self._answers)
        if isinstance(answer, ApiError):
            raise answer
        return {"items": [{"metadata": {"name": name}} for name in answer]}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_LATE_SECONDS", 0.0)


async def _told(server: Server, heard: Iterator[bool]) -> list[events.Heard]:
    told: list[events.Heard] = []
    api = cast("ApiClient", server)
    await sources.late_policies(api, told.append, lambda: next(heard))
    return told


async def test_policies_that_kopf_never_finds_come_and_go_all_the_same() -> None:
    server = Server(NOT_THERE, ["a", "b"], ApiError(0, "Timeout", "no answer"), ["b"])
    heard = iter([False, False, False, False, False, False, True])
    assert await _told(server, heard) == [
        events.PolicySeen({"metadata": {"name": "a"}}),
        events.PolicySeen({"metadata": {"name": "b"}}),
        events.PolicySeen({"metadata": {"name": "b"}}),
        events.PolicyGone("a"),
    ]


async def test_what_kopf_tells_is_newer_than_a_list_under_way() -> None:
    assert await _told(Server(["old"]), iter([False, True])) == []
