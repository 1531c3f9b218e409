"""Locks that an ended process has left: what names a pod that is gone goes, and nothing else."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from scheduler.api import names
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.engine import Engine
from scheduler.errors import ApiError
from scheduler.kube.bind import left_locks
from scheduler.kube.bind.left_locks import LeftLocks
from tests import make

NODE = "/api/v1/nodes/n"
LEFT = "2026-01-01T00:00:00Z,default,gone"
Json = dict[str, Any]


class Api:
    """A node with a lock, and a pod ``there``; ``before_write`` is called before each write."""

    def __init__(self, lock: str) -> None:
        self.lock, self.version, self.has_pod = lock, 1, True
        self.before_write: Callable[[], None] = lambda: None
        self.read: list[str] = []

    async def get(self, path: str) -> Json:
        self.read.append(path)
        if path == NODE:
            notes = {names.HAMI_LOCK: self.lock} if self.lock else {}
            version = str(self.version)
            return {
                "metadata": {
                    "name": "n", "uid": "n", "resourceVersion": version, "annotations": notes
                }
            }  # fmt: skip
        if not (self.has_pod and path.endswith("/there")):
            raise ApiError(404, "NotFound", path)
        return {"metadata": {"uid": "there"}, "spec": {}, "status": {}}

    async def send(self, method: str, path: str, body: Json, *, content_type: str) -> bytes:
        assert (method, path) == ("PATCH", NODE)
        assert content_type == "application/merge-patch+json"
        self.before_write()
        assert body["metadata"]["annotations"] == {names.HAMI_LOCK: None}
        if body["metadata"]["resourceVersion"] != str(self.version):
            raise ApiError(409, "Conflict", path)
        self.lock = ""
        return b""


async def look(api: Api, config: Config | None = None, *, goes: bool = False, **more: Any) -> Api:
    """Let a new leader look at the node as it is; ``goes``: the pod ``there`` goes afterwards."""
    engine = Engine(config or Config())
    locks = LeftLocks(api, engine, lambda: True)  # type: ignore[arg-type]
    seen = events.Seen(
        make.hami_node(name="n", cards=1, annotations={names.HAMI_LOCK: api.lock}, **more)
    )
    engine.handle(seen, 0.0)
    locks.hear(seen)
    task = asyncio.create_task(locks.run())
    await asyncio.sleep(0.02)
    assert not api.read
    locks.begin_term()
    await asyncio.sleep(0.05)
    if goes:
        # Another pod goes first: that means nothing.
        locks.hear(events.Gone("Pod", "other"))
        api.has_pod = False
        locks.hear(events.Gone("Pod", "there"))
        await asyncio.sleep(0.05)
    task.cancel()
    return api


async def test_the_lock_of_a_pod_that_is_gone_is_removed() -> None:
    assert not (await look(Api(LEFT))).lock


@pytest.mark.parametrize(
    "lock", ["2026-01-01T00:00:00Z,default,there", "2026-01-01T00:00:00Z", "what,is,this,here"]
)
async def test_what_names_no_pod_that_is_gone_stays(lock: str) -> None:
    assert (await look(Api(lock))).lock == lock


async def test_a_lock_goes_with_its_pod_that_an_earlier_process_has_bound() -> None:
    """Nobody else looks at it: no job of this process has written it."""
    lock = "2026-01-01T00:00:00Z,default,there"
    assert not (await look(Api(lock), goes=True)).lock
    assert (await look(Api(lock))).lock == lock


async def test_a_node_of_another_scheduler_keeps_its_lock() -> None:
    config = Config(hami_scheduler_nodes="scheduler=hami")
    assert (await look(Api(LEFT), config, labels={"scheduler": "hami"})).lock == LEFT
    assert not (await look(Api(LEFT), config)).lock


async def test_a_lock_that_is_written_at_the_same_time_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(left_locks, "_AGAIN_SECONDS", 0.01)
    api, new = Api(LEFT), "2026-01-01T00:00:01Z,default,gone"

    def lock_again() -> None:
        api.lock, api.version = new, api.version + 1

    api.before_write = lock_again
    assert (await look(api)).lock == new


async def test_a_removal_that_meets_another_change_of_the_node_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(left_locks, "_AGAIN_SECONDS", 0.01)
    api = Api(LEFT)

    def change_once() -> None:
        api.version += 1
        api.before_write = lambda: None

    api.before_write = change_once
    assert not (await look(api)).lock
