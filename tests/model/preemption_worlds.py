"""Random clusters whose nodes are full of pods of all priorities, as raw objects, and an engine that knows them."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.simulate.reading import objects
from tests.model.peer_objects import HOSTNAME, REQUIRED, ZONE
from tests.oracles.preemption import World

Json = dict[str, Any]
APPS = st.sampled_from(["a", "b", "c"])
PRIORITIES = st.sampled_from([-5, 0, 0, 1, 2, 10])


@st.composite
def nodes(draw: st.DrawFn) -> list[Json]:
    found = []
    for i in range(draw(st.integers(1, 4))):
        labels = {HOSTNAME: f"n{i}"}
        if draw(st.integers(0, 3)):
            labels[ZONE] = draw(st.sampled_from(["z1", "z2"]))
        taints = [{"key": "k", "effect": "NoSchedule"}] if draw(st.integers(0, 7)) == 0 else []
        there = {"cpu": draw(st.sampled_from([2, 4, 6])), "pods": draw(st.sampled_from([3, 10]))}
        if draw(st.booleans()):
            there["nvidia.com/gpu"] = draw(st.integers(1, 2))
        found.append(
            {
                "metadata": {"name": f"n{i}", "uid": f"n{i}", "labels": labels},
                "spec": {"taints": taints},
                "status": {"allocatable": there},
            }
        )
    # Nodes need not come in the order of their names.
    return draw(st.permutations(found))


@st.composite
def pods(draw: st.DrawFn, uid: str, *, peers: bool = True) -> Json:
    """A pod without a node; with ``peers`` it may have rules about others."""
    requests = {"cpu": draw(st.integers(0, 4))}
    if draw(st.integers(0, 3)) == 0:
        requests["nvidia.com/gpu"] = draw(st.integers(1, 2))
    container: Json = {"name": "c", "resources": {"requests": requests, "limits": requests}}
    if draw(st.integers(0, 5)) == 0:
        container["ports"] = [{"hostPort": draw(st.integers(1, 2)), "protocol": "TCP"}]
    labels = {"app": draw(APPS)} if draw(st.integers(0, 5)) else {}
    spec: Json = {"priority": draw(PRIORITIES), "containers": [container]}
    if peers and draw(st.integers(0, 2)) == 0:
        field = draw(st.sampled_from(["podAntiAffinity", "podAntiAffinity", "podAffinity"]))
        term = {
            "labelSelector": {"matchLabels": {"app": draw(APPS)}},
            "topologyKey": draw(st.sampled_from([HOSTNAME, ZONE])),
        }
        spec["affinity"] = {field: {REQUIRED: [term]}}
    if peers and draw(st.integers(0, 3)) == 0:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": draw(st.sampled_from([HOSTNAME, ZONE])),
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": draw(APPS)}},
            }
        ]
    meta = {"name": uid, "namespace": "default", "uid": uid, "labels": labels}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


@st.composite
def budgets(draw: st.DrawFn) -> list[Json]:
    return [
        {
            "metadata": {"name": f"b{i}", "namespace": draw(st.sampled_from(["default", "other"]))},
            "spec": {"selector": draw(st.sampled_from([{}, {"matchLabels": {"app": "a"}},
                {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}]))},
            "status": {
                "disruptionsAllowed": draw(st.integers(0, 2)),
                "disruptedPods": {"q0": "2026-01-01T00:00:00Z"} if draw(st.booleans()) else {},
            },
        }
        for i in range(draw(st.integers(0, 3)))
    ]  # fmt: skip


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Whoever runs may be more than fits: pods bound by others are as they are."""
    some = draw(nodes())
    there = [one["metadata"]["name"] for one in some]
    found = []
    for i in range(draw(st.integers(1, 10))):
        pod = draw(pods(f"q{i}"))
        pod["spec"]["nodeName"] = draw(st.sampled_from(there))
        pod["status"] = {"phase": "Running"}
        if second := draw(st.integers(0, 3)):
            pod["status"]["startTime"] = f"2026-01-01T00:00:{second:02}Z"
        found.append(pod)
    for i in range(draw(st.sampled_from([0, 0, 1, 2]))):
        pod = draw(pods(f"nominated{i}"))
        pod["status"]["nominatedNodeName"] = draw(st.sampled_from(there))
        found.append(pod)
    return World(some, found, draw(budgets()))


def engine_of(world: World, config: Config | None = None) -> Engine:
    """An engine that knows a world, of whose waiting pods it places none."""
    engine = Engine(config or Config(), pace=PROMPT, is_shared=False)
    for node in world.nodes:
        engine.handle(events.Seen(msgspec.convert(node, wire.Node)), 0.0)
    for budget in world.budgets:
        engine.handle(events.Seen(objects.read_budget(budget)), 0.0)
    for pod in world.pods:
        see(engine, pod, scheduler="other")
    engine.decide(0.0, Unlimited(pods=0))
    return engine


def see(engine: Engine, pod: Json, at: float = 0.0, scheduler: str = names.SCHEDULER) -> None:
    body = pod | {"spec": pod["spec"] | {"schedulerName": scheduler}}
    engine.handle(events.Seen(msgspec.convert(body, wire.Pod)), at)
