"""A plugin without a lock gets no pod while another pod of the node waits for it."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.kube.bind.jobs import Contended, Done
from scheduler.kube.bind.unserved import UnservedPods
from tests.unit.turns_jobs import UNLOCKED, job

Json = dict[str, Any]
_XPU = "kunlunxin.com/xpu"


class _Api:
    def __init__(self, *pods: Json) -> None:
        self.pods, self.params = pods, dict[str, str]()

    async def get(self, path: str, params: dict[str, str]) -> Json:
        assert path == "/api/v1/pods"
        self.params = params
        return {"items": list(self.pods)}


def _make_pod(
    uid: str = "2", resource: str = _XPU, status: Json | None = None, **meta: str
) -> Json:
    limits = {"resources": {"limits": {resource: "1"}}}
    return {
        "metadata": {"uid": uid, "namespace": "default", "name": f"p-{uid}"} | meta,
        "spec": {"containers": [{"name": "a"}, {"name": "b"} | limits]},
        "status": {"phase": "Pending"} | (status or {}),
    }


@pytest.mark.parametrize(
    "pod",
    [
        _make_pod(uid="1"),
        _make_pod(resource="nvidia.com/gpu"),
        _make_pod(status={"startTime": "2026-01-01T00:00:00Z"}),
        _make_pod(status={"phase": "Failed"}),
        _make_pod(deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
    ids=["the pod itself", "another plugin's", "admitted", "over", "going"],
)
async def test_pods_that_do_not_wait_for_the_plugin_hold_nobody_up(pod: Json) -> None:
    api = _Api(pod)
    step = UnservedPods(api)  # type: ignore[arg-type]
    assert await step.take(job("1", driver=UNLOCKED), lambda: True) == Done()
    assert api.params == {"fieldSelector": "spec.nodeName=a"}


async def test_a_pod_that_waits_for_the_plugin_is_waited_for() -> None:
    step = UnservedPods(_Api(_make_pod(uid="1"), _make_pod()))  # type: ignore[arg-type]
    answer = await step.take(job("1", driver=UNLOCKED), lambda: True)
    assert answer == Contended("default/p-2", "2")


def test_only_pods_whose_plugin_has_no_lock_need_the_step() -> None:
    step = UnservedPods(_Api())  # type: ignore[arg-type]
    assert step.is_needed_by(job("1", driver=UNLOCKED))
    assert not step.is_needed_by(job("1"))


async def test_a_pod_that_requests_parts_alone_is_waited_for() -> None:
    """Cores of AWS Neuron's devices are requested without a number of devices, and the same plugin serves them."""
    api = _Api(_make_pod(resource="aws.amazon.com/neuroncore"))
    step = UnservedPods(api)  # type: ignore[arg-type]
    answer = await step.take(job("1", driver="HAMi AWSNeuron"), lambda: True)
    assert answer == Contended("default/p-2", "2")
