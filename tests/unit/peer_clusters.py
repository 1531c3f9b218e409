"""Clusters of pods that have rules about other pods, known to the scheduler and to the twins alike."""

from typing import Any

import msgspec

from scheduler.api import names, wire
from scheduler.cycle.schedule import Cycle
from scheduler.simulate.reading import objects
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from scheduler.telling import verdicts
from tests.oracles import filters, pod_affinity, topology_spread

Json = dict[str, Any]
Verdict = tuple[str, str]
FITS: Verdict = ("", "")


def seen(cluster: Cluster, pod: Json, name: str = "waits") -> PodRecord:
    """The pod as one of ours, under another name."""
    meta = pod["metadata"] | {"name": name, "uid": name}
    spec = pod["spec"] | {"schedulerName": names.SCHEDULER}
    found = cluster.see_pod(msgspec.convert(pod | {"metadata": meta, "spec": spec}, wire.Pod))
    assert found is not None
    return found


def cluster_of(
    nodes: list[Json],
    pods: list[Json],
    namespaces: dict[str, Json] | None = None,
    owners: list[Json] | None = None,
) -> Cluster:
    """The pods are q0, q1, ..."""
    cluster = Cluster()
    for one in owners or ():
        group, kind = objects.read_peer_object(one), names.PeerKind(one["kind"])
        cluster.peers.see(kind, group.metadata.namespace, group.metadata.name, group.selector)
    for name, labels in (namespaces or {}).items():
        cluster.terms.see_namespace(name, labels)
    for node in nodes:
        cluster.see_node(msgspec.convert(node, wire.Node))
    for i, pod in enumerate(pods):
        seen(cluster, pod, f"q{i}")
    return cluster


def verdict_of(
    pod: Json, nodes: list[Json], pods: list[Json], namespaces: dict[str, Json]
) -> dict[str, Verdict]:
    """Reason and status of every node that the pod's own words do not keep it off, by the twins."""
    spread = topology_spread.refusals(pod, nodes, pods)
    near = pod_affinity.refusals(pod, nodes, pods, namespaces)
    return {
        name: spread[name] if spread[name] != FITS else near[name]
        for name in (node["metadata"]["name"] for node in nodes if not filters.refusal(pod, node, []))
    }  # fmt: skip


def compare(
    cluster: Cluster,
    cycle: Cycle,
    record: PodRecord,
    pod: Json,
    world: tuple[list[Json], list[Json], dict[str, Json]],
    owners: list[Json] | None = None,
) -> None:
    """What is said of every node is what the twins say of it."""
    checks.verify(cluster)
    told = verdicts.judge_nodes(cluster, cycle, record).nodes
    expected = verdict_of(pod, *world)
    for name, said in told.items():
        if name in expected:
            reason, status = expected[name]
            assert said["reasons"] == ([reason] if reason else []), name
            assert said["status"] == (status or "fit"), name
        else:
            assert not said["feasible"]
    fitting = [name for name, verdict in expected.items() if verdict == FITS]
    nodes, pods, namespaces = world
    for rule, points in (
        ("PodTopologySpread", topology_spread.scores(pod, nodes, pods, fitting, owners)),
        ("InterPodAffinity", pod_affinity.scores(pod, nodes, pods, fitting, namespaces)),
    ):
        assert {name: told[name]["scores"][rule] for name in fitting} == points, rule
