"""Node locks as anybody may have written them: none keeps a node closed for ever or ends the scheduler."""

import datetime as dt
import re
from typing import Any

import pytest

from scheduler.api import names
from scheduler.api.cards import Grant
from scheduler.api.door.decisions import Bind
from scheduler.errors import ApiError
from scheduler.kube.bind.jobs import Answer, Contended, Done, Job
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


def job(*drivers: str, name: str = "p") -> Job:
    """A pod on its way to the node ``n``, with devices of some drivers."""
    pod = make.cluster().see_pod(make.pod(name=name))
    assert pod is not None
    grants = tuple(Grant(driver, ((),)) for driver in drivers or ("HAMi",))
    return Job(Bind(pod.uid, "n", grants), pod, 1, 0.0)


async def take(
    api: Api, *, may_write: bool = True, schedulers: tuple[str, ...] = ("ours",)
) -> bool:
    return await answer(api, may_write=may_write, schedulers=schedulers) == Done()


async def answer(
    api: Api, *, may_write: bool = True, schedulers: tuple[str, ...] = ("ours",)
) -> Answer:
    lock = NodeLock(api, schedulers=schedulers, timeout_seconds=300.0)  # type: ignore[arg-type]
    return await lock.take(job(), lambda: may_write)


def dated(text: str | None) -> str | None:
    """The text with ``<n>`` as the time n seconds ago: of the test, not of its collection."""
    return text and re.sub(r"<(-?\d+)>", _ago, text)


def _ago(match: re.Match[str]) -> str:
    since = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=int(match[1]))
    return since.strftime("%Y-%m-%dT%H:%M:%SZ")


def found(
    node: str = "", *, phase: str = "Pending", answer: str = "", uid: str = "u", by: str = "other"
) -> dict[str, Any]:
    """A pod as the API server has it."""
    notes = {names.HAMI_BIND_PHASE: answer} if answer else {}
    return {
        "spec": {"nodeName": node, "schedulerName": by} if node else {"schedulerName": by},
        "metadata": {"uid": uid, "annotations": notes},
        "status": {"phase": phase},
    }


PODS = {
    "waits": found("n"),
    "allocating": found("n", answer="allocating"),
    "unbound": found(),
    "unbound-with-words": found(answer="success"),
    "runs": found("n", phase="Running", answer="allocating"),
    "succeeded": found("n", phase="Succeeded"),
    "failed": found("n", phase="Failed"),
    "served": found("n", answer="success"),
    "refused": found("n", answer="failed"),
    "elsewhere": found("m", answer="allocating"),
    "ours": found(by="ours"),
    "ours-bound": found("n", by="ours"),
}


@pytest.mark.parametrize(
    "text",
    [
        None, "", "soon", ",", "0001-01-01T00:00:00", "0001-01-01,default,x", "9999-12-31T23:59:59",
        "<1>,default,", "<1>,default,x?limit=1", "<1>,../..,x", "<1>,default,gone",
        "<301>", "1e400", "2026-13-01T00:00:00Z", "<-400>", "<1>,default,p",
        *(f"<1>,default,{name}" for name in ("runs", "succeeded", "failed", "served", "refused", "elsewhere", "ours")),
        # Age counts for the lock of an unbound pod of another scheduler alone.
        "<301>,default,unbound", "<-400>,default,unbound", "soon,default,unbound", "<301>,default,unbound-with-words",
    ],
)  # fmt: skip
async def test_a_lock_that_names_no_pod_at_work_is_taken_over(text: str | None) -> None:
    api = Api(dated(text), {("default", name): pod for name, pod in PODS.items()})
    assert await take(api)
    held = api.node["metadata"]["annotations"][names.HAMI_LOCK]
    assert held.endswith(",default,p")


@pytest.mark.parametrize(
    ("text", "holder"),
    [
        ("<1>", ""),
        ("<-1>", ""),
        ("<299>,default,unbound", ""),
        ("<1>,default,unbound-with-words", ""),
        # However old it is, the plugin still has to serve the pod.
        *(
            (f"{since},default,{name}", "u")
            for since in ("<1>", "<86400>", "<-400>", "soon")
            for name in ("waits", "allocating", "ours-bound")
        ),
    ],
)
async def test_a_lock_at_work_is_left_alone(text: str, holder: str) -> None:
    text = dated(text) or ""
    api = Api(text, {("default", name): pod for name, pod in PODS.items()})
    assert await answer(api) == Contended(text, holder)
    assert api.node["metadata"]["annotations"] == {names.HAMI_LOCK: text}


@pytest.mark.parametrize(
    ("after", "taken"),
    [
        (found(uid="another"), True),
        # The plugin finds its pod by the name, so it would serve this one.
        (found("n", uid="another"), False),
        (found(uid="default/q"), False),
    ],
)
async def test_a_lock_that_was_written_for_an_earlier_pod_of_the_name_is_no_lock_of_a_later_one(
    after: dict[str, Any], *, taken: bool
) -> None:
    api = Api(None)
    lock = NodeLock(api, schedulers=("ours",), timeout_seconds=300.0)  # type: ignore[arg-type]
    before = job(name="q")
    assert await lock.take(before, lambda: True) == Done()
    api.pods["default", "q"] = after
    assert (await lock.take(job(), lambda: True) == Done()) == taken
    # Another process does not know for which pod it was.
    api.node["metadata"]["annotations"] = {names.HAMI_LOCK: dated("<1>,default,q")}
    assert not await take(api)


async def test_who_leads_no_more_takes_no_lock() -> None:
    api = Api(None)
    assert not await take(api, may_write=False)
    assert api.node["metadata"]["annotations"] == {}


@pytest.mark.parametrize(("schedulers", "taken"), [(("a", "ours"), True), (("a", "b"), False)])
async def test_a_lock_of_a_pod_without_a_node_is_taken_over_from_any_of_our_own_names(
    schedulers: tuple[str, ...], *, taken: bool
) -> None:
    """Its leader died between lock and bind; another scheduler's may be about to bind it."""
    api = Api(dated("<1>,default,ours"), {("default", "ours"): PODS["ours"]})
    assert await take(api, schedulers=schedulers) == taken


@pytest.mark.parametrize(
    "since", ["<100>,default,p", "<1>,default,runs", ""], ids=["a later pod", "another", "none"]
)
async def test_a_lock_is_given_back_only_if_it_was_written_for_the_pod(since: str) -> None:
    """A pod that came later under the same name may have a lock of its own."""
    api = Api(None)
    lock = NodeLock(api, schedulers=("ours",), timeout_seconds=300.0)  # type: ignore[arg-type]
    taken = job()
    await lock.take(taken, lambda: True)
    if since:
        api.node["metadata"]["annotations"] = {names.HAMI_LOCK: dated(since)}
    await lock.undo(taken)
    kept = dated(since) if since else None
    assert api.node["metadata"]["annotations"] == {names.HAMI_LOCK: kept}


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
