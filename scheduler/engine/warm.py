"""Run every kernel once, so that the first pod does not wait for the compiler."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from importlib import import_module

from msgspec import structs

from scheduler import kernels
from scheduler.api import names, wire
from scheduler.api.cards import Card
from scheduler.api.door import events
from scheduler.api.placement import Mode
from scheduler.config import Config
from scheduler.cycle import placed, verdicts
from scheduler.cycle.advice import losses
from scheduler.cycle.advice.asking import Asking
from scheduler.devices import objects
from scheduler.engine.budget import Unlimited
from scheduler.engine.engine import Engine
from scheduler.kernels.modes import score
from scheduler.modes import places
from scheduler.modes.fragmentation import FragmentGauge
from scheduler.schema import shared

# Nodes that a pod of higher priority asks all at once.
_FULL = 12
# A label that the pods of ``_explain`` prefer.
_LABEL = "toy"
_PREFERS = wire.PreferredNodeTerm(1, wire.NodeTerm([wire.Expression(_LABEL, "Exists")]))
_SHUNS = wire.PodTerm(label_selector=wire.LabelSelector({_LABEL: ""}), topology_key=_LABEL)


def is_due() -> bool:
    """Whether no kernel has been compiled yet for this version, and the cache can keep them."""
    return kernels.is_cache_empty()


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
    # A pod may be seen before its node, and it may leave.
    early = _see(engine, share, "late")
    late = structs.replace(card, id="late")
    engine.handle(events.NodeSeen(objects.node("late", {"cpu": 2, "pods": 20}, [late])), 0.0)
    engine.handle(events.PodGone(early), 0.0)
    _explain(engine, share, card)
    score.on_curve(shared.curve(config.placement.kube.volume_binding.shape), 50)


def _explain(engine: Engine, container: wire.Container, card: Card) -> None:
    """Ask what explains a placement, which looks at one node at a time, in each way that has kernels of its own."""
    node = objects.node("free", {"cpu": 20, "pods": 20}, [structs.replace(card, id="free")])
    engine.handle(events.NodeSeen(_labelled(node)), 0.0)
    # A pod that comes is compared with the rules of pods on nodes.
    _see(engine, wire.Container("toy"), "free", notes={})
    cluster, cycle = engine.cluster, engine.cycle
    row = cluster.nodes.row_of("free")
    by_mode: dict[str, str] = {names.MODE: Mode.KUBE_SCHEDULER}
    for wish in ({}, by_mode, objects.with_node_policy("binpack")):
        record = cluster.pods[_see(engine, container, None, notes=wish)]
        verdicts.all_nodes(cluster, cycle, record)
        shape = cycle.shape_of(record)
        if shape is not None:
            placed.cards_by(shape)
            losses.of(Asking(cluster, cycle), shape, row)


def _labelled(node: wire.Node) -> wire.Node:
    """With a label that the pods here prefer: it tells nodes apart."""
    meta = structs.replace(node.metadata, labels={_LABEL: ""})
    return structs.replace(node, metadata=meta)


def _see(
    engine: Engine,
    container: wire.Container,
    node_name: str | None,
    priority: int = 0,
    notes: dict[str, str] | None = None,
) -> str:
    """A pod comes; its uid."""
    uid = str(len(engine.cluster.pods))
    spec = wire.PodSpec(
        scheduler_name=engine.config.scheduler_name,
        containers=[container],
        node_name=node_name,
        priority=priority,
    )
    if notes is not None:
        spec.affinity = wire.Affinity(
            wire.NodeAffinity(None, [_PREFERS]), pod_anti_affinity=wire.PodAffinity([_SHUNS])
        )
    meta = wire.Meta(name=f"toy-{uid}", namespace="toy", uid=uid, annotations=notes)
    engine.handle(events.PodSeen(wire.Pod(meta, spec)), 0.0)
    return uid


class Count:
    """How many kernels are compiled by now, of how many; a start does not need every one of them.

    Attributes:
        kernels: all there are, by their identity.
    """

    def __init__(self) -> None:
        modules = pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}.")
        found = [one for module in modules for one in vars(import_module(module.name)).values()]
        # By identity: a kernel has its name in every module that calls it.
        self.kernels = {
            id(one): one
            for one in found
            if hasattr(one, "signatures") and not isinstance(one, type)
        }

    def __len__(self) -> int:
        return len(self.kernels)

    def compiled(self) -> int:
        """Those that are, called or part of one that was."""
        return sum(bool(one.signatures) for one in self.kernels.values())
