"""Pods are counted by size from the first decision that reads it, those that came before included."""

import numpy as np

from scheduler.api.placement import Mode, Placement
from scheduler.api.pods.gpus import SIZES
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from tests import make


def _cluster() -> Cluster:
    return make.cluster(nodes=(make.node(name=f"n{i}", gpus=8) for i in range(6)))


def _cycle(cluster: Cluster, mode: Mode) -> Cycle:
    return make.cycle(cluster=cluster, config=Config(placement=Placement(mode=mode)))


def _pod(cluster: Cluster, name: str, cards: int) -> PodRecord:
    containers = [make.container(gpu=cards)]
    pod = cluster.see_pod(make.pod(name=name, uid=name, containers=containers))
    assert pod is not None
    return pod


def _place(cluster: Cluster, mode: Mode, asked: list[int], name: str) -> None:
    cycle = _cycle(cluster, mode)
    for i, cards in enumerate(asked):
        assert cycle.schedule([_pod(cluster, f"{name}{i}", cards)]).binds


def _counted(cluster: Cluster) -> list[dict[str, int]]:
    """By node."""
    nodes, find = cluster.nodes.columns, cluster.nodes.resources.find
    rows = {name: nodes.requested[find(name)] for name in SIZES if find(name) >= 0}
    return [
        {name: int(column[row]) for name, column in rows.items() if column[row]}
        for row in np.flatnonzero(nodes.valid).tolist()
    ]


def _expected(cluster: Cluster) -> list[dict[str, int]]:
    found = []
    for i in range(6):
        sizes = [SIZES[pod.template.size] for pod in cluster.pods_on.get(f"n{i}", {}).values()]
        found.append({size: sizes.count(size) for size in sizes})
    return found


def test_no_size_is_counted_while_no_mode_reads_it() -> None:
    cluster = _cluster()
    _place(cluster, Mode.KEEL, [1, 2, 4, 8], "keel")
    assert not any(name in SIZES for name in cluster.nodes.resources.values)


def test_sizes_are_counted_from_the_first_pod_that_is_clustered() -> None:
    cluster = _cluster()
    _place(cluster, Mode.KEEL, [1, 2, 4, 8, 1], "keel")
    _place(cluster, Mode.GPU_CLUSTERING, [1, 2, 2, 4], "clustered")
    assert _counted(cluster) == _expected(cluster)
    assert sum(sum(node.values()) for node in _counted(cluster)) == 9
    for uid in ("keel0", "clustered1"):
        cluster.drop_pod(uid)
    assert _counted(cluster) == _expected(cluster)
    cluster.drop_node("n0")
    checks.verify(cluster)


def test_sizes_first_read_in_a_trial_are_right_after_it() -> None:
    cluster = _cluster()
    _place(cluster, Mode.KEEL, [1, 2, 4], "keel")
    pod = _pod(cluster, "tried", 4)
    with cluster.trial() as trial:
        trial.take_away("keel1")
        assert _cycle(cluster, Mode.GPU_CLUSTERING).schedule([pod]).binds
        assert _counted(cluster) == _expected(cluster)
    assert _counted(cluster) == _expected(cluster)
    assert sum(sum(node.values()) for node in _counted(cluster)) == 3
    checks.verify(cluster)
