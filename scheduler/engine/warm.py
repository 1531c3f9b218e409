"""Run every kernel once, so that the first pod does not wait for the compiler."""

from __future__ import annotations

import msgspec

from scheduler.api import events, names, wire
from scheduler.api.hami import Card
from scheduler.config import Config
from scheduler.engine.budget import Unlimited
from scheduler.engine.engine import Engine
from scheduler.modes.fragmentation import FragmentGauge

# Of the toy pods one fits nowhere, and the last has a node already.
_WAITS, _BOUND = 2, 3


def warm(config: Config) -> None:
    """On a toy cluster place a plain pod and a GPU pod, fail to place a third, and see a bound one."""
    engine = Engine(config)
    card = Card(id="toy", count=2, devmem=1000, devcore=100, type="toy", health=True)
    register = msgspec.json.encode([card]).decode()
    allocatable: wire.Quantities = {"cpu": 2, "memory": "1Gi", "pods": 9, names.GPU: 2}
    node = wire.Node(
        wire.Meta(name="toy", uid="toy", annotations={names.HAMI_REGISTER: register}),
        status=wire.NodeStatus(allocatable),
    )
    engine.handle(events.NodeSeen(node), 0.0)
    for i, limits in enumerate(({}, {names.GPU: 1}, {names.GPU: 1}, {names.GPU: 1})):
        container = wire.Container("toy", wire.Resources(requests=limits, limits=limits))  # type: ignore[arg-type]
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
