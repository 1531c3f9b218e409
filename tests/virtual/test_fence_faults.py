"""The fence before an API server of which seven answers in ten go wrong: a new leader gets past it soon."""

import json
import random
from typing import Any

import pytest

from scheduler.errors import ApiError
from scheduler.kube.bind.fence import Fence, Target
from tests.virtual.clock import Clock, Process
from tests.virtual.faulty import Faults

Json = dict[str, Any]
_ANSWER_SECONDS = 5.0
_N_PODS = 40


class FaultyApi:
    """Pods at version 1."""

    def __init__(self, seed: int) -> None:
        self._faults = Faults(seed)
        self.versions: dict[str, int] = {}

    async def get(self, path: str) -> Json:
        return await self._faults.serve(lambda: self._pod(path), _ANSWER_SECONDS)

    async def send(self, _: str, path: str, body: Json, *, content_type: str) -> bytes:
        assert content_type
        path = path.removesuffix("/status")

        def write() -> Json:
            pod = self._pod(path)
            if body["metadata"]["resourceVersion"] != pod["metadata"]["resourceVersion"]:
                raise ApiError(409, "Conflict", "")
            self.versions[path] = self.versions.get(path, 1) + 1
            return self._pod(path)

        return json.dumps(await self._faults.serve(write, _ANSWER_SECONDS)).encode()

    def _pod(self, path: str) -> Json:
        version = str(self.versions.get(path, 1))
        return {"metadata": {"uid": path, "resourceVersion": version}, "spec": {}}


@pytest.mark.parametrize("seed", range(5))
def test_pods_are_fenced_soon(seed: int) -> None:
    """Each pod is touched once: what is in doubt is read again, and late answers are not waited for."""
    api = FaultyApi(seed)
    clock = Clock(random.Random(seed))
    process = Process(clock)
    fence = Fence(api, identity="a")  # type: ignore[arg-type]
    pods = [Target("ns", f"p{i}", f"/api/v1/namespaces/ns/pods/p{i}", "1") for i in range(_N_PODS)]
    sweeping = process.create_task(fence.sweep_pods(pods, set()))
    clock.run(1030.0)
    is_done = sweeping.done()
    process.kill()
    assert is_done
    assert not process.died_of
    assert list(api.versions.values()) == [2] * _N_PODS
