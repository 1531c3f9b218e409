"""The fence alone: whatever a pod is like, a leader gets past it."""

import contextlib
import itertools
from typing import Any

import msgspec
import pytest

from scheduler.api import names
from scheduler.errors import ApiError
from scheduler.kube import client
from scheduler.kube.bind.fence import Fence, Target

POD = Target("default", "p", "uid", "7")


class Api:
    """One pod; ``refuse`` may raise on a write."""

    def __init__(self, refuse: Any = lambda _: None) -> None:
        self.version, self.node, self.uid = 7, "", "uid"
        self.refuse = refuse
        self.bodies: list[Any] = []

    async def send(self, method: str, path: str, body: Any, *, content_type: str) -> bytes:
        assert (method, path) == ("PATCH", "/api/v1/namespaces/default/pods/p/status")
        assert content_type == (client.STRATEGIC_PATCH if "status" in body else client.MERGE_PATCH)
        self.bodies.append(body)
        self.refuse(body)
        sent = body["metadata"]
        if (sent["uid"], sent["resourceVersion"]) != (self.uid, str(self.version)):
            raise ApiError(409, "Conflict", "")
        self.version += 1
        return msgspec.json.encode(self._pod())

    async def get(self, path: str) -> Any:
        assert path == "/api/v1/namespaces/default/pods/p"
        return self._pod()

    def _pod(self) -> Any:
        metadata = {"uid": self.uid, "resourceVersion": str(self.version)}
        return {"metadata": metadata, "spec": {"nodeName": self.node} if self.node else {}}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "get_backoff", lambda *_, **__: 0.0)


def made(api: Api) -> Fence:
    return Fence(api, identity="me")  # type: ignore[arg-type]


async def test_a_touch_says_who_and_is_never_twice_the_same() -> None:
    """The API server leaves the version as it is when a patch changes nothing."""
    api = Api()
    one = made(api)
    assert await one.sweep_pods([POD], set()) == 0
    assert await one.sweep_pods([POD._replace(version="8")], set()) == 0
    words = [body["metadata"]["annotations"][names.FENCED] for body in api.bodies]
    assert "me" in words[0]
    assert words[0] != words[1]
    assert api.version == 9


async def test_what_landed_first_is_counted_and_what_changed_needs_no_touch() -> None:
    api = Api()
    api.version, api.node = 8, "n"
    assert await made(api).sweep_pods([POD], set()) == 1
    api.node = ""
    assert await made(api).sweep_pods([POD], set()) == 0
    api.uid = "another"
    assert await made(api).sweep_pods([POD], set()) == 0
    assert api.version == 8


async def test_a_touch_on_a_pod_that_was_bound_says_so() -> None:
    """Its sender knew the version from the watch, and not that this is the version of a bound pod."""
    api = Api()
    api.node = "n"
    assert await made(api).sweep_pods([POD], set()) == 1


async def test_after_a_touch_whose_answer_was_lost_the_pod_is_only_read() -> None:
    """To send the touch anew before each look would take many times as long before a server that fails often."""
    lost, reads = iter([True]), iter([False, False, True])

    class Lossy(Api):
        async def send(self, method: str, path: str, body: Any, *, content_type: str) -> bytes:
            payload = await super().send(method, path, body, content_type=content_type)
            if next(lost, False):
                raise ApiError(500, "", "after it took effect")
            return payload

        async def get(self, path: str) -> Any:
            if not next(reads):
                raise ApiError(503, "", "busy")
            return await super().get(path)

    api = Lossy()
    assert await made(api).sweep_pods([POD], set()) == 0
    assert api.version == 8
    assert len(api.bodies) == 2


async def test_what_the_watch_tells_of_a_touch_in_doubt_is_enough() -> None:
    api = Api()

    def lost(_: Any) -> None:
        api.version += 1
        raise ApiError(500, "", "after it took effect")

    api.refuse = lost
    assert await made(api).sweep_pods([POD], set(), lambda pod: api.version > int(pod.version)) == 0
    assert len(api.bodies) == 1


async def test_a_sweep_that_was_cancelled_goes_on_where_it_was() -> None:
    api = Api()
    fenced = {"other"}
    other = POD._replace(uid="other", name="other")
    assert await made(api).sweep_pods([other, POD], fenced) == 0
    assert len(api.bodies) == 1
    assert fenced == {"other", "uid"}


async def test_a_pod_whose_annotations_are_full_is_touched_by_a_condition() -> None:
    """Else anyone who may create a pod could keep everyone from leading."""

    def full(body: Any) -> None:
        if "annotations" in body["metadata"]:
            raise ApiError(422, "Invalid", "metadata.annotations: Too long")

    api = Api(full)
    assert await made(api).sweep_pods([POD], set()) == 0
    assert api.version == 8
    (condition,) = api.bodies[-1]["status"]["conditions"]
    assert condition["type"] == names.FENCED


async def test_a_pod_that_fills_etcds_request_keeps_nobody_from_leading() -> None:
    def too_large(_: Any) -> None:
        raise ApiError(500, "", "etcdserver: request is too large")

    one = made(Api(too_large))
    assert await one.sweep_pods([POD], set()) == 0
    assert one.n_left == 0


async def test_it_is_tried_until_it_is_done() -> None:
    answers = itertools.chain([ApiError(503, "", "busy"), RuntimeError("odd")], itertools.repeat(None))  # fmt: skip

    def busy(_: Any) -> None:
        if error := next(answers):
            raise error

    api = Api(busy)
    troubles: list[Exception] = []

    def trouble(error: Exception) -> contextlib.AbstractAsyncContextManager[None]:
        troubles.append(error)
        return contextlib.nullcontext()

    found = await made(api).seal_pod(POD, trouble)
    assert found is not None
    assert found["metadata"]["resourceVersion"] == "8"
    assert len(troubles) == 2
