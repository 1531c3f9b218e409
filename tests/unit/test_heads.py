"""What a new leader asks of the API server before it decides: versions, not pods."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from scheduler.api import kinds
from scheduler.config import Config
from scheduler.engine.engine import Engine
from scheduler.errors import ApiError
from scheduler.kube import client
from scheduler.kube.lead.heads import Heads
from tests import make

_UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
_UNBOUND = f"spec.nodeName=,spec.schedulerName=evenkeel,{_UNFINISHED}"
# Whoever bound them.
_BOUND = f"spec.nodeName!=,{_UNFINISHED}"


class Api:
    """Answers with the pods under a selector; ``fails`` come first."""

    def __init__(self, **pods: list[dict[str, Any]]) -> None:
        self.pods = {_UNBOUND: pods.get("unbound", []), _BOUND: pods.get("bound", [])}
        self.fails: list[Exception] = []
        self.accepted: set[str] = set()

    async def request(
        self, method: str, path: str, *, params: Mapping[str, str], expect: client.Expected
    ) -> bytes:
        assert (method, path) == ("GET", kinds.PODS.path)
        self.accepted.add(expect.accept)
        if self.fails:
            raise self.fails.pop()
        # An empty list of metadata is null.
        return json.dumps(
            {"metadata": {}, "items": self.pods[params["fieldSelector"]] or None}
        ).encode()


def head(uid: str, version: str, **more: Any) -> dict[str, Any]:
    metadata = {"namespace": "ns", "name": uid, "uid": uid, "resourceVersion": version}
    return {"metadata": metadata | more}


def made(api: Api, **known: str) -> Heads:
    """``known``: versions by uid; a gated pod's begins with g."""
    return Heads(api, ("evenkeel",), knowing(**known))  # type: ignore[arg-type]


def knowing(**known: str) -> Engine:
    engine = Engine(Config())
    for uid, version in known.items():
        spec = {"schedulingGates": [{"name": "g"}]} if version.startswith("g") else {}
        pod = make.pod(name=uid, spec=spec)
        pod.metadata.uid, pod.metadata.resource_version = uid, version.removeprefix("g")
        engine._cluster.see_pod(pod)
    return engine


async def test_only_pods_that_a_bind_could_land_on_are_fenced() -> None:
    api = Api(
        unbound=[
            head("waits", "5"), head("new", "6"), head("deleted", "7", deletionTimestamp="2026-01-01T00:00:00Z"),
            head("gated", "8"), head("was-gated", "9"),
        ]
    )  # fmt: skip
    found = await made(api, waits="5", gated="g8", **{"was-gated": "g4"}).list_unbound()
    # A pod whose newest state is not known here may have lost its gates.
    assert [(pod.name, pod.version) for pod in found] == [("waits", "5"), ("new", "6"), ("was-gated", "9")]  # fmt: skip


async def test_pods_of_each_of_our_names_are_fenced() -> None:
    api = Api(unbound=[head("p", "1")])
    api.pods[_UNBOUND.replace("evenkeel", "default-scheduler")] = [head("q", "2")]
    heads = Heads(api, ("evenkeel", "default-scheduler"), knowing())  # type: ignore[arg-type]
    assert [pod.uid for pod in await heads.list_unbound()] == ["p", "q"]


@pytest.mark.parametrize(
    ("known", "is_heard"),
    [("", False), ("9", False), ("10", True), ("11", True), ("odd", False)],
)
async def test_what_is_bound_and_newer_than_known_is_unheard(known: str, is_heard: bool) -> None:
    heads = made(Api(bound=[head("p", "10")]), **({"p": known} if known else {}))
    assert [pod.uid for pod in await heads.list_newer()] == ([] if is_heard else ["p"])


async def test_what_was_known_and_is_gone_since_is_heard() -> None:
    """Else a new leader would list all pods again wherever some of them finish all the time."""
    engine = knowing(finishes="7")
    heads = Heads(Api(bound=[head("finishes", "10"), head("new", "11")]), ("evenkeel",), engine)  # type: ignore[arg-type]
    unheard = await heads.list_newer()
    assert [pod.uid for pod in unheard] == ["finishes", "new"]
    engine._cluster.drop_pod("finishes")
    assert [pod.uid for pod in heads.keep_newer(unheard)] == ["new"]


async def test_versions_that_are_no_numbers_are_the_same_or_unheard() -> None:
    heads = made(Api(bound=[head("p", "odd"), head("q", "odder")]), p="odd", q="odd")
    assert [pod.uid for pod in await heads.list_newer()] == ["q"]


async def test_an_empty_cluster_has_nothing_to_hear_of_or_to_fence() -> None:
    heads = made(Api())
    assert (await heads.list_newer(), await heads.list_unbound()) == ([], [])


async def test_metadata_is_asked_for_and_again_until_there_is_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pod can be a megabyte; its metadata is bounded."""
    monkeypatch.setattr(client, "get_backoff", lambda *_, **__: 0.0)
    api = Api(bound=[head("p", "10")])
    api.fails = [ApiError(410, "Expired", ""), ApiError(503, "", "busy")]
    assert [pod.uid for pod in await made(api).list_newer()] == ["p"]
    assert all(form.startswith("application/json;as=PartialObjectMetadataList") for form in api.accepted)  # fmt: skip
