"""Run every kernel once, so that the first pod does not wait for the compiler."""

from __future__ import annotations

import msgspec

from scheduler.api import names, wire
from scheduler.api.hami import Card
from scheduler.config import Config
from scheduler.cycle.policies import PolicyBook
from scheduler.cycle.schedule import Cycle
from scheduler.modes.fragmentation import FragmentGauge
from scheduler.state.cluster import Cluster


def warm(config: Config) -> None:
    """Place a plain pod and a GPU pod on a toy cluster, and fail to place a third."""
    cluster = Cluster(config.scheduler_name, config.hami_node_label, config.pod_limits)
    cycle = Cycle(cluster, PolicyBook(config.placement), config)
    card = Card(id="toy", count=2, devmem=1000, devcore=100, type="toy", health=True)
    register = msgspec.json.encode([card]).decode()
    allocatable: wire.Quantities = {"cpu": 2, "memory": "1Gi", "pods": 9, names.GPU: 2}
    cluster.see_node(
        wire.Node(
            wire.Meta(name="toy", uid="toy", annotations={names.HAMI_REGISTER: register}),
            status=wire.NodeStatus(allocatable),
        )
    )
    for i, limits in enumerate(({}, {names.GPU: 1}, {names.GPU: 1})):
        container = wire.Container("toy", wire.Resources(requests=limits, limits=limits))  # type: ignore[arg-type]
        pod = wire.Pod(
            wire.Meta(name=f"toy-{i}", namespace="toy", uid=str(i)),
            wire.PodSpec(scheduler_name=config.scheduler_name, containers=[container]),
        )
        record = cluster.see_pod(pod)
        if record is not None:
            cycle.learn()
            cycle.schedule([record])
    FragmentGauge(cluster, cluster.demand.counts()).read()
