"""The rows. Nodes are of 32 CPUs in ten zones, and have room for every pod of a row but those that preempt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bench.rows.row import Decision, Row, Size
from tests.controlplane import objects
from tests.controlplane.objects import Manifest

_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_ZONES = 10
_GPU = "nvidia.com/gpu"
_ASKS = {"cpu": "100m", "memory": "500Mi"}
# Pods that want to be together: ten apps fill no zone, not even all in one.
_TOGETHER = 10
_CLASS = "made-on-demand"
# A node of the preemption row is full with so many, more if there would be too few of them.
_CPU_MILLI, _LOW_ON_A_NODE = 4_000, 4
# So many pods are a gang.
_GANG = 8


# Nodes.


def _node_name(number: int) -> str:
    return f"node-{number:05}"


def _zone(number: int) -> dict[str, str]:
    return {_ZONE: f"zone-{number % _ZONES}"}


def _node(number: int) -> Manifest:
    return objects.node(_node_name(number), labels=_zone(number))


def _gpu_node(number: int) -> Manifest:
    return objects.node(_node_name(number), labels=_zone(number), extended={_GPU: 8})


def _full_node(number: int) -> Manifest:
    return objects.node(_node_name(number), labels=_zone(number), cpu=f"{_CPU_MILLI}m")


# Incoming pods.


def _named(number: int, **fields: Any) -> Manifest:
    return objects.pod(f"pod-{number:05}", **{"requests": _ASKS, **fields})


def _plain(number: int, _: Size) -> Manifest:
    return _named(number)


def _one_gpu(number: int, _: Size) -> Manifest:
    return _named(number, limits={_GPU: 1})


def _different(number: int, _: Size) -> Manifest:
    """No two numbers below 10,000 ask the same."""
    asks = {"cpu": f"{100 + number % 100}m", "memory": f"{500 + number // 100}Mi"}
    return _named(number, requests=asks)


def _different_gpu(number: int, size: Size) -> Manifest:
    made = _different(number, size)
    made["spec"]["containers"][0]["resources"]["limits"] = {_GPU: "1"}
    return made


def _spread(number: int, key: str, app: str) -> Manifest:
    labels = {"app": app}
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    return _named(number, labels=labels, topologySpreadConstraints=[constraint])


def _spread_zone(number: int, _: Size) -> Manifest:
    return _spread(number, _ZONE, "by-zone")


def _spread_host(number: int, _: Size) -> Manifest:
    return _spread(number, _HOST, "by-host")


def _affine(number: int, app: str, **rules: tuple[str, str]) -> Manifest:
    """A pod of an app with rules about pods of its own app, as kind of affinity → (strictness, key)."""
    labels = {"app": app}
    affinity = {}
    for kind, (strictness, key) in rules.items():
        term: dict[str, Any] = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
        if strictness == "preferred":
            term = {"weight": 100, "podAffinityTerm": term}
        affinity[kind] = {f"{strictness}DuringSchedulingIgnoredDuringExecution": [term]}
    return _named(number, labels=labels, affinity=affinity)


def _affinity(number: int, size: Size) -> Manifest:
    app = f"together-{_app_together(number, size)}"
    return _affine(number, app, podAffinity=("required", _ZONE))


def _anti_affinity(number: int, size: Size) -> Manifest:
    # Half as many to an app as there are nodes: each finds one without looking for the last.
    app = f"apart-{number // max(1, size.nodes // 2)}"
    return _affine(number, app, podAntiAffinity=("required", _HOST))


def _preferences(number: int, size: Size) -> Manifest:
    app = f"rather-{_app_together(number, size)}"
    return _affine(
        number, app, podAffinity=("preferred", _ZONE), podAntiAffinity=("preferred", _HOST)
    )


def _app_together(number: int, size: Size) -> int:
    return number * _TOGETHER // size.pods


def _with_claim(number: int, _: Size) -> Manifest:
    source = {"persistentVolumeClaim": {"claimName": _claim_name(number)}}
    return _named(number, volumes=[{"name": "data", **source}])


def _preempting(number: int, size: Size) -> Manifest:
    """As large as each of those on full nodes: one of them has to go for it."""
    return _named(number, requests=_low_asks(size), priorityClassName="high")


def _in_gang(number: int, _: Size) -> Manifest:
    group = {"podGroupName": f"gang-{number // _GANG:05}"}
    return _named(number, limits={_GPU: 1}, schedulingGroup=group)


_MIXED = (
    _plain, _one_gpu, _different, _spread_zone, _spread_host, _affinity, _anti_affinity, _preferences, _with_claim
)  # fmt: skip


def _mixed(number: int, size: Size) -> Manifest:
    return _MIXED[number % len(_MIXED)](number, size)


# What there is before them.


def _claim_name(number: int) -> str:
    return f"claim-{number:05}"


def _claims(numbers: Iterable[int]) -> Iterable[Manifest]:
    yield {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": _CLASS},
        "provisioner": "bench.evenkeel.dev/disk",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    for number in numbers:
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": _claim_name(number), "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": _CLASS,
            },
        }


def _claim_each(size: Size) -> Iterable[Manifest]:
    return _claims(range(size.pods))


def _claim_some(size: Size) -> Iterable[Manifest]:
    return _claims(range(_MIXED.index(_with_claim), size.pods, len(_MIXED)))


def _n_low(size: Size) -> int:
    """On each node; together at least as many as come."""
    return max(_LOW_ON_A_NODE, -(-size.pods // size.nodes))


def _low_asks(size: Size) -> dict[str, str]:
    return {"cpu": f"{_CPU_MILLI // _n_low(size)}m", "memory": "500Mi"}


def _low_name(node: int, number: int) -> str:
    return f"low-{node:05}-{number}"


def _full(size: Size) -> Iterable[Manifest]:
    yield objects.priority_class("low", 10)
    yield objects.priority_class("high", 1_000)
    for node in range(size.nodes):
        for number in range(_n_low(size)):
            yield objects.pod(
                _low_name(node, number),
                requests=_low_asks(size),
                nodeName=_node_name(node),
                priorityClassName="low",
            )


def _leaving(size: Size) -> Iterable[Manifest]:
    """As many bound pods as come: each goes when one comes."""
    for number in range(size.pods):
        where = _node_name(number % size.nodes)
        yield objects.pod(f"old-{number:05}", requests=_ASKS, nodeName=where)


def _gangs(size: Size) -> Iterable[Manifest]:
    """Gangs; of the last one there may be fewer pods."""
    for first in range(0, size.pods, _GANG):
        least = min(_GANG, size.pods - first)
        yield {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": f"gang-{first // _GANG:05}", "namespace": "default"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
        }


# Decisions that are right whatever the others are, and in whatever order they are carried out.


def _in_turn(number: int, size: Size) -> Decision:
    """Nodes in turn: never twice the same node within an app, and no zone or host ahead of the others."""
    return Decision(_node_name(number % size.nodes))


def _in_zone(number: int, size: Size) -> Decision:
    """The nodes in turn of the zone that is the app's."""
    zone = _app_together(number, size) % min(_ZONES, size.nodes)
    in_zone = range(zone, size.nodes, _ZONES)
    return Decision(_node_name(in_zone[number % len(in_zone)]))


def _with_volume(number: int, size: Size) -> Decision:
    return _in_turn(number, size)._replace(claim=_claim_name(number))


def _with_victim(number: int, size: Size) -> Decision:
    """A pod of the next node; once one of each has gone, another of each."""
    turn, node = divmod(number, size.nodes)
    return Decision(_node_name(node), victim=_low_name(node, turn))


def _in_mix(number: int, size: Size) -> Decision:
    """As in the row that the pod is of; apps that spread count only their own, which come at even distances."""
    kind = _MIXED[number % len(_MIXED)]
    if kind in {_affinity, _preferences}:
        return _in_zone(number, size)
    turn = number // len(_MIXED)
    at = _in_turn(turn, size)
    return at._replace(claim=_claim_name(number)) if kind is _with_claim else at


ROWS = (
    Row(
        name="plain",
        title="plain",
        node=_node,
        pod=_plain,
        decide=_in_turn,
        times_kube_scheduler=2.5,
    ),
    Row(
        name="gpu",
        title="one GPU",
        node=_gpu_node,
        pod=_one_gpu,
        decide=_in_turn,
        times_kube_scheduler=3.5,
    ),
    Row(
        name="different",
        title="every pod different",
        node=_node,
        pod=_different,
        decide=_in_turn,
        alike=False,
        most_mib=300,
    ),
    Row(
        name="different-gpu",
        title="every pod different, one GPU",
        node=_gpu_node,
        pod=_different_gpu,
        decide=_in_turn,
        alike=False,
        most_mib=300,
    ),
    Row(
        name="spread-zone",
        title="hard spread by zone",
        node=_node,
        pod=_spread_zone,
        decide=_in_turn,
        times_kube_scheduler=4.0,
    ),
    Row(
        name="spread-host",
        title="hard spread by host",
        node=_node,
        pod=_spread_host,
        decide=_in_turn,
    ),
    Row(
        name="affinity",
        title="required pod affinity by zone",
        node=_node,
        pod=_affinity,
        decide=_in_zone,
        times_kube_scheduler=7.0,
    ),
    Row(
        name="anti-affinity",
        title="required anti-affinity by host",
        node=_node,
        pod=_anti_affinity,
        decide=_in_turn,
        times_kube_scheduler=3.0,
    ),
    Row(
        name="preferences",
        title="preferred affinity and anti-affinity",
        node=_node,
        pod=_preferences,
        decide=_in_zone,
    ),
    Row(
        name="volumes",
        title="a PVC that waits for its pod",
        node=_node,
        pod=_with_claim,
        before=_claim_each,
        decide=_with_volume,
        beside=("provisioner",),
        of_null_scheduler=0.0,
    ),
    Row(
        name="preemption",
        title="preemption",
        node=_full_node,
        pod=_preempting,
        before=_full,
        decide=_with_victim,
        beside=("kubelet",),
        # kube-scheduler makes room for all that wait before it binds the first, and then binds them at once.
        from_start=True,
        times_kube_scheduler=3.0,
        of_null_scheduler=0.0,
    ),
    Row(
        name="mix",
        title="a mix of all but preemption",
        node=_gpu_node,
        pod=_mixed,
        before=_claim_some,
        decide=_in_mix,
        beside=("provisioner",),
        alike=False,
        times_kube_scheduler=4.0,
        of_null_scheduler=0.0,
    ),
    Row(
        name="churn",
        title="churn",
        node=_node,
        pod=_plain,
        before=_leaving,
        decide=_in_turn,
        beside=("churner",),
        arrive=True,
    ),
    Row(
        name="gangs",
        title="gangs of 8, one GPU each",
        node=_gpu_node,
        pod=_in_gang,
        before=_gangs,
        decide=_in_turn,
        alike=False,
        in_groups=True,
        times_kube_scheduler=3.0,
    ),
)
BY_NAME = {row.name: row for row in ROWS}
