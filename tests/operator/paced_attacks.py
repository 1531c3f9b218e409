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


def _fill_with_low_pods(namespace: str, scale: float) -> Iterator[Step]:
    """Ten pods of a low priority, whose labels differ, on each plain node: three of its 32 cores stay free."""
    low = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    yield _create(low | {"metadata": {"name": "below-all"}, "value": -10})
    n_nodes = round(500 * min(1.0, scale * 2))
    for i in range(10 * n_nodes):
        node = f"plain-{i % n_nodes:03}"
        pod = _pod(f"low-{i}", namespace, "2900m", nodeName=node, priorityClassName="below-all")
        pod["metadata"]["labels"] = {"app": f"a{i}"}
        yield _create(pod)


def _budgets(namespace: str, scale: float, n_expressions: int, *, change: bool) -> Iterator[Step]:
    """A cluster full of low pods, budgets that cover them, one preemptor and perhaps one change a second."""

    def selector(i: int) -> Json:
        mine = {"key": "app", "operator": "NotIn", "values": [f"a{i}"]}
        return {"matchExpressions": [mine, *_expressions(f"k{i}", n_expressions - 1)]}

    n_budgets = round(2000 * scale)
    for i in range(n_budgets):
        yield _create(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": f"b{i}", "namespace": namespace},
                "spec": {"minAvailable": 1, "selector": selector(i)},
            }
        )
    yield from _fill_with_low_pods(namespace, scale)
    for i in range(round(60 * min(1.0, scale * 3))):
        path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/b{i}"
        changed = {"spec": {"selector": selector(n_budgets + i)}}
        if change:
            yield Step("PATCH", path, changed, _PATCH, 1.0)
        yield _create(_pod(f"high-{i}", namespace, f"{5000 + i}m"), 0.0 if change else 1.0)


def budgets(namespace: str, scale: float) -> Iterator[Step]:
    """Budgets of 19 expressions."""
    yield from _budgets(namespace, scale, 19, change=True)


def budgets_of_hundreds(namespace: str, scale: float) -> Iterator[Step]:
    """Budgets of 100 expressions."""
    yield from _budgets(namespace, scale, 100, change=True)


def preemptors(namespace: str, scale: float) -> Iterator[Step]:
    """Budgets of 19 expressions that stay as they are, and preemptors that all differ."""
    yield from _budgets(namespace, scale, 19, change=False)


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


def _prefer_apart(selectors: list[Json]) -> Json:
    """A preferred anti-affinity term about all namespaces for each selector."""
    terms = [
        {"topologyKey": _HOSTNAME, "namespaceSelector": {}, "labelSelector": one}
        for one in selectors
    ]
    soft = [{"weight": 1, "podAffinityTerm": term} for term in terms]
    rules = {"preferredDuringSchedulingIgnoredDuringExecution": soft}
    return {"affinity": {"podAntiAffinity": rules}}


def preferred(namespace: str, scale: float) -> Iterator[Step]:
    """A hundred preferred terms a pod about all namespaces."""

    def spec(i: int) -> Json:
        return _prefer_apart([{"matchLabels": {f"k{i}-{j}": "v"}} for j in range(100)])

    yield from _come_and_go(namespace, scale, "preferred", spec)


def absent(namespace: str, scale: float) -> Iterator[Step]:
    """Running pods with a hundred preferred terms each, which only say which label a pod must not have."""
    for i in range(round(1000 * scale)):
        keys = [{"key": f"k{i}-{j}", "operator": "DoesNotExist"} for j in range(100)]
        spec = _prefer_apart([{"matchExpressions": [one]} for one in keys])
        yield _create(_pod(f"absent-{i}", namespace, **spec), 0.05)


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


def _require(i: int, n_values: int) -> Json:
    """A hundred required anti-affinity terms, no two alike."""
    terms = []
    for j in range(100):
        values = [f"{i}-{j}-{k}" for k in range(n_values)]
        expression = {"key": "app", "operator": "In", "values": values}
        selector = {"matchExpressions": [expression]}
        terms.append({"topologyKey": _HOSTNAME, "labelSelector": selector})
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return {"affinity": {"podAntiAffinity": rules}}


def required(namespace: str, scale: float) -> Iterator[Step]:
    """A hundred required terms a pod of 90 values each."""
    yield from _come_and_go(namespace, scale, "required", lambda i: _require(i, 90))


def required_by_thousands(namespace: str, scale: float) -> Iterator[Step]:
    """The same of 100 values each, by two thousand pods: what they take is to go with them."""
    yield from _come_and_go(namespace, 2 * scale, "thousands", lambda i: _require(i, 100))


def flips(namespace: str, scale: float) -> Iterator[Step]:
    """Running pods whose labels change."""
    n, n_nodes = round(2000 * scale), round(500 * min(1.0, scale * 2))
    for i in range(n):
        node = f"plain-{i % n_nodes:03}"
        yield _create(_pod(f"run-{i}", namespace, nodeName=node, schedulerName="nobody"))
    for i in range(n):
        path = f"/api/v1/namespaces/{namespace}/pods/run-{i}"
        yield Step("PATCH", path, {"metadata": {"labels": {"flip": f"f{i}"}}}, _PATCH)


def wishes_that_change(namespace: str, scale: float) -> Iterator[Step]:
    """Twenty waiting GPU pods whose long lists of cards change again and again."""
    path, asked = f"/api/v1/namespaces/{namespace}/pods", {"nvidia.com/gpu": "1"}
    for i in range(20):
        pod = _pod(f"wish-{i}", namespace)
        pod["spec"]["containers"][0]["resources"] = {"requests": asked, "limits": asked}
        yield _create(pod)
    for i in range(round(1000 * scale)):
        words = ",".join(f"GPU-{i}-{j}" for j in range(4_000))[:60_000]
        changed = {"metadata": {"annotations": {"nvidia.com/use-gpuuuid": words}}}
        yield Step("PATCH", f"{path}/wish-{i % 20}", changed, _PATCH, 0.05)


def services(namespace: str, scale: float) -> Iterator[Step]:
    """Services that select what no pod has, no two alike."""
    for i in range(round(5000 * scale)):
        selector = {f"key-{i}-{j}": f"value-{i}-{j}" for j in range(20)}
        spec = {"selector": selector, "ports": [{"port": 80}]}
        metadata = {"name": f"service-{i}", "namespace": namespace}
        yield _create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})


def repels(namespace: str, scale: float) -> Iterator[Step]:
    """A full cluster, and thousands of waiting pods of which each repels all others, no two alike."""
    yield from _fill_with_low_pods(namespace, scale)
    for i in range(10):
        yield _create(_pod(f"low-gpu-{i}", namespace, nodeName=f"gpu-{i:02}"))
    term = {"topologyKey": _HOSTNAME, "labelSelector": {}, "namespaceSelector": {}}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    for i in range(round(3000 * scale)):
        affinity = {"podAntiAffinity": rules}
        yield _create(
            _pod(
                f"repels-{i}",
                namespace,
                f"{100 + i}m",
                affinity=affinity,
                # So that they evict nobody.
                priorityClassName="below-all",
            )
        )


def selectors(namespace: str, scale: float) -> Iterator[Step]:
    """Claims of 32 requests whose selectors have loops in loops, no two alike, beside slices that come and go."""
    api = {"apiVersion": "resource.k8s.io/v1"}
    spec: Json = {"selectors": _select("device.driver == 'gpu.example.com'")}
    yield _create(api | {"kind": "DeviceClass", "metadata": {"name": "whole"}, "spec": spec})
    for i in range(round(1000 * scale)):
        if i % 20 == 0:
            yield _create(api | _make_slice(f"plain-{i // 20:03}"))
        numbers = f"[{', '.join(str(i + j) for j in range(60))}]"
        loops = (f"{numbers}.all(i, {numbers}.all(j, i + j >= {-k}))" for k in range(32))
        requests = [
            {"name": f"r{k}", "exactly": {"deviceClassName": "whole", "selectors": _select(loop)}}
            for k, loop in enumerate(loops)
        ]
        meta = {"name": f"costly-{i}", "namespace": namespace}
        spec = {"devices": {"requests": requests}}
        yield _create(api | {"kind": "ResourceClaim", "metadata": meta, "spec": spec})
        entries = [{"name": "devices", "resourceClaimName": f"costly-{i}"}]
        yield _create(_pod(f"costly-{i}", namespace, resourceClaims=entries))


def _select(expression: str) -> list[Json]:
    return [{"cel": {"expression": expression}}]


def _make_slice(node: str) -> Json:
    """Forty devices of a node."""
    devices = [{"name": f"gpu-{i}"} for i in range(40)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices}
    return {"kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec}


def in_turn(namespace: str, scale: float) -> Iterator[Step]:
    """All of terms, one after another in one process."""
    for one in (preferred, soft, constraints, required, flips):
        yield from one(namespace, scale)


ALL: Mapping[str, Paced] = {
    "budgets": budgets,
    "budgets-100": budgets_of_hundreds,
    "preemptors": preemptors,
    "preferred": preferred,
    "absent": absent,
    "soft": soft,
    "constraints": constraints,
    "required": required,
    "thousands": required_by_thousands,
    "flips": flips,
    "wishes-that-change": wishes_that_change,
    "services": services,
    "repels": repels,
    "selectors": selectors,
    "terms-in-turn": in_turn,
}
