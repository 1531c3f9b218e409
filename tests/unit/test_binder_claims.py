"""Claims on their way to a bind: what is written is what may be by then, and whoever has to go goes at once."""

from typing import Any

import msgspec
import pytest

from scheduler.api import storage
from scheduler.api.door import events
from scheduler.api.door.decisions import Bind
from scheduler.api.storage import Given
from scheduler.devices.table import Devices
from scheduler.state.nodes import NodeTable
from scheduler.state.pools import PoolTable
from scheduler.state.volumes.store import Storage
from tests.unit.test_binder import Api, binder, pod, until

Json = dict[str, Any]
SELECTED = "volume.kubernetes.io/selected-node"


def stored(*bodies: Json) -> Storage:
    found = Storage(NodeTable(Devices(()), PoolTable()))
    for body in bodies:
        found.see(msgspec.convert(body, storage.KINDS[body["kind"]]))
    return found


def claim(uid: str = "u", *, gib: int = 1, volume: str = "", selected: str = "") -> Json:
    meta = {"name": "c", "namespace": "default", "uid": uid, "resourceVersion": "1",
            "annotations": {SELECTED: selected} if selected else {}}  # fmt: skip
    asked = {"requests": {"storage": f"{gib}Gi"}}
    spec = {"storageClassName": "local", "volumeName": volume, "resources": asked}
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def volume(**spec: Any) -> Json:
    meta = {"name": "v", "resourceVersion": "5"}
    spec = {"storageClassName": "local", "capacity": {"storage": "1Gi"}} | spec
    status = {"phase": "Bound" if "claimRef" in spec else "Available"}
    return {"kind": "PersistentVolume", "metadata": meta, "spec": spec, "status": status}


def answer(_: str, __: str) -> Json:
    return {"metadata": {"resourceVersion": "9"}}


# Before anything is written of its volumes, a pod is nominated.
NOMINATED = "PATCH", "/api/v1/namespaces/default/pods/p/status"
OTHERS = {"claimRef": {"namespace": "default", "name": "another", "uid": "x"}}


@pytest.mark.parametrize(
    ("now", "given", "why"),
    [
        ([claim(), volume(**OTHERS)], "v", 'PV "v" is not for PVC "c" any more'),
        ([claim("u2", gib=2), volume()], "v", 'PV "v" is not for PVC "c" any more'),
        ([claim(volume="w"), volume()], "v", 'PVC "c" has another volume now'),
        ([claim(volume="w")], "", 'PVC "c" has another volume now'),
        ([claim(selected="m")], "", 'PVC "c" is now provisioned for node "m"'),
    ],
)
async def test_what_others_have_decided_since_stays(now: list[Json], given: str, why: str) -> None:
    """A decision waits for a worker, and its volume may be another's by then, whose data it would be given."""
    api, one = Api(answer), pod("p")
    async with binder(api, storage=stored(*now)) as (made, reported):
        made.submit_binds([Bind(one.uid, "n", given=(Given("c", given),))], {one.uid: one})
        await until(lambda: bool(reported))
    assert reported == [events.BindFailed(one.uid, f"Conflict: binding volumes: {why}")]
    assert api.asked == [NOMINATED]


async def test_a_pod_that_waits_for_its_claims_is_taken_back_at_once() -> None:
    """Who is to have its place would wait until its volumes are made."""
    api, one = Api(answer), pod("p")
    async with binder(api, storage=stored(claim())) as (made, reported):
        made.submit_binds([Bind(one.uid, "n", given=(Given("c"),))], {one.uid: one})
        await until(lambda: made._steps.n_waiting == 1)
        assert made.withdraw_bind(one.uid, "preempted")
        assert reported == [events.BindFailed(one.uid, "preempted")]
        assert made.backlog == 0
        assert not made.withdraw_bind(one.uid, "preempted")


async def test_nor_does_it_begin_to_wait_once_it_is_taken_back() -> None:
    one = pod("p")

    def withdrawn_meanwhile(method: str, path: str) -> Json:
        assert (method, path) == NOMINATED or made.withdraw_bind(one.uid, "preempted")
        return answer(method, path)

    async with binder(Api(withdrawn_meanwhile), storage=stored(claim())) as (made, reported):
        made.submit_binds([Bind(one.uid, "n", given=(Given("c"),))], {one.uid: one})
        await until(lambda: bool(reported))
    assert reported == [events.BindFailed(one.uid, "preempted")]


async def test_the_claims_of_a_pod_that_is_gone_are_not_waited_for() -> None:
    api, one = Api(answer), pod("p")
    async with binder(api, storage=stored(claim())) as (made, reported):
        made.submit_binds([Bind(one.uid, "n", given=(Given("c"),))], {one.uid: one})
        await until(lambda: made._steps.n_waiting == 1)
        made.note_pod_gone(one.uid)
        assert reported == [events.BindFailed(one.uid, "the pod is gone", gone=True)]
        assert made._steps.n_waiting == 0
