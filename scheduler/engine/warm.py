"""Run every kernel once, so that the first pod does not wait for the compiler."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from importlib import import_module

from msgspec import structs

from scheduler import kernels
from scheduler.api import wire
from scheduler.api.cards import Card
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.devices import objects
from scheduler.engine.budget import Unlimited
from scheduler.engine.engine import Engine
from scheduler.modes import places
from scheduler.modes.fragmentation import FragmentGauge

# Nodes that a pod of higher priority asks all at once.
_FULL = 12


def warm(config: Config) -> None:
    """On a toy cluster place plain pods and a GPU pod, fail to place another, and see a bound one and one evicted."""
    config = replace(config, preemption=True)
    engine = Engine(config)
    card = Card(id="toy", index=0, sharers=2, mib=1000, cores=100, model="toy")
    node = objects.node("toy", {"cpu": 2, "memory": "1Gi", "pods": 20}, [card])
    engine.handle(events.NodeSeen(node), 0.0)
    whole = objects.limits(cards=1)
    plain = wire.Container("toy")
    share = wire.Container("toy", wire.Resources(requests=whole, limits=whole))
    # What is counted in domains is judged by a kernel of its own.
    waits = wire.Container("toy", share.resources, ports=[wire.Port(host_port=80)])
    # A kind that comes once is placed without a board, a run of like pods with one.
    for container, n, node_name in (
        (plain, 1, None),
        (share, 1, None),
        (waits, 1, None),
        (share, 1, "toy"),
        (plain, 9, None),
    ):
        for _ in range(n):
            _see(engine, container, node_name)
        engine.decide(0.0, Unlimited())
    # More nodes than are asked one by one are full; who comes second yields to the first.
    for i in range(_FULL):
        full = objects.node(
            f"toy-{i}", {"cpu": 2, "pods": 20}, [structs.replace(card, id=f"toy-{i}")]
        )
        engine.handle(events.NodeSeen(full), 0.0)
        _see(engine, share, f"toy-{i}")
    for _ in range(2):
        _see(engine, share, None, priority=1)
        engine.decide(0.0, Unlimited())
    # Who waits is judged by a kernel of its own.
    for record in list(engine.cluster.pods.values()):
        engine.cycle.why_not(record)
    # Of so many pods on a node without devices a filling of it is learnt.
    engine.handle(events.NodeSeen(objects.node("bare", {"cpu": 2, "pods": 20}, [])), 0.0)
    small = wire.Container("toy", wire.Resources(requests={"cpu": "10m"}))
    for _ in range(places.ENOUGH):
        _see(engine, small, "bare")
    engine.decide(0.0, Unlimited())
    FragmentGauge(engine.cluster, engine.cluster.demand.counts()).read()


def _see(
    engine: Engine, container: wire.Container, node_name: str | None, priority: int = 0
) -> None:
    uid = str(len(engine.cluster.pods))
    spec = wire.PodSpec(
        scheduler_name=engine.config.scheduler_name,
        containers=[container],
        node_name=node_name,
        priority=priority,
    )
    pod = wire.Pod(wire.Meta(name=f"toy-{uid}", namespace="toy", uid=uid), spec)
    engine.handle(events.PodSeen(pod), 0.0)


class Count:
    """How many kernels are compiled by now, of how many; a start does not need every one of them."""

    def __init__(self) -> None:
        modules = pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}.")
        found = [one for module in modules for one in vars(import_module(module.name)).values()]
        # By identity: a kernel has its name in every module that calls it.
        self._kernels = {
            id(one): one
            for one in found
            if hasattr(one, "signatures") and not isinstance(one, type)
        }

    def __len__(self) -> int:
        return len(self._kernels)

    def compiled(self) -> int:
        """Those that are, called or part of one that was."""
        return sum(bool(one.signatures) for one in self._kernels.values())
