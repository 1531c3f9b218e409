"""Pods that have ranks go to the nodes of their domain in rank order."""

from itertools import groupby
from typing import Any

import pytest

from scheduler.api import names
from scheduler.config import parse_config
from scheduler.simulate import schedule
from tests import make

Json = dict[str, Any]
TOPOLOGY: Json = {
    "apiVersion": "kueue.x-k8s.io/v1beta1",
    "kind": "Topology",
    "metadata": {"name": "t"},
    "spec": {"levels": [{"nodeLabel": "block"}, {"nodeLabel": "rack"}]},
}
KAI_TOPOLOGY = TOPOLOGY | {"apiVersion": "kai.scheduler/v1alpha1"}
CONFIG = parse_config({"groups": {"owners": ["LeaderWorkerSet"]}})


def node(name: str, cpu: int = 4, **labels: str) -> Json:
    made = make.node(name=name, cpu=cpu, labels={"block": "x", "rack": "r"} | labels)
    return make.raw(made) | {"kind": "Node"}


def native(n: int) -> Json:
    constraint = {"topology": [{"key": "rack"}]}
    spec = {"schedulingPolicy": {"gang": {"minCount": n}}, "schedulingConstraints": constraint}
    meta = {"name": "g", "namespace": "default", "uid": "g"}
    kind = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}
    return kind | {"metadata": meta, "spec": spec}


def pod(name: str, labels: dict[str, str], **more: Any) -> Json:
    made = make.pod(name=name, labels=labels, **({"cpu": 1} | more))
    return make.raw(made) | {"kind": "Pod"}


def native_pod(rank: int, **more: Any) -> Json:
    spec = {"schedulingGroup": {"podGroupName": "g"}} | more.pop("spec", {})
    labels = {names.JOB_INDEX: str(rank)} | more.pop("labels", {})
    return pod(f"p{rank}", labels, spec=spec, **more)


def kueue_pod(rank: int, n: int, level: str = "rack", **more: Any) -> Json:
    notes = {names.KUEUE_TOTAL: str(n), names.KUEUE_REQUIRED: level}
    labels = {names.KUEUE_GROUP: "g", names.KUEUE_INDEX: str(rank)}
    return pod(f"p{rank}", labels, annotations=notes, **more)


def place(*objects: Json) -> dict[str, str]:
    """Return the nodes of the pods, by name."""
    result = schedule(list(objects), config=CONFIG)
    return {one["name"]: one["node"] for one in sorted(result["pods"], key=lambda one: one["name"])}


def list_runs(found: dict[str, str]) -> list[tuple[str, int]]:
    """List on which node so many pods in a row are."""
    return [(key, len(list(run))) for key, run in groupby(found.values())]


def test_pods_of_a_rack_are_in_rank_order_where_kueue_knows_no_hosts() -> None:
    nodes = [node("a"), node("b"), node("c", rack="s", cpu=1)]
    runs = list_runs(place(*nodes, TOPOLOGY, *(kueue_pod(i, 6) for i in range(6))))
    assert [one for one, _ in runs] == ["a", "b"]


@pytest.mark.parametrize("order", [range(6), (3, 0, 5, 1, 4, 2)])
def test_pods_of_an_indexed_job_in_a_native_group_are_in_rank_order(order: list[int]) -> None:
    """The group itself knows no ranks: the pods may come in any order."""
    runs = list_runs(place(node("a"), node("b"), native(6), *(native_pod(i) for i in order)))
    assert [n for _, n in runs] == [3, 3]


def test_a_leader_and_its_workers_are_in_rank_order() -> None:
    """KAI's rack; the leader comes first, and the first workers are beside it."""
    notes = {"kai.scheduler/topology": "t", "kai.scheduler/topology-required-placement": "rack"}
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
    pair = {"size": 6, "workerTemplate": template}
    workers = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "l", "namespace": "default", "annotations": notes},
        "spec": {"replicas": 1, "leaderWorkerTemplate": pair},
    }
    runs = list_runs(place(node("a"), node("b"), KAI_TOPOLOGY, workers))
    assert [n for _, n in runs] == [3, 3]


def test_ranks_that_follow_each_other_are_in_one_rack_first() -> None:
    """The group goes anywhere in its block, and the nodes of a rack are not neighbours by name."""
    rack = "topology.kubernetes.io/rack"
    nodes = [node(f"n{i}", 2, **{rack: f"r{i % 2}"}) for i in range(4)]
    found = place(*nodes, TOPOLOGY, *(kueue_pod(i, 8, "block") for i in range(8)))
    racks = [int(one[1:]) % 2 for one in found.values()]
    assert racks in ([0] * 4 + [1] * 4, [1] * 4 + [0] * 4)
    assert [n for _, n in list_runs(found)] == [2, 2, 2, 2]


def test_pods_of_other_templates_keep_their_nodes() -> None:
    """Each kind has its own row of ranks: a large pod does not change places with small ones."""
    large, small = {"cpu": 2}, {"cpu": 1}
    pods = [native_pod(i, **(large if i == 2 else small)) for i in range(5)]
    found = place(node("a"), node("b"), native(5), *pods)
    assert len(found) == 5
    assert None not in found.values()
    del found["p2"]
    assert len(list_runs(found)) == 2


def test_pods_without_ranks_stay_where_they_come() -> None:
    bare = [pod(f"p{i}", {}, spec={"schedulingGroup": {"podGroupName": "g"}}) for i in range(6)]
    assert len(list_runs(place(node("a"), node("b"), native(6), *bare))) == 6


def test_what_does_not_fit_waits_and_the_others_are_in_order() -> None:
    pods = [native_pod(i) for i in range(10)]
    found = place(node("a"), node("b"), native(2), *pods)
    assert [n for _, n in list_runs(found)] == [4, 4, 2]
    assert list(found.values())[8:] == [None, None]


def test_pods_that_must_take_turns_keep_their_turns() -> None:
    """Spread by node holds at each pod that comes, so two in a row on one node are refused."""
    spread = {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "w"}},
            }
        ]
    }
    pods = [native_pod(i, labels={"app": "w"}, spec=spread) for i in range(6)]
    found = place(node("a"), node("b"), native(6), *pods)
    assert None not in found.values()
    assert len(list_runs(found)) == 6
