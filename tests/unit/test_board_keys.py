"""The keys by which nodes are compared hold at the highest weight, against Python's integers."""

from typing import Any

import pytest

from scheduler.api.kube_plugins import BALANCED, FIT, KubePlugins
from scheduler.api.placement import NODE_POLICIES, WEIGHT_MAX, Mode, Placement
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.kernels.devices import gpus
from scheduler.shapes.boards import Shape
from scheduler.state.cluster import Cluster
from tests import make

POINTS = 100_000
TIER = 2**60
HAMI_UNIT = 30 * 2**26
# Steps of keel's second objective.
KEEL_UNIT = 2**10
SOFT = [(f"soft-{i}", "", "PreferNoSchedule") for i in range(3)]
# Without the JIT numpy says of the arithmetic by which lots are drawn that it wraps around.
RANDOM = pytest.param(Mode.RANDOM, marks=pytest.mark.filterwarnings("ignore:overflow encountered"))
WITH_GPUS = ("idle", "full", "over-full", "whole")


def cluster_of_extremes() -> Cluster:
    """Nodes with and without GPUs, from idle to many times over-full, tainted and preferred or not."""
    nodes = [
        make.hami_node(name="idle", cards=2),
        make.hami_node(name="full", cards=1, labels={"zone": "a"}),
        make.hami_node(name="over-full", cards=1, pods=2000),
        make.node(name="whole", gpus=2, taints=SOFT),
        make.node(name="plain", labels={"zone": "a"}),
        make.node(name="tainted", taints=SOFT),
    ]
    pods = [make.pod(name="full", node="full", gpu=1)]
    pods += [make.pod(name=f"over-{i}", node="over-full", gpu=1) for i in range(900)]
    return make.cluster(nodes=nodes, pods=pods)


@pytest.mark.parametrize("policy", ["", *NODE_POLICIES])
@pytest.mark.parametrize("mode", [mode for mode in Mode if mode != Mode.RANDOM] + [RANDOM])
@pytest.mark.parametrize("figures", [{}, {"gpu": 1}])
def test_at_the_highest_weight_the_tiers_hold_and_nothing_overflows(
    mode: Mode, policy: str, figures: dict[str, Any]
) -> None:
    """Else a pod without GPUs lands on a GPU node, or a key turns negative and its node disappears."""
    cluster = cluster_of_extremes()
    settings = Config(placement=Placement(mode=mode, node_policy=policy, mode_weight=WEIGHT_MAX))
    cycle = make.cycle(cluster=cluster, config=settings)
    pod = make.pod(name="p", cpu="1m", preferred=[(100, "zone", "a")], **figures)
    record = cluster.see_pod(pod)
    assert record is not None
    shape = cycle.get_shape(record)
    assert shape is not None
    cycle.learn()
    cycle.boards.refresh(shape)
    unit = HAMI_UNIT if policy else KEEL_UNIT if mode == Mode.KEEL else 1
    # Beside the points.
    second_most = unit - 1 if mode == Mode.KEEL and not policy else 0
    assert shape.ask.prefers.mode.unit == unit
    # kube-scheduler's own sum knows no GPUs.
    avoids_gpus = not figures and (mode != Mode.KUBE_SCHEDULER or bool(policy))
    keys: dict[str, int] = {}
    for name, row in cluster.nodes.rows.items():
        part, key = int(shape.board.part[row]), int(shape.board.key[row])
        if part < 0:
            assert key == -1
            continue
        if policy:
            pool = cluster.registers.find_pool(0, row)
            steps = min(unit, int(float(gpus.score_node(cluster.nodes.columns, pool)) * 2**26))
            assert part == (unit - steps if policy == "spread" else steps) * WEIGHT_MAX * POINTS
        assert 0 <= part <= unit * WEIGHT_MAX * POINTS + second_most
        assert shape.static is not None
        scores = {
            one.name: one.points
            for one in shape.static.list_points(shape.board, row, shape.weights)
        }
        total = 3 * int(scores["TaintToleration"]) + 2 * int(scores["NodeAffinity"])
        tier = TIER if avoids_gpus and name not in WITH_GPUS else 0
        assert key == tier + unit * total * 1000 + part
        keys[name] = key
    assert set(keys) == ({"idle", "whole"} if figures else set(cluster.nodes.rows))
    if avoids_gpus:
        highest = max(key for name, key in keys.items() if name in WITH_GPUS)
        assert all(key > highest for name, key in keys.items() if name not in WITH_GPUS)


@pytest.mark.parametrize("policy", ["", *NODE_POLICIES])
@pytest.mark.parametrize("mode", [Mode.KUBE_SCHEDULER, Mode.MOST_ALLOCATED, Mode.KEEL])
def test_whatever_kube_scheduler_takes_for_weights_no_key_overflows(
    mode: Mode, policy: str
) -> None:
    """Its weights are of 32 bits; a node policy, which has the finest steps, may meet all of them."""
    highest = 2**31 - 1
    scores = ("TaintToleration", "NodeAffinity", "ImageLocality", "PodTopologySpread")
    weights = tuple((one, highest) for one in (*scores, "InterPodAffinity", FIT, BALANCED))
    placement = Placement(
        mode=mode,
        node_policy=policy,
        mode_weight=WEIGHT_MAX,
        plugins=KubePlugins(weights=weights),
    )
    cluster = cluster_of_extremes()
    cycle = make.cycle(cluster=cluster, config=Config(placement=placement))
    record = cluster.see_pod(make.pod(name="p", cpu="1m", preferred=[(100, "zone", "a")]))
    assert record is not None
    shape = cycle.get_shape(record)
    assert shape is not None
    cycle.boards.refresh(shape)
    unit = shape.ask.prefers.mode.unit
    for name, row in cluster.nodes.rows.items():
        points = shape.static.list_points(shape.board, row, shape.weights) if shape.static else []
        sum_of_words = sum(highest * int(one.points) for one in points)
        part, key = int(shape.board.part[row]), int(shape.board.key[row])
        avoids = shape.ask.rules.avoid_gpu and name not in WITH_GPUS
        assert key == (TIER if avoids else 0) + unit * 1000 * sum_of_words + part
        assert 0 <= key - (TIER if avoids else 0) < TIER
        if policy:
            # Coarser than float32, and fine enough to tell points apart.
            assert 30 <= unit < HAMI_UNIT
            assert part <= unit * WEIGHT_MAX * POINTS


def test_a_key_made_again_by_itself_is_the_key_that_all_rows_would_get() -> None:
    """A board with preferences makes all keys score by score, and later those of the rows that changed.

    By a mode of which a node's score changes as soon as a pod is there: keel knows nothing before it has learnt.
    """
    least = Config(placement=Placement(mode=Mode.LEAST_ALLOCATED))
    nodes = [make.node(name=f"node-{i}", labels={"zone": "ab"[i % 2]}) for i in range(4)]
    cluster = make.cluster(nodes=nodes)
    wanted = make.pod(name="p", cpu="1", preferred=[(100, "zone", "a")])
    record = cluster.see_pod(wanted)
    assert record is not None

    def shape_of(cycle: Cycle) -> Shape:
        shape = cycle.get_shape(record)
        assert shape is not None
        cycle.boards.refresh(shape)
        return shape

    cycle = make.cycle(cluster=cluster, config=least)
    before = shape_of(cycle).board.key.copy()
    cluster.see_pod(make.pod(name="other", node="node-0", cpu="2"))
    by_row = shape_of(cycle).board
    # Points that all nodes have are in every key, one score differs.
    assert by_row.base[0] > 0
    assert by_row.scores.shape[0] == 1
    changed = [name for name, row in cluster.nodes.rows.items() if by_row.key[row] != before[row]]
    assert changed == ["node-0"]
    anew = shape_of(make.cycle(cluster=cluster, config=least)).board
    assert by_row.key.tolist() == anew.key.tolist()
