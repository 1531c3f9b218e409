"""What would happen: bound pods are charged, pending pods are scheduled in queue order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.api import hami, requests, wire
from scheduler.api.decisions import Bind, Hold
from scheduler.config import Config
from scheduler.cycle import explain, policies, verdicts
from scheduler.cycle.policies import PolicyBook
from scheduler.cycle.schedule import Cycle, is_waiting
from scheduler.errors import BadInput
from scheduler.simulate import objects as manifests
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

Json = dict[str, Any]


class InputProblem(BadInput):
    """A BadInput that knows which object it is about.

    Attributes:
        position: index of the object in the list that was given.
        name: ``Kind namespace/name``.
    """

    def __init__(self, position: int, name: str, error: BadInput) -> None:
        super().__init__(error.field, error.problem)
        self.position, self.name = position, name

    def __str__(self) -> str:
        return f"{self.name}: {self.field}: {self.problem}"


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
        now: unix time written into HAMi's annotations.

    Returns:
        ``{"pods": [...], "summary": {...}}`` as documented for ``evenkeel simulate -o json``.

    Raises:
        InputProblem: an object is malformed; names the object, the field and what is allowed.
    """
    return _Simulation(config or Config(), only_ours=only_ours).run(objects, with_nodes, now)


class _Simulation:
    def __init__(self, config: Config, *, only_ours: bool) -> None:
        self._config, self._only_ours = config, only_ours
        self._cluster = Cluster(config.scheduler_name, config.hami_node_label, config.pod_limits)
        self._book = PolicyBook(config.placement)
        self._cycle = Cycle(self._cluster, self._book, config)

    def run(self, objects: Sequence[Mapping[str, Any]], with_nodes: bool, now: int) -> Json:
        priorities: dict[str, int] = {}
        for position, body in enumerate(objects):
            try:
                priorities |= manifests.priority_class(body)
            except BadInput as error:
                raise InputProblem(position, name_of(body), error) from error
        positions: dict[str, int] = {}
        for position, body in enumerate(objects):
            try:
                self._see(body, priorities, position, positions)
            except BadInput as error:
                raise InputProblem(position, name_of(body), error) from error
        waiting = sorted(
            (pod for pod in self._cluster.pods.values() if is_waiting(pod)),
            key=lambda pod: (-pod.priority, pod.created, pod.order),
        )
        for pod in waiting:
            problem = self._cycle.problem_of(pod)
            if problem and not pod.template.unsupported:
                field, _, text = problem.partition(": ")
                at = positions[pod.uid]
                raise InputProblem(at, name_of(objects[at]), BadInput(field, text))
        rows = [self._one(pod, with_nodes, now) for pod in waiting]
        gated = [p for p in self._cluster.pods.values() if p.ours and p.gated and not p.node]
        rows += [
            _row(pod, message="Scheduling is blocked due to non-empty scheduling gates")
            for pod in gated
        ]
        n_placed = sum(row["node"] is not None for row in rows)
        return {
            "pods": rows,
            "summary": {
                "nodes": len(self._cluster.nodes.rows),
                "pods": len(rows),
                "scheduled": n_placed,
                "pending": len(rows) - n_placed,
            },
        }

    def _see(
        self,
        body: Mapping[str, Any],
        priorities: Mapping[str, int],
        position: int,
        positions: dict[str, int],
    ) -> None:
        match body.get("kind"):
            case "Node":
                node = manifests.decode(body, wire.Node)
                if not node.metadata.name:
                    raise BadInput("metadata.name", "is missing")
                once(node.metadata.name in self._cluster.nodes.rows)
                facts = self._cluster.see_node(node)
                raise_problem(facts.problem)
            case "Pod":
                pod = manifests.pod(body, priorities, position)
                if not self._only_ours and not pod.spec.node_name:
                    pod.spec.scheduler_name = self._config.scheduler_name
                once(pod.metadata.uid in positions)
                positions[pod.metadata.uid] = position
                record = self._cluster.see_pod(pod)
                if record is not None and record.node:
                    # What it may not ask has been allowed; what it holds is charged as far as it can be
                    # read, as in a cluster: of a whole cluster's dump one pod stops nothing.
                    requests.of_pod(pod)
            case "Namespace":
                namespace = manifests.decode(body, wire.Namespace)
                self._book.see_namespace(namespace.metadata.name, namespace.metadata.labels or {})
            case "BalancePolicy":
                self._book.put(policies.parse(body))
            case _:
                return

    def _one(self, pod: PodRecord, with_nodes: bool, now: int) -> Json:
        self._cycle.learn()
        nodes = verdicts.all_nodes(self._cluster, self._cycle, pod) if with_nodes else None
        outcome = self._cycle.schedule([pod])
        row = _bound(pod, outcome.binds[0], now) if outcome.binds else _held(pod, outcome.holds[0])
        if nodes is not None:
            row["nodes"] = nodes
        return row


def raise_problem(problem: str) -> None:
    """Raise what the state found wrong with an object, ``field: problem``; nothing when empty."""
    if problem:
        field, _, text = problem.partition(": ")
        raise BadInput(field, text)


def once(seen: bool) -> None:
    """Refuse an object that was seen before."""
    if seen:
        raise BadInput("metadata.name", "the object is given twice")


def name_of(body: Mapping[str, Any]) -> str:
    """``Kind namespace/name`` of an object, however odd."""
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    name = metadata.get("name") or metadata.get("generateName") or "(no name)"
    namespace = metadata.get("namespace")
    return f"{body.get('kind')} {namespace}/{name}" if namespace else f"{body.get('kind')} {name}"


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
    return _row(pod, message=explain.sentence(hold))


def _bound(pod: PodRecord, bind: Bind, now: int) -> Json:
    row = _row(pod, message=f"Successfully assigned {pod.key} to {bind.node}")
    row["node"] = bind.node
    if bind.slots:
        row["annotations"] = hami.bind_annotations(bind.node, bind.slots, now)
        row["devices"] = [
            {"id": use.uuid, "memoryMiB": use.mem_mib, "cores": use.cores}
            for slot in bind.slots
            for use in slot
        ]
    return row
