"""Node locks as anybody may have written them: none keeps a node closed for ever or ends the scheduler."""

import datetime as dt
import re
from typing import Any

import pytest

from scheduler.api import names
from scheduler.api.cards import Grant
from scheduler.api.door.decisions import Bind
from scheduler.errors import ApiError
from scheduler.kube.bind.jobs import Done, Job
from scheduler.kube.bind.node_lock import NodeLock
from tests import make

MLU = "cambricon.com/dsmlu.lock"


class Api:
    """A node with a lock, and pods by namespace and name."""

    def __init__(
        self, lock: str | None, pods: dict[tuple[str, str], dict[str, Any]] | None = None
    ) -> None:
        annotations = {} if lock is None else {names.HAMI_LOCK: lock}
        self.node: dict[str, Any] = {
            "metadata": {"name": "n", "resourceVersion": "1", "annotations": annotations}
        }
        self.pods = pods or {}

    async def get(self, path: str) -> dict[str, Any]:
        if path == "/api/v1/nodes/n":
            return self.node
        *_, namespace, kind, name = path.split("/")
        assert kind == "pods"
        if (namespace, name) not in self.pods:
            raise ApiError(404, "NotFound", path)
        return self.pods[namespace, name]

    async def send(self, method: str, path: str, body: Any, *, content_type: str) -> bytes:
        assert (method, path, content_type) == (
            "PATCH", "/api/v1/nodes/n", "application/merge-patch+json"
        )  # fmt: skip
        self.node["metadata"]["annotations"] |= body["metadata"]["annotations"]
        return b""


def job(*drivers: str) -> Job:
    """The pod ``p`` on its way to the node ``n``, with devices of some drivers."""
    pod = make.cluster().see_pod(make.pod(name="p"))
    assert pod is not None
    grants = tuple(Grant(driver, ((),)) for driver in drivers or ("HAMi",))
    return Job(Bind(pod.uid, "n", grants), pod, 1, 0.0)


async def take(
    api: Api, *, may_write: bool = True, schedulers: tuple[str, ...] = ("ours",)
) -> bool:
    lock = NodeLock(api, schedulers=schedulers, timeout_seconds=300.0)  # type: ignore[arg-type]
    return await lock.take(job(), lambda: may_write) == Done()


def dated(text: str | None) -> str | None:
    """The text with ``<n>`` as the time n seconds ago: of the test, not of its collection."""
    return text and re.sub(r"<(-?\d+)>", _ago, text)


def _ago(match: re.Match[str]) -> str:
    since = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=int(match[1]))
    return since.strftime("%Y-%m-%dT%H:%M:%SZ")


RUNS = {
    "spec": {"nodeName": "n", "schedulerName": "other"},
    "metadata": {},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    "text",
    [
        None, "", "soon", ",", "0001-01-01T00:00:00", "0001-01-01,default,x", "9999-12-31T23:59:59",
        "<1>,default,", "<1>,default,x?limit=1", "<1>,../..,x", "<1>,default,gone",
        "<301>,default,runs", "<-400>,default,runs", "<301>", "1e400", "2026-13-01T00:00:00Z",
    ],
)  # fmt: skip
async def test_a_lock_that_names_no_pod_at_work_is_taken_over(text: str | None) -> None:
    api = Api(dated(text), {("default", "runs"): RUNS})
    assert await take(api)
    held = api.node["metadata"]["annotations"][names.HAMI_LOCK]
    assert held.endswith(",default,p")


@pytest.mark.parametrize("text", ["<1>,default,runs", "<1>", "<-1>"])
async def test_a_lock_at_work_is_left_alone(text: str) -> None:
    text = dated(text) or ""
    api = Api(text, {("default", "runs"): RUNS})
    assert not await take(api)
    assert api.node["metadata"]["annotations"] == {names.HAMI_LOCK: text}


async def test_who_leads_no_more_takes_no_lock() -> None:
    api = Api(None)
    assert not await take(api, may_write=False)
    assert api.node["metadata"]["annotations"] == {}


@pytest.mark.parametrize(("schedulers", "taken"), [(("a", "ours"), True), (("a", "b"), False)])
async def test_a_lock_of_a_pod_without_a_node_is_taken_over_from_any_of_our_own_names(
    schedulers: tuple[str, ...], *, taken: bool
) -> None:
    """Its leader died between lock and bind; another scheduler's may be about to bind it."""
    waits = {"spec": {"schedulerName": "ours"}, "metadata": {}}
    api = Api(dated("<1>,default,waits"), {("default", "waits"): waits})
    assert await take(api, schedulers=schedulers) == taken


async def test_a_lock_is_given_back_by_the_pod_that_it_names_only() -> None:
    api = Api(dated("<1>,default,p"))
    lock = NodeLock(api, schedulers=("ours",), timeout_seconds=300.0)  # type: ignore[arg-type]
    await lock.undo(job())
    assert api.node["metadata"]["annotations"] == {names.HAMI_LOCK: None}
    other = dated("<1>,default,runs") or ""
    api = Api(other)
    lock = NodeLock(api, schedulers=("ours",), timeout_seconds=300.0)  # type: ignore[arg-type]
    await lock.undo(job())
    assert api.node["metadata"]["annotations"] == {names.HAMI_LOCK: other}


async def take_mlu(api: Api, bound: Job) -> bool:
    lock = NodeLock(api, schedulers=("ours",), timeout_seconds=300.0)  # type: ignore[arg-type]
    return await lock.take(bound, lambda: True) == Done()


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("<1>", False),
        ("<119>", False),
        ("<125>", True),
        ("", True),
        ("soon", True),
        ("<1>,a,b", True),
    ],
)
async def test_the_lock_of_mlu_is_a_time_that_holds_for_two_minutes(text: str, taken: bool) -> None:
    api = Api(None)
    api.node["metadata"]["annotations"] = {MLU: dated(text)}
    bound = job("HAMi MLU")
    assert await take_mlu(api, bound) == taken
    held = api.node["metadata"]["annotations"]
    assert held == {MLU: bound.locked_at if taken else dated(text)}
    # Taken a second time for the same pod, it is still the pod's.
    assert await take_mlu(api, bound) == taken


async def test_the_lock_of_mlu_is_given_back_by_the_pod_for_which_it_was_written() -> None:
    api, bound = Api(None), job("HAMi MLU")
    lock = NodeLock(api, schedulers=("ours",), timeout_seconds=300.0)  # type: ignore[arg-type]
    assert await take_mlu(api, bound)
    await lock.undo(job("HAMi MLU"))
    assert api.node["metadata"]["annotations"] == {MLU: bound.locked_at}
    await lock.undo(bound)
    assert api.node["metadata"]["annotations"] == {MLU: None}


async def test_a_pod_with_devices_of_two_vendors_takes_both_locks_or_none() -> None:
    api, bound = Api(None), job("HAMi", "HAMi DCU", "HAMi MLU", "HAMi Mthreads")
    api.node["metadata"]["annotations"] = {MLU: dated("<1>")}
    assert not await take_mlu(api, bound)
    assert set(api.node["metadata"]["annotations"]) == {MLU}
    del api.node["metadata"]["annotations"][MLU]
    assert await take_mlu(api, bound)
    held = api.node["metadata"]["annotations"]
    assert held == {names.HAMI_LOCK: f"{bound.locked_at},default,p", MLU: bound.locked_at}
