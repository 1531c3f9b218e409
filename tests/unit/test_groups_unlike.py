"""Groups of unlike pods that are too large to be searched for: the order in which they are written does not decide."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import msgspec
import pytest

from scheduler import config
from scheduler.placing.groups.attempts import Attempt
from scheduler.placing.groups.ordering import Kind
from scheduler.placing.groups.orders import AsWritten, LargestFirst
from scheduler.schema.world import ANY_ROWS
from scheduler.simulate import schedule
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Team
from tests import make, slices
from tests.unit.calls import record_calls

Json = dict[str, Any]
Asked = tuple[str, int, Json]


def write(thing: Any, kind: str) -> Json:
    built: Json = msgspec.to_builtins(thing)
    return built | {"kind": kind}


def make_world(seed: int) -> tuple[list[Json], list[Asked]]:
    """Nodes that three kinds of pods, the largest first, just fill, and on which the smaller ones like the largest nodes."""
    rng = random.Random(seed)
    n_large, n_mid, n_small = rng.randint(8, 12), rng.randint(3, 6), rng.randint(2, 5)
    nodes = [make.node(name=f"a{i:02}", cpu=32, gpus=8) for i in range(n_large)]
    nodes += [make.node(name=f"b{i:02}", cpu=32, gpus=4) for i in range(n_mid)]
    nodes += [make.node(name=f"c{i:02}", cpu=rng.randint(12, 15), gpus=1) for i in range(n_small)]
    rng.shuffle(nodes)
    liked = {"preferred": [(100, "kubernetes.io/hostname", f"a{rng.randrange(n_large):02}")]}
    kinds: list[Asked] = [
        ("large", n_large, {"cpu": rng.randint(8, 32), "gpu": 8}),
        ("mid", n_mid, {"cpu": rng.randint(4, 24), "gpu": 4} | liked),
        ("small", n_small, {"cpu": rng.randint(4, 12), "gpu": 1} | liked),
    ]
    return [write(one, "Node") for one in nodes], kinds


def make_parts(kinds: list[Asked]) -> list[Json]:
    """A PodGroup of Volcano whose tasks are written in this order."""
    tasks = {name: n for name, n, _ in kinds}
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"minMember": sum(tasks.values()), "minTaskMember": tasks},
    }
    given: Json = {"annotations": {"scheduling.k8s.io/group-name": "gang"}}
    pods = [
        make.pod(name=f"{name}-{i}", labels={"volcano.sh/task-spec": name}, **given, **asked)
        for name, n, asked in kinds
        for i in range(n)
    ]
    return [group, *(write(pod, "Pod") for pod in pods)]


def make_leaf(kinds: list[Asked]) -> list[Json]:
    """A gang of Kubernetes whose pods come in this order."""
    pods = [
        make.member(make.pod(name=f"{name}-{i}", **asked))
        for name, n, asked in kinds
        for i in range(n)
    ]
    gang = write(make.pod_group("gang", len(pods)), "PodGroup")
    gang["apiVersion"] = "scheduling.k8s.io/v1beta1"
    return [gang, *(write(pod, "Pod") for pod in pods)]


def count_placed(objects: list[Json], **settings: Any) -> int:
    result = schedule(objects, config=config.parse_config(settings))
    (group,) = result["groups"]
    return int(group["placed"])


@pytest.mark.parametrize("make_group", [make_parts, make_leaf])
@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(12))))
def test_a_group_that_fits_with_its_largest_pods_first_fits_in_any_order(
    seed: int, make_group: Any
) -> None:
    nodes, kinds = make_world(seed)
    n_pods = sum(n for _, n, _ in kinds)
    assert count_placed(nodes + make_group(kinds)) == n_pods
    for order in permutations(kinds):
        assert count_placed(nodes + make_group(list(order))) == n_pods


def test_of_a_group_that_fits_in_no_order_it_is_said_in_which_most_of_its_pods_fit() -> None:
    nodes = [write(make.node(name=f"n{i:02}", cpu=8), "Node") for i in range(17)]
    nodes += [write(make.node(name=f"x{i}", cpu=4), "Node") for i in range(2)]
    liked = {"preferred": [(100, "kubernetes.io/hostname", "n00")]}
    kinds: list[Asked] = [("small", 2, {"cpu": 4} | liked), ("large", 18, {"cpu": 8})]
    for order in permutations(kinds):
        (group,) = schedule(nodes + make_leaf(list(order)))["groups"]
        assert "19 of the 20 pods that must be placed at once fit" in group["message"]


class TestTries:
    @pytest.fixture
    def tries(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
        """The tries to place a whole group."""
        return record_calls(monkeypatch, Attempt, "_place_anew")

    def try_gang(self, n_small: int, **figures: Any) -> list[Json]:
        nodes = [write(make.node(name=f"n{i}", cpu=1), "Node") for i in range(2)]
        kinds: list[Asked] = [("small", n_small, {"cpu": 1}), ("other", 1, figures)]
        return nodes + make_leaf(kinds)

    def test_a_large_group_of_unlike_pods_is_tried_twice(
        self, tries: list[tuple[Any, ...]]
    ) -> None:
        assert not count_placed(self.try_gang(16, cpu=2))
        assert len(tries) == 2

    @pytest.mark.parametrize(
        ("n_small", "cpu"),
        [pytest.param(16, 1, id="like pods"), pytest.param(15, 2, id="searched for")],
    )
    def test_other_groups_are_tried_once(
        self, tries: list[tuple[Any, ...]], n_small: int, cpu: int
    ) -> None:
        assert not count_placed(self.try_gang(n_small, cpu=cpu))
        assert len(tries) == 1

    def test_a_group_that_kube_scheduler_s_rules_place_is_only_counted_as_written(
        self, tries: list[tuple[Any, ...]]
    ) -> None:
        cluster = make.cluster(nodes=[make.node(cpu=1)])
        settings = config.parse_config({"placement": {"scoring": {"mode": "kube-scheduler"}}})
        cycle = make.cycle(cluster=cluster, config=settings)
        for i in range(17):
            cluster.see_pod(make.pod(name=f"p{i}", cpu=1 + (i == 16)))
        gang = make.entity("gang", cluster.pods.values(), 17)
        assert not cycle.place_group(gang).binds
        assert not tries
        assert not cycle.place_most(gang).binds
        assert len(tries) == 1

    def test_a_group_that_kueue_s_rules_place_is_tried_as_written(
        self, tries: list[tuple[Any, ...]]
    ) -> None:
        topology = {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "Topology",
            "metadata": {"name": "t"},
            "spec": {"levels": [{"nodeLabel": "rack"}]},
        }
        labels = {"kueue.x-k8s.io/pod-group-name": "gang"}
        annotations = {
            "kueue.x-k8s.io/pod-group-total-count": "17",
            "kueue.x-k8s.io/podset-required-topology": "rack",
        }
        pods = [
            make.pod(name=f"p{i:02}", cpu=1 + (i == 16), labels=labels, annotations=annotations)
            for i in range(17)
        ]
        node = make.node(cpu=3, labels={"rack": "r"})
        objects = [topology, write(node, "Node"), *(write(pod, "Pod") for pod in pods)]
        assert not count_placed(objects)
        assert len(tries) == 1

    def test_parts_of_like_pods_are_tried_as_written(self, tries: list[tuple[Any, ...]]) -> None:
        nodes = [write(make.node(name="n", cpu=1), "Node")]
        assert not count_placed(nodes + make_parts([("a", 2, {"cpu": 1}), ("b", 16, {"cpu": 1})]))
        assert len(tries) == 1

    def test_a_group_with_its_largest_pods_first_is_tried_once(
        self, tries: list[tuple[Any, ...]]
    ) -> None:
        nodes = [write(make.node(name="n", cpu=1), "Node")]
        assert not count_placed(nodes + make_leaf([("a", 1, {"cpu": 2}), ("b", 16, {"cpu": 1})]))
        assert len(tries) == 1


class TestSizes:
    def put_in_order(self, cluster: Cluster, *asked: Json) -> list[str]:
        for i, one in enumerate(asked):
            cluster.see_pod(make.pod(name=f"p{i}", **one))
        pods = [cluster.pods[f"default/p{i}"] for i in range(len(asked))]
        assert AsWritten(cluster).order_pods(pods) == pods
        return [pod.name for pod in LargestFirst(cluster).order_pods(pods)]

    def test_the_greatest_share_of_the_largest_node_counts(self) -> None:
        cluster = make.cluster(nodes=[make.node(cpu=64, gpus=8), make.node(name="x", cpu=8)])
        asked = {"cpu": 4, "gpu": 2}, {"cpu": 24}, {"cpu": 4, "gpu": 4}
        assert self.put_in_order(cluster, *asked) == ["p2", "p1", "p0"]

    def test_of_equal_shares_the_next_one_counts_and_then_the_order_stays(self) -> None:
        cluster = make.cluster(nodes=[make.node(cpu=64, gpus=8)])
        asked = {"cpu": 4, "gpu": 4}, {"cpu": 32}, {"cpu": 16, "gpu": 4}, {"cpu": 16, "gpu": 4}
        assert self.put_in_order(cluster, *asked) == ["p2", "p3", "p0", "p1"]

    def test_of_cards_their_memory_and_their_cores_count(self) -> None:
        cluster = make.cluster(nodes=[make.hami_node(cpu=64, cards=4)])
        small = {"gpu": 2, "gpumem": 1000, "gpucores": 10}
        asked = small, {"gpu": 1, "gpumem": 12000}, {"gpu": 1, "gpumem": 100, "gpucores": 90}, {"gpu": 1, "gpucores": 10}  # fmt: skip
        assert self.put_in_order(cluster, *asked) == ["p3", "p2", "p1", "p0"]

    def test_what_no_node_has_does_not_count(self) -> None:
        cluster = make.cluster(nodes=[make.node(cpu=4)])
        assert self.put_in_order(cluster, {"cpu": 1, "gpu": 1}, {"cpu": 2}) == ["p1", "p0"]

    def test_of_parts_with_equal_pods_the_one_with_more_pods_is_first(self) -> None:
        cluster = make.cluster(nodes=[make.node(cpu=4)])
        for i in range(5):
            cluster.see_pod(make.pod(name=f"p{i}", cpu=1 + (i == 4)))
        pods = [cluster.pods[f"default/p{i}"] for i in range(5)]
        cuts = {"none": (0, 0), "one": (0, 1), "three": (1, 4), "large": (4, 5)}
        parts = [Team(name, pods=tuple(pods[at:end])) for name, (at, end) in cuts.items()]
        ordered = LargestFirst(cluster).order_parts(parts)
        assert [part.name for part in ordered] == ["large", "three", "one", "none"]

    def test_the_largest_pods_are_gathered_first_though_others_have_more_cards_in_all(self) -> None:
        cluster = make.cluster(nodes=[make.node(cpu=64, gpus=8)])
        for i in range(5):
            cluster.see_pod(make.pod(name=f"p{i}", gpu=1 + (i == 4)))
        pods = [cluster.pods[f"default/p{i}"] for i in range(5)]
        small, large = Kind(pods[:4], 4, ANY_ROWS), Kind(pods[4:], 1, ANY_ROWS)
        for kinds in permutations((small, large)):
            assert [one.least for one in AsWritten(cluster).order_kinds(kinds)] == [4, 1]
            assert [one.least for one in LargestFirst(cluster).order_kinds(kinds)] == [1, 4]
