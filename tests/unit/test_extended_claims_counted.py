"""What a node has through a class counts for scores, for stand-ins of workloads and for KAI's totals as what a plugin offers."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from scheduler.api import wire
from scheduler.api.kube_plugins import FitScore, KubePlugins, Strategy
from scheduler.api.placement import Mode
from scheduler.config import Config
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests.operator.manifests import pod
from tests.unit.extended import RESOURCE, World, make_class


def make_world(strategy: Strategy, mode: Mode) -> World:
    config = Config()
    fit = FitScore(strategy, ((RESOURCE, 1),))
    placement = replace(config.placement, mode=mode, plugins=KubePlugins(fit=fit))
    profiles = tuple(replace(one, placement=placement) for one in config.profiles)
    return World(replace(config, placement=placement, profiles=profiles))


@pytest.mark.parametrize(
    ("strategy", "node"), [(Strategy.LEAST, "large"), (Strategy.MOST, "small")]
)
def test_the_scores_of_node_resources_count_devices_of_a_class(
    strategy: Strategy, node: str
) -> None:
    world = make_world(strategy, Mode.KUBE_SCHEDULER)
    for name, n in (("small", 2), ("large", 8)):
        world.node(name)
        world.slice(name, n)
        world.pod(f"on-{name}", nodeSelector={"kubernetes.io/hostname": name})
    assert len(world.decide()) == 2
    world.pod("p")
    assert world.decide() == ["p"]
    assert world.bound["p"] == node


@pytest.mark.parametrize("mode", [Mode.KEEL, Mode.FGD, Mode.KUBE_SCHEDULER, Mode.FIRST_FIT])
def test_pods_go_where_they_would_go_if_a_plugin_offered_the_devices(mode: Mode) -> None:
    """The same pods on nodes with as many GPUs, by a class and by NVIDIA's plugin."""
    placed = []
    for by_class in (True, False):
        config = Config()
        placement = replace(config.placement, mode=mode)
        world = World(
            replace(config, placement=placement), of_class=make_class(resource="nvidia.com/gpu")
        )
        for name, n in (("a", 8), ("b", 4), ("c", 0), ("d", 2)):
            world.node(name, cpu="32", gpus=0 if by_class else n)
            if n and by_class:
                world.slice(name, n)
        for i, n in enumerate([1, 0, 2, 4, 0, 1, 1, 0, 2, 1, 0]):
            amounts = {"cpu": "1"} | ({"nvidia.com/gpu": str(n)} if n else {})
            world.pods[f"p{i}"] = pod(f"p{i}", requests=amounts, limits=amounts)
            world.see(wire.Pod, world.pods[f"p{i}"])
            assert world.decide() == [f"p{i}"]
        placed.append(world.bound)
    assert placed[0] == placed[1]


def test_a_stand_in_of_a_workload_holds_devices_until_it_goes() -> None:
    world = World()
    world.node("n0")
    world.slice("n0", 1)
    cluster: Cluster = world.engine._cluster
    body = pod("stand-in", requests={RESOURCE: "1"})
    body["metadata"]["uid"] = "stand-in"
    (record,) = cluster.stand_ins.add("w", "main", [msgspec.convert(body, wire.Pod)])
    world.engine._cycle.schedule([record])
    checks.verify(cluster)
    world.pod("p")
    assert world.decide() == []
    cluster.stand_ins.drop(record.uid)
    checks.verify(cluster)
    assert record.uid not in cluster.claims.extended.entries
    world.pod("q", priority=-1)
    assert world.decide() == ["p"]
