"""Attacks that take their time: objects that are created, changed and deleted beside each other, at any size.

Other than in ``attacks`` it is not what one pod says that costs, but what a change of one object makes of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tests.controlplane.objects import collection

Json = dict[str, Any]
_HOSTNAME = "kubernetes.io/hostname"
_PATCH = "application/merge-patch+json"


class Step(NamedTuple):
    """One request, and how many seconds to wait before it."""

    verb: str
    path: str
    body: Json | None = None
    content: str = "application/json"
    pause: float = 0.0


Paced = Callable[[str, float], Iterator[Step]]


def _pod(name: str, namespace: str, cpu: str = "1m", **spec: Any) -> Json:
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": cpu}}}
    usual = {
        "schedulerName": "evenkeel",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": usual | spec}


def _create(manifest: Json, pause: float = 0.0) -> Step:
    return Step("POST", collection(manifest), manifest, pause=pause)


def _expressions(prefix: str, n: int) -> list[Json]:
    return [{"key": f"{prefix}-{j}", "operator": "NotIn", "values": ["v"]} for j in range(n)]


def _budgets(namespace: str, scale: float, n_expressions: int) -> Iterator[Step]:
    """A cluster full of low pods whose labels differ, budgets that cover them, one preemptor and one change a second."""
    low = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    yield _create(low | {"metadata": {"name": "below-all"}, "value": -10})

    def selector(i: int) -> Json:
        mine = {"key": "app", "operator": "NotIn", "values": [f"a{i}"]}
        return {"matchExpressions": [mine, *_expressions(f"k{i}", n_expressions - 1)]}

    n_budgets, n_nodes = round(2000 * scale), round(500 * min(1.0, scale * 2))
    for i in range(n_budgets):
        yield _create(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": f"b{i}", "namespace": namespace},
                "spec": {"minAvailable": 1, "selector": selector(i)},
            }
        )
    for i in range(10 * n_nodes):
        node = f"plain-{i % n_nodes:03}"
        pod = _pod(f"low-{i}", namespace, "2900m", nodeName=node, priorityClassName="below-all")
        pod["metadata"]["labels"] = {"app": f"a{i}"}
        yield _create(pod)
    for i in range(round(60 * min(1.0, scale * 3))):
        path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/b{i}"
        changed = {"spec": {"selector": selector(n_budgets + i)}}
        yield Step("PATCH", path, changed, _PATCH, 1.0)
        yield _create(_pod(f"high-{i}", namespace, f"{5000 + i}m"))


def budgets(namespace: str, scale: float) -> Iterator[Step]:
    """Budgets of 19 expressions."""
    yield from _budgets(namespace, scale, 19)


def budgets_of_hundreds(namespace: str, scale: float) -> Iterator[Step]:
    """Budgets of 100 expressions."""
    yield from _budgets(namespace, scale, 100)


def _come_and_go(
    namespace: str, scale: float, name: str, spec: Callable[[int], Json]
) -> Iterator[Step]:
    """Pods that all differ, about a hundred of them alive."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    n = round(1000 * scale)
    for i in range(n):
        pod = _pod(f"{name}-{i}", namespace, **spec(i))
        pod["metadata"]["labels"] = {"app": f"{name}-{i}"}
        yield _create(pod, 0.05)
        if i >= 100:
            yield Step("DELETE", f"{path}/{name}-{i - 100}")
    for i in range(max(0, n - 100), n):
        yield Step("DELETE", f"{path}/{name}-{i}")


def preferred(namespace: str, scale: float) -> Iterator[Step]:
    """A hundred preferred terms a pod about all namespaces."""

    def spec(i: int) -> Json:
        terms = [
            {
                "topologyKey": _HOSTNAME,
                "namespaceSelector": {},
                "labelSelector": {"matchLabels": {f"k{i}-{j}": "v"}},
            }
            for j in range(100)
        ]
        soft = [{"weight": 1, "podAffinityTerm": term} for term in terms]
        rules = {"preferredDuringSchedulingIgnoredDuringExecution": soft}
        return {"affinity": {"podAntiAffinity": rules}}

    yield from _come_and_go(namespace, scale, "preferred", spec)


def _constraint(key: str, selector: Json, when: str) -> Json:
    return {
        "maxSkew": 1000,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": selector,
    }


def soft(namespace: str, scale: float) -> Iterator[Step]:
    """Fifty soft spread constraints a pod, each with a key of its own."""

    def spec(i: int) -> Json:
        selectors = [{"matchLabels": {f"k{i}-{j}": "v"}} for j in range(50)]
        many = [_constraint(f"t{i}-{j}", one, "ScheduleAnyway") for j, one in enumerate(selectors)]
        return {"topologySpreadConstraints": many}

    yield from _come_and_go(namespace, scale, "soft", spec)


def constraints(namespace: str, scale: float) -> Iterator[Step]:
    """Eight constraints a pod of a hundred expressions each."""

    def spec(i: int) -> Json:
        selectors = [{"matchExpressions": _expressions(f"k{i}-{j}", 100)} for j in range(8)]
        many = [_constraint(f"t{j}", one, "ScheduleAnyway") for j, one in enumerate(selectors)]
        return {"topologySpreadConstraints": many}

    yield from _come_and_go(namespace, scale, "constraints", spec)


def required(namespace: str, scale: float) -> Iterator[Step]:
    """A hundred required terms a pod of 90 values each."""

    def spec(i: int) -> Json:
        terms = []
        for j in range(100):
            values = [f"{i}-{j}-{k}" for k in range(90)]
            expression = {"key": "app", "operator": "In", "values": values}
            selector = {"matchExpressions": [expression]}
            terms.append({"topologyKey": _HOSTNAME, "labelSelector": selector})
        rules = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        return {"affinity": {"podAntiAffinity": rules}}

    yield from _come_and_go(namespace, scale, "required", spec)


def flips(namespace: str, scale: float) -> Iterator[Step]:
    """Running pods whose labels change."""
    n, n_nodes = round(2000 * scale), round(500 * min(1.0, scale * 2))
    for i in range(n):
        node = f"plain-{i % n_nodes:03}"
        yield _create(_pod(f"run-{i}", namespace, nodeName=node, schedulerName="nobody"))
    for i in range(n):
        path = f"/api/v1/namespaces/{namespace}/pods/run-{i}"
        yield Step("PATCH", path, {"metadata": {"labels": {"flip": f"f{i}"}}}, _PATCH)


def in_turn(namespace: str, scale: float) -> Iterator[Step]:
    """All of terms, one after another in one process."""
    for one in (preferred, soft, constraints, required, flips):
        yield from one(namespace, scale)


ALL: Mapping[str, Paced] = {
    "budgets": budgets,
    "budgets-100": budgets_of_hundreds,
    "preferred": preferred,
    "soft": soft,
    "constraints": constraints,
    "required": required,
    "flips": flips,
    "terms-in-turn": in_turn,
}
