"""Pods that have ranks go to the nodes of their domain in rank order."""

import random
from itertools import groupby, pairwise
from typing import Any

import pytest

from scheduler.api import names
from scheduler.config import parse_config
from scheduler.simulate import schedule
from tests import make, slices

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


@pytest.mark.parametrize("n", [6, 20])
def test_pods_that_must_take_turns_keep_their_turns(n: int) -> None:
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
    pods = [native_pod(i, labels={"app": "w"}, spec=spread) for i in range(n)]
    found = place(node("a", n), node("b", n), native(n), *pods)
    assert None not in found.values()
    on_a = [found[f"p{i}"] == "a" for i in range(n)]
    assert sum(on_a) == n // 2
    assert all(one != other for one, other in pairwise(on_a))


LEVELS = [f"topology.kubernetes.io/{one}" for one in ("zone", "block", "rack")]


def gpu_node(name: str, gpus: int, **labels: str) -> Json:
    return make.raw(make.node(name=name, cpu=64, gpus=gpus, labels=labels)) | {"kind": "Node"}


def leader_worker_set(size: int, **more: Any) -> Json:
    """A LeaderWorkerSet that is a gang; ``more`` goes over its pair."""
    asked = {"requests": {"cpu": "1"}, "limits": {names.GPU: "1"}}
    template = {"spec": {"containers": [{"name": "c", "resources": asked}]}}
    pair = {"size": size, "workerTemplate": template} | more
    notes = {names.GANG: "all"}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "l", "namespace": "default", "annotations": notes},
        "spec": {"replicas": 1, "leaderWorkerTemplate": pair},
    }


def list_places(objects: list[Json], size: int) -> list[tuple[str, ...]]:
    """List for each rank of a LeaderWorkerSet the values of all levels, and its node."""
    nodes = {one["metadata"]["name"]: one for one in objects if one["kind"] == "Node"}
    found = place(*objects)
    by_rank = [found["l-0"], *(found[f"l-0-{i}"] for i in range(1, size))]
    labels = [nodes[one]["metadata"]["labels"] for one in by_rank]
    return [
        (*(each[level] for level in LEVELS), one) for each, one in zip(labels, by_rank, strict=True)
    ]


def is_in_order(places: list[tuple[str, ...]]) -> bool:
    """Whether no node, and no domain of any level, is left and come to again."""
    for n in range(1, len(LEVELS) + 2):
        runs = [key for key, _ in groupby(place[:n] for place in places)]
        if len(runs) != len(set(runs)):
            return False
    return True


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(100))))
@pytest.mark.parametrize("has_own_template", [False, True])
def test_a_leader_and_its_workers_are_in_rank_order_on_uneven_nodes(
    seed: int, *, has_own_template: bool
) -> None:
    """The workers may get nodes first, and the leader a place beside any of them."""
    rng = random.Random(seed)
    nodes = [
        gpu_node(f"n{i}", rng.randint(1, 5), **{one: rng.choice("xyz") for one in LEVELS})
        for i in range(rng.randint(3, 12))
    ]
    n_places = sum(int(one["status"]["allocatable"][names.GPU]) for one in nodes)
    size = rng.randint(2, min(n_places, 16))
    more: Json = {}
    if has_own_template:
        one = {"name": "other", "resources": {"limits": {names.GPU: "1"}}}
        more["leaderTemplate"] = {"spec": {"containers": [one]}}
    places = list_places([*nodes, leader_worker_set(size, **more)], size)
    assert is_in_order(places)


@pytest.mark.parametrize("seed", range(5))
def test_a_leader_and_more_workers_than_are_searched_for_are_in_rank_order(seed: int) -> None:
    rng = random.Random(seed)
    nodes = [
        gpu_node(f"n{i}", rng.randint(2, 5), **{one: rng.choice("xyz") for one in LEVELS})
        for i in range(12)
    ]
    size = rng.randint(18, 24)
    assert is_in_order(list_places([*nodes, leader_worker_set(size)], size))


def test_pods_that_come_later_begin_beside_the_one_that_is_there() -> None:
    leader, *workers = (native_pod(i) for i in range(5))
    leader["spec"]["nodeName"] = "b"
    runs = list_runs(place(node("a", 2), node("b", 2), node("c", 2), native(5), leader, *workers))
    assert runs[0] == ("b", 1)
    assert sorted(n for _, n in runs) == [1, 1, 2]


def test_pods_for_which_a_place_was_searched_are_in_rank_order() -> None:
    """At the first try the small ones leave no room for the large one. They come in no order of their ranks."""
    small = [native_pod(i) for i in (3, 0, 2, 1)]
    large = native_pod(9, cpu=4)
    found = place(node("a", 4), node("b", 2), node("c", 2), native(5), *small, large)
    assert found.pop("p9") == "a"
    assert [n for _, n in list_runs(found)] == [2, 2]


@pytest.mark.parametrize("size", range(1, 6))
def test_like_pods_for_which_a_place_was_searched_are_in_rank_order(size: int) -> None:
    """They want each other in their zone. The first of them may go to the zone that has too little room."""
    zone = "topology.kubernetes.io/zone"
    term = {"topologyKey": zone, "labelSelector": {"matchLabels": {"app": "w"}}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [native_pod(i, labels={"app": "w"}, spec={"affinity": near}) for i in (3, 0, 5, 1, 4, 2)]
    sizes = {"a": size, "b": 3, "c": 3}
    nodes = [node(one, n, **{zone: "x" if one == "a" else "y"}) for one, n in sizes.items()]
    assert [n for _, n in list_runs(place(*nodes, native(6), *pods))] == [3, 3]
