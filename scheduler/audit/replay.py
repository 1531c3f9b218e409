"""The present pods placed again, on an empty copy of the cluster, by the product's own engine.

In order of creation, each for good, with the mix of all of them known from the start, as an operator knows it
that has run for a while. Where pods came and went the real order was another: it is one replay in one
order, not a promise. What stays where it is: pods that belong to their node (of a DaemonSet, or run by
the kubelet from a file), pods that are being deleted, and pods that could not be placed there again, as
their node is cordoned by now or they ask what Evenkeel does not place yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.placement import Mode
from scheduler.config import Config
from scheduler.cycle.policies import PolicyBook
from scheduler.cycle.schedule import Cycle
from scheduler.engine.budget import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.measure import figures as m
from scheduler.measure.figures import Figures
from scheduler.measure.typical import Typical
from scheduler.state.cluster import Cluster

_NODE_OWNERS = frozenset({"DaemonSet", "Node"})


@dataclass(frozen=True, slots=True)
class Replayed:
    """How one mode did.

    Attributes:
        mode: None is that of the configuration.
        figures: of the nodes, afterwards.
        empty_nodes: how many have none of the pods that were to be placed.
        unplaced: ``namespace/name`` of pods that found no place, in the order they were tried.
    """

    mode: Mode | None
    figures: Figures
    empty_nodes: int
    unplaced: tuple[str, ...]


def belongs_to_its_node(pod: wire.Pod) -> bool:
    """Whether no scheduler chose the pod's node."""
    meta = pod.metadata
    return names.MIRROR in (meta.annotations or {}) or any(
        owner.kind in _NODE_OWNERS for owner in meta.owner_references or ()
    )


def movable(pods: Sequence[wire.Pod], cluster: Cluster, config: Config) -> list[wire.Pod]:
    """The bound pods that can be placed again, as they would come, oldest first."""
    cycle = Cycle(cluster, PolicyBook(config))
    found = []
    for pod in pods:
        record = cluster.pods.get(pod.metadata.uid)
        if (
            record is not None
            and record.node in cluster.nodes.rows
            and not belongs_to_its_node(pod)
            and not record.deleting
            and record.template.problem is None
            and not cluster.claim_problem(record)
            and not cycle.problem_of(record)
            and not cycle.objection(record, record.node)
        ):
            found.append((record.created, record.order, pod))
    return [_unbound(pod, config) for _, _, pod in sorted(found, key=lambda one: one[:2])]


def run(
    nodes: Sequence[wire.Node],
    staying: Sequence[wire.Pod],
    moving: Sequence[wire.Pod],
    typical: Typical,
    config: Config,
    mode: Mode | None,
) -> Replayed:
    """Place ``moving`` on the nodes, on which ``staying`` are. A pod's own annotations go before the mode."""
    if mode is not None:
        # A node policy would stand in the mode's place.
        config = replace(config, placement=replace(config.placement, mode=mode, node_policy=""))
    engine = Engine(config, pace=PROMPT, is_shared=False, explains=False)
    for node in nodes:
        engine.handle(events.NodeSeen(node), 0.0)
    for pod in (*staying, *moving):
        engine.handle(events.PodSeen(pod), 0.0)
    outcome = engine.decide(0.0, Unlimited())
    cluster = engine.cluster
    return Replayed(
        mode,
        m.of_cluster(cluster, typical),
        len(cluster.nodes.rows) - len({bind.node for bind in outcome.binds}),
        tuple(cluster.pods[hold.uid].key for hold in outcome.holds),
    )


def _unbound(pod: wire.Pod, config: Config) -> wire.Pod:
    """As it would come to us, whoever placed it; none goes before an older one."""
    spec = structs.replace(
        pod.spec, node_name=None, scheduler_name=config.scheduler_name, priority=0
    )
    return structs.replace(pod, spec=spec)
