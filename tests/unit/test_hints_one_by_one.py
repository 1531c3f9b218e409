"""Whatever ends a refusal wakes who waits for it: one case for each."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from scheduler.api import names, wire
from scheduler.api.door import events
from tests import make
from tests.model import peer_objects as objects
from tests.model.waiting_worlds import Waiting

Event = events.Event
_Thing = wire.Node | wire.Pod


def node(name: str = "n", **figures: Any) -> wire.Node:
    usual: dict[str, Any] = {"cpu": 4, "labels": {"zone": "a"}}
    return make.node(name=name, **usual | figures)


def seen(thing: _Thing) -> Event:
    return events.Seen(thing)


def of_others(name: str = "r", on: str = "n", **figures: Any) -> wire.Pod:
    """A pod that another scheduler has placed."""
    return make.pod(name=name, uid=name, node=on, scheduler_name="other", **figures)


def promised(on: str) -> wire.Pod:
    """A pod of another scheduler that is to have all CPU of a node once it asks as much."""
    pod = make.pod(name="r", uid="r", scheduler_name="other", priority=9, cpu=4)
    pod.status.nominated_node_name = on
    return pod


def waiting(**figures: Any) -> wire.Pod:
    return make.pod(name="w", uid="w", **figures)


def term(app: str, key: str = "zone") -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def far(app: str) -> dict[str, Any]:
    return {"affinity": objects.affinity("podAntiAffinity", term(app))}


def near(app: str) -> dict[str, Any]:
    return {"affinity": objects.affinity("podAffinity", term(app))}


def even(app: str) -> dict[str, Any]:
    rule = term(app) | {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [rule]}


def required(**requirement: Any) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    return {"affinity": {"nodeAffinity": {objects.REQUIRED: terms}}}


def gone(uid: str = "r") -> Event:
    return events.Gone("Pod", uid)


A, LABELLED = {"app": "a"}, {"zone": "a", "disk": "ssd"}
# A pod of zone a more than of zone b, where nothing has room.
UNEVEN: list[_Thing] = [
    node(),
    node("full", cpu=1, labels={"zone": "b"}),
    of_others("f", "full", cpu=1),
    of_others(labels=A),
]
HOST_PORT: dict[str, Any] = {"host_ports": [80]}
# A slice of a card that is as good as taken by this pod.
SLICE: dict[str, Any] = {"gpu": 1, "gpumem": 9000, "gpucores": 10}
ON_CARD = {names.HAMI_NODE: "n", names.HAMI_ALLOCATED: "n-GPU-0,NVIDIA,9000,10:;"}
# There are these; one waits, and this happens.
CASES: dict[str, tuple[Sequence[_Thing], wire.Pod, Event]] = {
    "a node comes": ([], waiting(), seen(node())),
    "a node has more": ([node()], waiting(cpu=5), seen(node(cpu=5))),
    "a node has a resource": (
        [node()],
        waiting(requests={"example.com/x": 1}),
        seen(node(allocatable={"example.com/x": 1})),
    ),
    "a pod leaves its room": ([node(), of_others(cpu=3)], waiting(cpu=2), gone()),
    "a pod leaves its place": ([node(pods=1), of_others()], waiting(), gone()),
    "a pod leaves its port": (
        [node(), of_others(**HOST_PORT)],
        waiting(**HOST_PORT),
        gone(),
    ),
    "a pod holds less": (
        [node(), of_others(cpu=3)],
        waiting(cpu=2),
        seen(of_others(cpu=1)),
    ),
    "a node has the label": (
        [node()],
        waiting(node_selector={"disk": "ssd"}),
        seen(node(labels=LABELLED)),
    ),
    "a node has any value of a label": (
        [node()],
        waiting(spec=required(key="disk", operator="Exists")),
        seen(node(labels=LABELLED)),
    ),
    "a node has a label no more": (
        [node(labels=LABELLED)],
        waiting(spec=required(key="disk", operator="NotIn", values=["ssd"])),
        seen(node()),
    ),
    "a node loses its taint": ([node(taints=[("k", "", "NoSchedule")])], waiting(), seen(node())),
    "a node is uncordoned": ([node(unschedulable=True)], waiting(), seen(node())),
    "a node declares a feature": (
        [node()],
        waiting(spec={"hostNetwork": True, "hostUsers": False}),
        seen(_with_feature := node()),
    ),
    "a node is mended": ([node(allocatable={"memory": "oops"})], waiting(), seen(node())),
    "one comes that it wants near": (
        [node()],
        waiting(spec=near("a")),
        seen(of_others(labels=A)),
    ),
    "one is another that it wants near": (
        [node(), of_others()],
        waiting(spec=near("a")),
        seen(of_others(labels=A)),
    ),
    "a node is where one is that it wants near": (
        [node(taints=[("k", "", "NoSchedule")]), of_others(labels=A), node("m", labels={"zone": "b"})],
        waiting(spec=near("a")),
        seen(node("m")),
    ),
    "one leaves that it wants far": ([node(), of_others(labels=A)], waiting(spec=far("a")), gone()),
    "one leaves that wants it far": (
        [node(), of_others(spec=far("a"))],
        waiting(labels=A),
        gone(),
    ),
    "a node leaves the zone of one that it wants far": (
        [node(taints=[("k", "", "NoSchedule")]), of_others(labels=A), node("m")],
        waiting(spec=far("a")),
        seen(node("m", labels={"zone": "b"})),
    ),
    "one leaves where there are more": (UNEVEN, waiting(cpu=1, labels=A, spec=even("a")), gone()),
    "one comes where there are fewer": (
        UNEVEN,
        waiting(cpu=1, labels=A, spec=even("a")),
        seen(of_others("s", "full", labels=A)),
    ),
    "a domain that has none goes": (
        UNEVEN,
        waiting(cpu=1, labels=A, spec=even("a")),
        events.Gone("Node", "full"),
    ),
    "a pod leaves its card": (
        [make.hami_node(name="n", cards=1), of_others(annotations=ON_CARD, **SLICE)],
        waiting(**SLICE),
        gone(),
    ),
    "a card is open again": (
        [make.hami_node(name="n", cards=1, cordoned=["n-GPU-0"])],
        waiting(**SLICE),
        seen(make.hami_node(name="n", cards=1)),
    ),
    "a promise is kept no more": ([node(), promised("n")], waiting(cpu=1), gone()),
    "a promise is made elsewhere": (
        [node(), node("m", unschedulable=True), promised("n")],
        waiting(cpu=1),
        seen(promised("m")),
    ),
    "a node has more than was promised": (
        [node(), promised("n")],
        waiting(cpu=1),
        seen(node(cpu=5)),
    ),
}  # fmt: skip
_with_feature.status.declared_features = ["UserNamespacesHostNetworkSupport"]


@pytest.mark.parametrize("case", CASES)
def test_a_pod_is_tried_again_when(case: str) -> None:
    before, pod, happens = CASES[case]
    world = Waiting(random.Random(0), n_nodes=0)
    for thing in before:
        world.engine.handle(seen(thing), 0.0)
    world.see_waiting(pod)
    world.settle()
    assert [one.name for one in world.parked()] == ["w"]
    world.now = 1.0
    world.engine.handle(happens, world.now)
    world.settle()
    assert "w" in world.running
    assert not world.parked()
