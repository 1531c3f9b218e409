"""Who waits for storage is woken by what helps, whatever it is."""

import random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import storage, wire
from scheduler.api.door import events
from tests.model import volume_worlds as worlds
from tests.model.waiting_worlds import Waiting
from tests.unit import compiled

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
            world.engine.handle(events.PodGone(uid), world.now)
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
        gone = events.StorageGone(body["kind"], meta.get("namespace", ""), meta["name"])
        world.engine.handle(gone, world.now)
    else:
        found = msgspec.convert(body, storage.KINDS[body["kind"]])
        world.engine.handle(events.StorageSeen(found), world.now)


@given(worlds.worlds(), st.data())
@settings(max_examples=compiled.examples(100), deadline=None)
def test_no_pod_with_storage_that_fits_stays_parked_whatever_happens(
    start: Any, data: st.DataObject
) -> None:
    world = Waiting(random.Random(0), n_nodes=0, explains=False)
    for node in start.nodes:
        world.see_node(msgspec.convert(node, wire.Node))
    for body in start.storage:
        world.engine.handle(
            events.StorageSeen(msgspec.convert(body, storage.KINDS[body["kind"]])), world.now
        )
    for body in start.pods:
        world.see_running(msgspec.convert(body, wire.Pod))
    for n in range(12):
        world.now += 0.5
        happened = something_happens(world, data, n)
        world.settle()
        parked = world.parked()
        forgotten = [pod.name for pod in parked if world.engine.cycle.could_place(pod)]
        assert not forgotten, happened
