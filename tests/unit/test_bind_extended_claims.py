"""The claim for a pod's extended resources on its way to a bind: made once, found again, and taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from scheduler.api import names
from scheduler.api.claims import extended, objects
from scheduler.api.claims.answers import Allotment, DeviceKey, Given
from scheduler.api.door.decisions import Bind
from scheduler.errors import ApiError
from scheduler.kube.bind.claim_waits import ClaimLookups
from scheduler.kube.bind.claims import ResourceClaims
from scheduler.kube.bind.jobs import Done, Impossible, Job
from scheduler.state.pods import PodRecord
from tests import make
from tests.operator import devices

Json = dict[str, Any]
_CLAIMS = devices.CLAIMS


class Api:
    """Claims and the status of one pod, as an API server keeps them; ``fails`` raises what goes wrong before or after a call."""

    def __init__(self) -> None:
        self.claims: dict[str, Json] = {}
        self.status: Json = {}
        self.calls: list[tuple[str, str]] = []
        self.version = 10
        self.before: Callable[[str, str], ApiError | None] = lambda _method, _path: None
        self.after: Callable[[str, str], ApiError | None] = lambda _method, _path: None

    async def send(self, method: str, path: str, body: Json | None, *, content_type: str = "") -> bytes:  # fmt: skip
        await asyncio.sleep(0)
        self.calls.append((method, path.rpartition("/")[2] if method != "POST" else path))
        if error := self.before(method, path):
            raise error
        answer = self._serve(method, path, body or {})
        if error := self.after(method, path):
            raise error
        assert content_type.startswith("application/strategic") or method != "PATCH"
        return msgspec.json.encode(answer)

    def _serve(self, method: str, path: str, body: Json) -> Json:
        self.version += 1
        if "/pods/" in path:
            assert body["metadata"]["uid"] == "default/p"
            self.status |= body["status"]
            return {"metadata": {"resourceVersion": str(self.version)}}
        if method == "POST":
            return self._create(body)
        name = path.removeprefix(f"{_CLAIMS}/").partition("/")[0]
        found = self.claims.get(name)
        if found is None:
            raise ApiError(404, "NotFound", "not found")
        if method == "DELETE":
            assert body["preconditions"]["uid"] == found["metadata"]["uid"]
            assert not found["metadata"]["finalizers"]
            return self.claims.pop(name)
        if method == "PATCH":
            meta = body.get("metadata", {})
            if meta["resourceVersion"] != found["metadata"]["resourceVersion"]:
                raise ApiError(409, "Conflict", "changed")
            found["metadata"]["resourceVersion"] = str(self.version)
            if "$deleteFromPrimitiveList/finalizers" in meta:
                found["metadata"]["finalizers"] = []
            found.setdefault("status", {}).update(body.get("status", {}))
        return found

    def _create(self, body: Json) -> Json:
        name = body["metadata"]["name"]
        if name in self.claims:
            raise ApiError(409, "AlreadyExists", "there already")
        meta = {"namespace": "default", "uid": f"uid-{self.version}"}
        self.claims[name] = body | {"metadata": body["metadata"] | meta | {"resourceVersion": str(self.version)}}  # fmt: skip
        return self.claims[name]


class Scene:
    """A pod that is to get one device, and the step that writes its claim."""

    def __init__(self) -> None:
        self.api = Api()
        (self.pod,) = make.cluster(pods=[make.pod(name="p", uid="default/p")]).pods.values()
        self.step = ResourceClaims(self.api, ClaimLookups(lambda _: None), lambda: 0.0)  # type: ignore[arg-type]
        self.name, _ = extended.make_name("p", self.pod.uid)

    def make_job(self, n: int = 1) -> Job:
        exactly = objects.ExactRequest(device_class_name="gpu", allocation_mode="ExactCount", count=n)  # fmt: skip
        served = extended.Served("main", "example.com/gpu", "r")
        drawn = extended.Drawn((objects.DeviceRequest("r", exactly),), ("example.com/gpu",), (served,))  # fmt: skip
        given = Given("r", DeviceKey(devices.DRIVER, "n0", "gpu-0"))
        key = extended.make_key("default", self.pod.uid)
        allocation = msgspec.json.encode(devices.allocation("n0", "gpu-0", asked="r"))
        made = extended.write_claim(drawn)
        allotted = Allotment(key, self.pod.uid, (given,), allocation, made)
        return _job(self.pod, allotted)

    @property
    def claim(self) -> Json:
        (one,) = self.api.claims.values()
        return one


def _job(pod: PodRecord, allotted: Allotment) -> Job:
    return Job(Bind(pod.uid, "n0", allotted=(allotted,)), pod, 1, 0.0)


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_a_claim_is_made_allocated_and_named_and_the_bind_follows_the_pods_new_version(
    scene: Scene,
) -> None:
    job = scene.make_job()
    assert await scene.step.take(job, lambda: True) == Done()
    assert scene.claim["metadata"]["name"] == scene.name
    assert devices.list_devices(scene.claim) == ["n0/gpu-0"]
    assert scene.claim["status"]["reservedFor"][0]["uid"] == scene.pod.uid
    told = scene.api.status["extendedResourceClaimStatus"]
    assert told["resourceClaimName"] == scene.name
    assert job.pod_version == str(scene.api.version)
    # Three writes: the claim with its finalizer, its devices with the pod, and the pod's status.
    assert [method for method, _ in scene.api.calls] == ["POST", "PATCH", "PATCH"]
    await scene.step.undo(job)
    assert scene.api.claims == {}
    assert job.claim_versions == {}


async def test_a_claim_whose_making_was_not_answered_is_found_again_and_used(scene: Scene) -> None:
    scene.api.after = lambda method, _: ApiError(0, "Timeout", "") if method == "POST" else None
    job = scene.make_job()
    with pytest.raises(ApiError, match="create claim for extended resources default/p-extended"):
        await scene.step.take(job, lambda: True)
    scene.api.after = lambda _method, _path: None
    # Undone before it is there, as far as anybody knows.
    made = dict(scene.api.claims)
    scene.api.claims.clear()
    await scene.step.undo(job)
    scene.api.claims |= made
    again = scene.make_job()
    assert await scene.step.take(again, lambda: True) == Done()
    assert len(scene.api.claims) == 1
    assert devices.list_devices(scene.claim) == ["n0/gpu-0"]


async def test_a_claim_of_an_earlier_try_that_requests_something_else_is_deleted(
    scene: Scene,
) -> None:
    await scene.step.take(scene.make_job(n=2), lambda: True)
    with pytest.raises(Impossible, match="of an earlier try is there"):
        await scene.step.take(scene.make_job(n=1), lambda: True)
    assert scene.api.claims == {}
    assert await scene.step.take(scene.make_job(n=1), lambda: True) == Done()


async def test_a_claim_of_that_name_that_is_not_the_pods_is_left_alone(scene: Scene) -> None:
    """Somebody else may have made it."""
    meta = {"name": scene.name, "uid": "x", "resourceVersion": "1", "finalizers": ["example.com/mine"]}  # fmt: skip
    for more in ({}, {"annotations": {names.EXTENDED_CLAIM: "true"}}):
        scene.api.claims[scene.name] = {"metadata": meta | {"namespace": "default"} | more}
        job = scene.make_job()
        with pytest.raises(Impossible, match="of an earlier try is there"):
            await scene.step.take(job, lambda: True)
        await scene.step.undo(job)
        assert scene.claim["metadata"]["uid"] == "x"


@pytest.mark.parametrize("n_writes", range(3))
async def test_nothing_is_written_once_the_scheduler_does_not_lead(
    scene: Scene, n_writes: int
) -> None:
    left = [n_writes]

    def may_write() -> bool:
        left[0] -= 1
        return left[0] >= 0

    job = scene.make_job()
    with pytest.raises(ApiError, match="no longer the leader"):
        await scene.step.take(job, may_write)
    assert len(scene.api.calls) == n_writes


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("is_served", [False, True])
async def test_whatever_fails_leaves_no_claim_and_no_doubt_after_it_was_undone(
    scene: Scene, at: int, is_served: bool
) -> None:
    left = [at]

    def fail(_: str, __: str) -> ApiError | None:
        left[0] -= 1
        return ApiError(503, "ServiceUnavailable", "injected") if left[0] == -1 else None

    if is_served:
        scene.api.after = fail
    else:
        scene.api.before = fail
    job = scene.make_job()
    with pytest.raises(ApiError, match="injected"):
        await scene.step.take(job, lambda: True)
    await scene.step.undo(job)
    assert scene.api.claims == {}
    assert job.claim_versions == {}


async def test_what_could_not_be_undone_stays_in_doubt(scene: Scene) -> None:
    job = scene.make_job()
    await scene.step.take(job, lambda: True)
    scene.api.before = lambda _method, _path: ApiError(503, "ServiceUnavailable", "injected")
    with pytest.raises(ApiError, match="injected"):
        await scene.step.undo(job)
    assert list(job.claim_versions.values()) == [scene.claim["metadata"]["resourceVersion"]]
    assert job.describe_failure("x", is_gone=False).claims
