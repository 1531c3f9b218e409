"""Who waits for storage is woken by what helps, whatever it is."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import storage, wire
from scheduler.api.door import events
from tests import slices
from tests.model import volume_worlds as worlds
from tests.model.waiting_worlds import Waiting
from tests.oracles import volumes as twin

Json = dict[str, Any]
_ABOUT = ["node", "pod runs", "pod leaves", "pod waits", "pod waits", "storage", "storage"]


def something_happens(world: Waiting, data: st.DataObject, n: int) -> str:
    """A node, a pod or an object of storage comes, goes or is another; what it was."""
    about = data.draw(st.sampled_from(_ABOUT))
    match about:
        case "node":
            name = data.draw(st.sampled_from(worlds.NODES))
            world.see_node(msgspec.convert(data.draw(worlds.nodes(name)), wire.Node))
        case "pod runs":
            body = data.draw(worlds.pods(f"r{n}", data.draw(st.sampled_from(worlds.NODES))))
            world.see_running(msgspec.convert(body, wire.Pod))
        case "pod leaves" if world.running:
            uid = data.draw(st.sampled_from(sorted(world.running)))
            del world.running[uid]
            world.engine.handle(events.Gone("Pod", uid), world.now)
        case "pod waits":
            # Claims that are made for a pod are of one that is called p.
            name = data.draw(st.sampled_from(["p", f"w{n}"]))
            if name not in world.waiting and name not in world.running:
                world.see_waiting(msgspec.convert(data.draw(worlds.pods(name)), wire.Pod))
        case "storage":
            kind = data.draw(st.sampled_from(sorted(worlds.MAKERS)))
            maker, names = worlds.MAKERS[kind]
            see_or_lose(world, data.draw(maker(data.draw(st.sampled_from(names)))), data)
            about = f"storage: {kind}"
    return about


def see_or_lose(world: Waiting, body: Json, data: st.DataObject) -> None:
    """An object of storage is there, or, more seldom, is no more."""
    meta = body["metadata"]
    if data.draw(st.sampled_from([False, False, True])):
        key = "/".join(filter(None, (meta.get("namespace"), meta["name"])))
        gone = events.Gone(body["kind"], key)
        world.engine.handle(gone, world.now)
    else:
        world.engine.handle(seen(body), world.now)


def seen(body: Json) -> events.Event:
    """An object is there, or another than before."""
    if "kind" in body:
        return events.Seen(msgspec.convert(body, storage.KINDS[body["kind"]]))
    if "containers" in body["spec"]:
        return events.Seen(msgspec.convert(body, wire.Pod))
    return events.Seen(msgspec.convert(body, wire.Node))


def node(name: str = "n0", **labels: str) -> Json:
    return {"metadata": {"name": name, "uid": name, "labels": labels}, "spec": {},
            "status": {"allocatable": {"cpu": 9, "pods": 99}}}  # fmt: skip


def pod(name: str, on: str = "", **source: Json) -> Json:
    spec: Json = {"schedulerName": "evenkeel", "containers": [{"name": "c"}]}
    spec |= {"volumes": [{"name": "v"} | source]} | ({"nodeName": on} if on else {})
    return {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}


def with_claim(name: str, claim: str, on: str = "") -> Json:
    return pod(name, on, persistentVolumeClaim={"claimName": claim})


def claim(name: str, of_class: str, volume: str = "", mode: str = "ReadWriteOnce") -> Json:
    spec = {"accessModes": [mode], "storageClassName": of_class,
            "resources": {"requests": {"storage": "1Gi"}}}  # fmt: skip
    meta = {"name": name, "namespace": "default", "uid": name}
    if volume:
        spec["volumeName"], meta["annotations"] = volume, {twin.BOUND: "yes"}  # type: ignore[assignment]
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def volume(name: str = "v", labels: Json | None = None, **spec: Any) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local",
            "capacity": {"storage": "1Gi"}, **spec}  # fmt: skip
    meta = {"name": name, "labels": labels or {}}
    return {"kind": "PersistentVolume", "metadata": meta, "spec": spec,
            "status": {"phase": "Available"}}  # fmt: skip


def of_class(name: str, provisioner: str) -> Json:
    return {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer"}  # fmt: skip


def csi_node(count: int) -> Json:
    drivers = [{"name": "a.csi", "allocatable": {"count": count}}]
    return {"kind": "CSINode", "metadata": {"name": "n0"}, "spec": {"drivers": drivers}}


DRIVER = {"kind": "CSIDriver", "metadata": {"name": "a.csi"}, "spec": {"storageCapacity": True}}
MADE, LOCAL = of_class("made", "a.csi"), of_class("local", "kubernetes.io/no-provisioner")
ON_RACK = {
    "required": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["1"]}]}
        ]
    }
}
# There are these; the last one waits; this happens, and it waits no longer.
FULL = [node(), csi_node(1), MADE, claim("c", "made"), claim("d", "made"),
        with_claim("r", "c", on="n0"), with_claim("w", "d")]  # fmt: skip
CASES: dict[str, tuple[list[Json], events.Event]] = {
    "its class is there": ([node(), claim("c", "made"), with_claim("w", "c")], seen(MADE)),
    "a volume is used no more": (FULL, events.Gone("Pod", "r")),
    "a node takes more volumes": (FULL, seen(csi_node(2))),
    "its volume comes to a node for another": (FULL, seen(with_claim("s", "d", on="n0"))),
    "a node is where its volume can be used": (
        [node(), volume(nodeAffinity=ON_RACK), claim("c", "local", "v"), with_claim("w", "c")],
        seen(node(rack="1")),
    ),
    "its driver, which says where there is room, is gone": (
        [node(), MADE, DRIVER, claim("c", "made"), with_claim("w", "c")],
        events.Gone("CSIDriver", "a.csi"),
    ),
    "nothing says any more how many volumes a node takes": (
        FULL, events.Gone("CSINode", "n0")
    ),
    "there is a volume": ([node(), LOCAL, claim("c", "local"), with_claim("w", "c")], seen(volume())),
    "a node is in the zone of its volume": (
        [node(**{worlds.ZONE: "y"}), volume(labels={worlds.ZONE: "x"}), claim("c", "local", "v"),
         with_claim("w", "c")],
        seen(node(**{worlds.ZONE: "x"})),
    ),
    "a disk is used no more": (
        [node(), pod("r", "n0", gcePersistentDisk={"pdName": "d"}),
         pod("w", gcePersistentDisk={"pdName": "d"})],
        events.Gone("Pod", "r"),
    ),
    "a claim for one pod is used no more on a node that is full": (
        [node("n0") | {"status": {"allocatable": {"cpu": 9, "pods": 0}}}, node("n1"), MADE,
         claim("c", "made", mode="ReadWriteOncePod"), with_claim("r", "c", on="n0"),
         with_claim("w", "c")],
        events.Gone("Pod", "r"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_pod_that_waits_for_storage_is_tried_again_when(case: str) -> None:
    before, happens = CASES[case]
    world = Waiting(random.Random(0), n_nodes=0)
    waiting = msgspec.convert(before[-1], wire.Pod)
    for body in before[:-1]:
        world.engine.handle(seen(body), 0.0)
    world.see_waiting(waiting)
    world.settle()
    assert [one.name for one in world.parked()] == ["w"]
    world.engine.handle(happens, 1.0)
    world.now = 1.0
    world.settle()
    assert not world.parked()
    assert world.running


@given(worlds.worlds(), st.data())
@settings(max_examples=slices.count_examples(100), deadline=None)
def test_no_pod_with_storage_that_fits_stays_parked_whatever_happens(
    start: Any, data: st.DataObject
) -> None:
    world = Waiting(random.Random(0), n_nodes=0, explains=False)
    for node in start.nodes:
        world.see_node(msgspec.convert(node, wire.Node))
    for body in start.storage:
        world.engine.handle(seen(body), world.now)
    for body in start.pods:
        world.see_running(msgspec.convert(body, wire.Pod))
    for n in range(12):
        world.now += 0.5
        happened = something_happens(world, data, n)
        world.settle()
        parked = world.parked()
        forgotten = [pod.name for pod in parked if world.engine._cycle.could_place(pod)]
        assert not forgotten, happened
