"""Run every kernel once, so that the first pod does not wait for the compiler."""

from __future__ import annotations

from scheduler.api import events, wire
from scheduler.api.cards import Card
from scheduler.config import Config
from scheduler.devices import objects
from scheduler.engine.budget import Unlimited
from scheduler.engine.engine import Engine
from scheduler.modes.fragmentation import FragmentGauge

# Of the toy pods one fits nowhere, and the last has a node already.
_WAITS, _BOUND = 2, 3


def warm(config: Config) -> None:
    """On a toy cluster place a plain pod and a GPU pod, fail to place a third, and see a bound one."""
    engine = Engine(config)
    card = Card(id="toy", index=0, sharers=2, mib=1000, cores=100, model="toy")
    node = objects.node("toy", {"cpu": 2, "memory": "1Gi", "pods": 9}, [card])
    engine.handle(events.NodeSeen(node), 0.0)
    for i, limits in enumerate(({}, *[objects.limits(cards=1)] * 3)):
        container = wire.Container("toy", wire.Resources(requests=limits, limits=limits))
        pod = wire.Pod(
            wire.Meta(name=f"toy-{i}", namespace="toy", uid=str(i)),
            wire.PodSpec(scheduler_name=config.scheduler_name, containers=[container]),
        )
        if i == _WAITS:
            # What is counted in domains is judged by a kernel of its own.
            container.ports = [wire.Port(host_port=80)]
        if i == _BOUND:
            pod.spec.node_name = "toy"
        engine.handle(events.PodSeen(pod), 0.0)
        engine.decide(0.0, Unlimited())
    # Who waits is judged by a kernel of its own.
    for record in list(engine.cluster.pods.values()):
        engine.cycle.why_not(record)
    FragmentGauge(engine.cluster, engine.cluster.demand.counts()).read()
