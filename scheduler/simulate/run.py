"""What would happen: bound pods are charged, pending pods are scheduled in queue order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.api.door import events
from scheduler.api.door.decisions import Bind, Hold
from scheduler.config import Config
from scheduler.cycle import explain, verdicts
from scheduler.devices import table as devices
from scheduler.engine.budget import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.simulate import inventory
from scheduler.simulate.inventory import Inventory
from scheduler.state.pods import PodRecord

Json = dict[str, Any]


def schedule(
    objects: Sequence[Mapping[str, Any]],
    *,
    config: Config | None = None,
    only_ours: bool = False,
    with_nodes: bool = False,
    now: int = 0,
) -> Json:
    """Schedule the pending pods among ``objects`` on the nodes among them.

    Args:
        objects: Kubernetes objects: Nodes, Pods, and where they matter Namespaces, BalancePolicies
            and PriorityClasses; other kinds are passed over.
        config: settings, the defaults when None.
        only_ours: schedule only pods that name our scheduler; else every pending pod.
        with_nodes: report every node's feasibility, reasons and scores for every pod.
        now: unix time written into the annotations of pods with cards.

    Returns:
        ``{"pods": [...], "summary": {...}}`` as documented for ``evenkeel simulate -o json``.

    Raises:
        InputProblem: an object is malformed; names the object, the field and what is allowed.
    """
    simulation = _Simulation(config or Config(), inventory.read(objects), only_ours=only_ours)
    return simulation.run(with_nodes, now)


class _Simulation:
    def __init__(self, config: Config, inventory: Inventory, *, only_ours: bool) -> None:
        self._engine = Engine(config, pace=PROMPT, is_shared=False)
        self._inventory = inventory
        for body in inventory.policies:
            self._handle(events.PolicySeen(body))
        for namespace in inventory.namespaces:
            meta = namespace.metadata
            self._handle(events.NamespaceSeen(meta.name, meta.labels or {}))
        for group in inventory.groups:
            self._handle(group)
        for node in inventory.nodes:
            self._handle(events.NodeSeen(node))
        for pod in inventory.pods:
            is_ours = pod.spec.scheduler_name in config.scheduler_names
            if not (only_ours or is_ours or pod.spec.node_name):
                pod.spec.scheduler_name = config.scheduler_name
            self._handle(events.PodSeen(pod))
        # All that is dear to compile is compiled by now.
        self._engine.decide(0.0, Unlimited(pods=0))

    def run(self, with_nodes: bool, now: int) -> Json:
        self._refuse_malformed()
        rows: dict[str, Json] = {}
        at = 0.0
        while at < math.inf:
            self._decide(at, with_nodes, now, rows)
            at = max(at, self._engine.due(at))
        placed = sum(row["node"] is not None for row in rows.values())
        cluster = self._engine.cluster
        gated = [p for p in cluster.pods.values() if p.ours and p.gated and not p.node]
        for pod in gated:
            message = "Scheduling is blocked due to non-empty scheduling gates"
            rows[pod.uid] = _row(pod, message=message)
        return {
            "pods": list(rows.values()),
            "summary": {
                "nodes": len(cluster.nodes.rows),
                "pods": len(rows),
                "scheduled": placed,
                "pending": len(rows) - placed,
            },
        }

    def _handle(self, event: events.Event) -> None:
        self._engine.handle(event, 0.0)

    def _refuse_malformed(self) -> None:
        """A mistake in a pending pod is a mistake in the files; a field that is not supported is none."""
        cycle = self._engine.cycle
        for pod in self._engine.pending.in_order():
            problem = cycle.problem_of(pod)
            if problem and not pod.template.unsupported:
                raise self._inventory.problem_with(pod.uid, problem)

    def _decide(self, at: float, with_nodes: bool, now: int, rows: dict[str, Json]) -> None:
        """The next pod, if there is one to decide for at this time."""
        engine = self._engine
        pod = engine.pending.peek(at)
        nodes = None
        if pod is not None and with_nodes:
            engine.cycle.learn()
            nodes = verdicts.all_nodes(engine.cluster, engine.cycle, pod)
        outcome = engine.decide(at, Unlimited(pods=1))
        pods = engine.cluster.pods
        for bind in outcome.binds:
            rows[bind.uid] = _bound(pods[bind.uid], bind, now)
            self._handle(events.BindDone(bind.uid))
        for hold in outcome.holds:
            rows[hold.uid] = _held(pods[hold.uid], hold)
        if pod is not None and nodes is not None:
            rows[pod.uid]["nodes"] = nodes


def _row(pod: PodRecord, *, message: str) -> Json:
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "node": None,
        "annotations": {},
        "devices": [],
        "message": message,
        "victims": [],
    }


def _held(pod: PodRecord, hold: Hold) -> Json:
    return _row(pod, message=explain.saying(hold).message)


def _bound(pod: PodRecord, bind: Bind, now: int) -> Json:
    row = _row(pod, message=f"Successfully assigned {pod.key} to {bind.node}")
    row["node"] = bind.node
    if bind.slots:
        row["annotations"] = (
            devices.cards_of(bind.driver).answer(bind.node, bind.slots, now).annotations
        )
        row["devices"] = [
            {"id": use.uuid, "memoryMiB": use.mem_mib, "cores": use.cores}
            for slot in bind.slots
            for use in slot
        ]
    return row
