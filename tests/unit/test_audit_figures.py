"""Stranded resources: small clusters counted by hand, and what must hold of any cluster."""

import random

import numpy as np
import pytest

from scheduler.api import names, wire
from scheduler.audit import reasons
from scheduler.measure import figures as m
from scheduler.measure import typical
from scheduler.measure.figures import Figures
from scheduler.measure.typical import Typical, TypicalPod
from scheduler.modes.fragmentation import FragmentGauge
from scheduler.state.cluster import Cluster
from scheduler.state.demand import DemandShape
from tests import make
from tests.model import life, workloads

GIB = 2**30
MIB = 40 * 1024
ONE = DemandShape(4000, 8 * GIB, 1, 0, 100, 100, family=names.GPU)
HALF = DemandShape(2000, 4 * GIB, 1, 0, 50, 50, family=names.GPU)
TWO = DemandShape(8000, 8 * GIB, 2, 0, 100, 100, family=names.GPU)
PLAIN = DemandShape(1000, 2 * GIB)
LEAN = DemandShape(3000, 0)


def judges(*pods: tuple[DemandShape, float]) -> Typical:
    return Typical(
        pods=tuple(TypicalPod(*pod) for pod in pods),
        gpu_seen=0, plain_seen=0, gpu_assumed=False, plain_assumed=False,
    )  # fmt: skip


def gpu_node(**figures: object) -> wire.Node:
    cards = make.cards(count=4, mib=MIB)
    return make.hami_node(**{"name": "g", "cards": cards, "cpu": 16, "memory": "64Gi", **figures})  # type: ignore[arg-type]


def holder(name: str, charges: str, *, node: str = "g", cpu: float = 0, memory: str = "0", **more: str) -> wire.Pod:  # fmt: skip
    """A pod that holds cards as HAMi writes them, ``uuid,NVIDIA,MiB,cores:`` each, one a container."""
    notes = {names.HAMI_NODE: node, names.HAMI_ALLOCATED: charges.replace(":", ":;")}
    asked = [record.split(",")[2:] for record in charges.split(":")[:-1]]
    containers = [
        make.container(
            name=f"c{i}", gpu=1, gpumem=mib, gpucores=cores,
            cpu=f"{0 if i else int(cpu * 1000)}m", memory="0" if i else memory,
        )
        for i, (mib, cores) in enumerate(asked)
    ]  # fmt: skip
    return make.pod(name=name, node=node, annotations=notes | more, containers=containers)


def plain(name: str, node: str, cpu: object, memory: object) -> wire.Pod:
    return make.pod(name=name, node=node, cpu=cpu, memory=memory)


def measured(nodes: list[wire.Node], pods: list[wire.Pod], *kinds: tuple[DemandShape, float]) -> Figures:  # fmt: skip
    return m.measure_cluster(make.cluster(nodes=nodes, pods=pods), judges(*kinds))


def of(figures: Figures, figure: int, node: int = 0) -> list[float]:
    return [round(float(value), 9) for value in figures.amounts[figure, :, node]]


def test_a_node_without_memory_strands_all_its_free_cores() -> None:
    nodes = [make.node(name="n", cpu=64, memory="128Gi")]
    figures = measured(nodes, [plain("p", "n", 24, "127Gi")], (PLAIN, 10))
    assert of(figures, m.CAPACITY) == [64, 128, 0, 0]
    assert of(figures, m.USED) == [24, 127, 0, 0]
    assert of(figures, m.FREE) == [40, 1, 0, 0]
    # The last GiB is too little of memory itself: that is used up, not stranded.
    assert of(figures, m.STRANDED) == of(figures, m.DEAD) == [40, 0, 0, 0]
    assert reasons.write_reason(figures, 0) == "40 cores and 1 GiB free: too little memory; 10 of 10 typical pods do not fit"  # fmt: skip


def test_cores_count_by_the_chance_that_the_next_core_asked_is_kept_off() -> None:
    nodes = [make.node(name="n", cpu=64, memory="128Gi")]
    figures = measured(nodes, [plain("p", "n", 24, "128Gi")], (PLAIN, 6), (LEAN, 2))
    # 6 cores of 12 asked come with memory; the others can have all forty.
    assert of(figures, m.STRANDED) == [20, 0, 0, 0]
    assert of(figures, m.DEAD) == [0, 0, 0, 0]


def test_an_empty_node_strands_nothing_and_neither_does_a_full_one() -> None:
    every = ((ONE, 3.0), (HALF, 5.0), (TWO, 1.0), (PLAIN, 8.0))
    full = holder("p", "".join(f"GPU-{i},NVIDIA,{MIB},100:" for i in range(4)), cpu=16, memory="64Gi")  # fmt: skip
    for pods, free in ([], [16, 64, 4, 160]), ([full], [0, 0, 0, 0]):
        figures = measured([gpu_node()], pods, *every)
        assert of(figures, m.FREE) == free
        assert of(figures, m.STRANDED) == of(figures, m.DEAD) == [0, 0, 0, 0]
        assert not reasons.write_reason(figures, 0)


def test_gpus_without_cores_are_stranded_for_the_pods_that_need_the_cores() -> None:
    one_card = holder("p", f"GPU-0,NVIDIA,{MIB},100:", cpu=13, memory="8Gi")
    figures = measured([gpu_node()], [one_card], (ONE, 24), (HALF, 7))
    # Three cores are enough for a half and not for a whole: 24 of 31 cannot take the three GPUs.
    assert of(figures, m.FREE) == [3, 56, 3, 120]
    # Memory: ONE asks 24 · 8 GiB and lacks the cores, HALF 7 · 4 GiB and fits.
    memory = 56 * 192 / (192 + 28)
    assert of(figures, m.STRANDED) == pytest.approx([0, memory, 3 * 24 / 31, 120 * 24 / 31])
    assert of(figures, m.DEAD) == [0, 0, 0, 0]
    assert reasons.write_reason(figures, 0) == (
        "3 GPUs (120 GiB) free, 3 cores and 56 GiB left: too little CPU; 24 of 31 typical GPU pods do not fit"
    )


def test_too_few_free_gpus_are_another_cause_than_no_gpu_with_enough_free() -> None:
    four, whole = TWO._replace(cards=4), holder("p", f"GPU-0,NVIDIA,{MIB},100:")
    figures = measured([gpu_node(cpu=64)], [whole], (HALF, 5), (TWO, 3), (four, 7))
    assert reasons.write_reason(figures, 0) == (
        "3 GPUs (120 GiB) free, 64 cores and 64 GiB left: too few free GPUs for pods of 4 or more GPUs; 7 of 15 typical GPU "
        "pods do not fit"
    )
    halves = holder("p", "".join(f"GPU-{i},NVIDIA,{MIB // 2},50:" for i in range(4)))
    figures = measured([gpu_node(cpu=64)], [halves], (HALF, 5), (TWO, 7))
    assert reasons.write_reason(figures, 0).endswith(
        "no GPU with enough free; 7 of 12 typical GPU pods do not fit"
    )


def test_what_is_left_of_cards_is_stranded_for_pods_that_need_more_of_one() -> None:
    quarter_left = "".join(f"GPU-{i},NVIDIA,{MIB * 3 // 4},75:" for i in range(3))
    figures = measured([gpu_node()], [holder("p", quarter_left)], (ONE, 1), (HALF, 3), (TWO, 1))
    # The fourth card serves ONE and HALF, so three quarters strand for them, and all of it for TWO.
    gpus = 0.75 * 4 / 5 + 1.75 / 5
    assert of(figures, m.STRANDED)[2:] == pytest.approx([gpus, 40 * gpus])
    assert of(figures, m.DEAD)[2:] == [0.75, 30]


def test_compute_is_stranded_where_the_memory_of_the_card_is_gone() -> None:
    card = make.cards(count=1, mib=MIB)
    figures = measured([gpu_node(cards=card)], [holder("p", f"GPU-0,NVIDIA,{MIB},20:")], (HALF, 1))
    assert of(figures, m.STRANDED)[2:] == of(figures, m.DEAD)[2:] == [0.8, 0]


def test_pods_without_a_limit_on_compute_use_as_much_of_it_as_of_the_memory() -> None:
    card = make.cards(count=1, mib=MIB)
    figures = measured([gpu_node(cards=card)], [holder("p", f"GPU-0,NVIDIA,{MIB},0:")], (HALF, 1))
    assert of(figures, m.USED)[2:] == [1, 40]
    assert of(figures, m.STRANDED)[2:] == [0, 0]


def test_whole_gpus_without_hami_serve_no_shares() -> None:
    nodes = [make.node(name="n", cpu=16, memory="64Gi", gpus=4)]
    busy = make.pod(name="p", node="n", cpu=1, memory="1Gi", gpu=1)
    whole = measured(nodes, [busy], (ONE, 1), (HALF, 9))
    assert of(whole, m.USED) == [1, 1, 1, 0]
    assert of(whole, m.STRANDED) == [0, 0, 0, 0]
    shares = measured(nodes, [busy], (HALF, 9))
    assert of(shares, m.STRANDED)[2:] == of(shares, m.DEAD)[2:] == [3, 0]
    assert reasons.write_reason(shares, 0).endswith("would fit even if the node were empty")


def test_devices_of_a_second_family_are_counted_and_stranded_by_themselves() -> None:
    """They were no GPUs at all beside cards that are told one by one."""
    nodes = [gpu_node(allocatable={names.AMD_GPU: 4})]
    busy = make.pod(name="p", node="g", cpu=1, memory="1Gi", requests={names.AMD_GPU: 1})
    amd = ONE._replace(family=names.AMD_GPU)
    both = measured(nodes, [busy], (HALF, 1), (amd, 1))
    assert of(both, m.CAPACITY)[2:] == [8, 160]
    assert of(both, m.USED)[2:] == [1, 0]
    assert of(both, m.STRANDED)[2:] == [0, 0]
    # Nobody asks AMD's: no pod can use them, and those of the first family are as they were.
    assert of(measured(nodes, [busy], (HALF, 1)), m.STRANDED)[2:] == [3, 0]


def test_pods_that_could_never_run_on_a_node_do_not_strand_it() -> None:
    a100 = HALF._replace(use_types=("A100",))
    selects = PLAIN._replace(selector=(("zone", "b"),))
    figures = measured([gpu_node()], [], (HALF, 1), (a100, 9), (selects, 9), (PLAIN, 1))
    assert figures.hosted[:, 0].tolist() == [1, 1]
    assert of(figures, m.STRANDED) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "more",
    [
        {"unschedulable": True},
        {"taints": [("node.kubernetes.io/not-ready", "", "NoExecute")]},
    ],
)
def test_a_node_that_takes_no_pods_is_closed_not_stranded(more: dict[str, object]) -> None:
    pods = [holder("p", f"GPU-0,NVIDIA,{MIB},100:", cpu=16, memory="4Gi")]
    figures = measured([gpu_node(**more)], pods, (ONE, 1), (PLAIN, 1))
    assert of(figures, m.FREE) == of(figures, m.STRANDED) == [0, 0, 0, 0]
    assert of(figures, m.CLOSED) == [0, 60, 3, 120]
    assert reasons.write_reason(figures, 0).startswith("out of service")


def test_cards_out_of_order_are_closed() -> None:
    cards = [make.card(uuid="a", mib=MIB, healthy=False), make.card(uuid="b", index=1, mib=MIB)]
    figures = measured([gpu_node(cards=cards, cordoned=[])], [], (ONE, 1))
    assert of(figures, m.CLOSED)[2:] == of(figures, m.FREE)[2:] == [1, 40]


def test_a_malformed_node_is_left_out() -> None:
    bad = make.node(name="bad", annotations={names.HAMI_REGISTER: "{"})
    assert measured([bad, make.node(name="good")], []).names == ("good",)


def test_typical_pods_are_those_seen_once_enough_are() -> None:
    pods = [make.pod(name=f"g{i}", cpu=2, memory="4Gi", gpu=1, gpumem_percent=50, gpucores=50) for i in range(30)]  # fmt: skip
    pods += [make.pod(name=f"c{i}", cpu=1, memory="2Gi") for i in range(31)]
    pods += [make.pod(name=f"d{i}", cpu=9, memory="2Gi") for i in range(5)]
    cluster = make.cluster(nodes=[gpu_node()], pods=pods)
    found = typical.find_typical(cluster, fixed={f"default/d{i}" for i in range(5)})
    assert (found.gpu_seen, found.gpu_assumed) == (30, False)
    assert (found.plain_seen, found.plain_assumed) == (31, False)
    assert [pod.shape for pod in found.pods] == [HALF, PLAIN]
    assert [pod.pods for pod in found.pods] == pytest.approx([30, 31], rel=1e-2)


def test_with_few_pods_seen_assumed_ones_judge() -> None:
    found = typical.find_typical(make.cluster(nodes=[gpu_node()]))
    assert found.gpu_assumed
    assert found.plain_assumed
    assert {pod.shape.cards for pod in found.pods} == {0, 1, 2, 4, 8}
    assert sum(pod.pods for pod in found.pods if pod.shape.cards) == pytest.approx(1, rel=0.1)
    assert found.pods[-1].shape == DemandShape(1000, 4 * GIB)
    without_gpus = typical.find_typical(make.cluster(nodes=[make.node()]))
    assert [pod.shape.cards for pod in without_gpus.pods] == [0]


def test_pods_come_as_often_as_they_are_seen_and_rare_ones_are_not_typical() -> None:
    pods = [make.pod(name=f"a{i}", cpu=1) for i in range(96)]
    pods += [make.pod(name=f"b{i}", cpu=2 + i) for i in range(4)]
    found = typical.find_typical(make.cluster(nodes=[make.node()], pods=pods))
    assert [(pod.shape.cpu, pod.pods) for pod in found.pods] == [(1000, 96)]


def filled(seed: int) -> Cluster:
    """A random cluster with pods placed by our own cycle."""
    rng = random.Random(seed)
    town = life.Town.founded(rng, 24)
    for _ in range(120):
        record = town.comes(rng.choice(list(workloads.PODS)))
        town.cycle.schedule([record], explain=False)
    return town.cluster


@pytest.mark.parametrize("seed", range(8))
def test_stranded_is_part_of_free_and_free_part_of_capacity(seed: int) -> None:
    cluster = filled(seed)
    figures = m.measure_cluster(cluster, typical.find_typical(cluster))
    capacity, used, free, closed, stranded, dead, spare = figures.amounts
    assert (figures.amounts >= 0).all()
    assert (stranded + spare <= free + 1e-9).all()
    assert (dead <= stranded + 1e-9).all()
    assert (stranded <= free + 1e-9).all()
    assert capacity == pytest.approx(used + free + closed)
    assert stranded.sum() > 0


@pytest.mark.parametrize("seed", range(4))
def test_a_pod_that_goes_never_lowers_what_is_free(seed: int) -> None:
    cluster = filled(seed)
    judge = typical.find_typical(cluster)
    before = m.measure_cluster(cluster, judge).amounts
    for uid in sorted(cluster.pods)[::7]:
        cluster.drop_pod(uid)
        after = m.measure_cluster(cluster, judge).amounts
        assert (after[m.FREE] >= before[m.FREE] - 1e-9).all()
        before = after


@pytest.mark.parametrize("seed", range(4))
def test_the_measure_is_that_of_fgd_where_cards_have_one_figure(seed: int) -> None:
    """Nodes without memory limits, shares with equal figures: the kernel and this must say the same."""
    rng = np.random.default_rng(seed)
    cluster = make.cluster(
        nodes=[
            make.hami_node(
                name=f"n{i}", cards=make.cards(count=4, prefix=f"n{i}", mib=1000), cpu=12
            )
            for i in range(6)
        ]
    )
    cycle = make.cycle(cluster=cluster)
    shapes: set[DemandShape] = set()
    for i in range(40):
        share = int(rng.choice([20, 50, 100]))
        pod = make.pod(name=f"p{i}", cpu=int(rng.integers(1, 4)), gpu=1, gpumem_percent=share, gpucores=share)  # fmt: skip
        record = cluster.see_pod(pod)
        assert record is not None
        cycle.schedule([record], explain=False)
        cpu = record.template.requests.amounts[0][1]
        shapes.add(DemandShape(cpu, 0, 1, 0, share, share, family=names.GPU))
    # As often each, so that none is too rare to be typical.
    counts = dict.fromkeys(shapes, 1.0)
    gauge = FragmentGauge(cluster, counts)
    judge = judges(*counts.items())
    found = m.measure_cluster(cluster, judge).amounts[m.STRANDED, m.GPU].sum()
    assert found * 1000 == pytest.approx(gauge.read(), rel=1e-4)
    assert found > 0


def test_a_node_full_of_pods_strands_all_that_is_free_on_it() -> None:
    figures = measured([gpu_node(pods=1)], [plain("p", "g", 4, "4Gi")], (HALF, 2), (PLAIN, 1))
    assert of(figures, m.STRANDED) == of(figures, m.DEAD) == [12, 60, 4, 160]
    assert reasons.write_reason(figures, 0).endswith(
        "no room for another pod (maxPods); 2 of 2 typical GPU pods do not fit"
    )


def test_cores_beside_gpus_in_use_are_spare_unless_a_pod_seen_could_use_them() -> None:
    full = holder("p", "".join(f"GPU-{i},NVIDIA,{MIB},100:" for i in range(4)), cpu=2, memory="8Gi")
    figures = measured([gpu_node()], [full], (ONE, 24))
    assert of(figures, m.FREE) == of(figures, m.SPARE) == [14, 56, 0, 0]
    assert of(figures, m.STRANDED) == [0, 0, 0, 0]
    # A pod without GPU was seen that could run there: the cores are of use again.
    assert of(measured([gpu_node()], [full], (ONE, 24), (PLAIN, 1)), m.SPARE) == [0, 0, 0, 0]
    # By its selector it could not.
    elsewhere = PLAIN._replace(selector=(("zone", "b"),))
    assert of(measured([gpu_node()], [full], (ONE, 24), (elsewhere, 1)), m.SPARE) == [14, 56, 0, 0]


def test_assumed_pods_without_gpu_make_no_use_of_cores_beside_gpus() -> None:
    cluster = make.cluster(nodes=[gpu_node(), make.node(name="n", cpu=8, memory="8Gi")])
    judge = Typical(
        pods=(TypicalPod(PLAIN, 1.0),),
        gpu_seen=0, plain_seen=0, gpu_assumed=False, plain_assumed=True,
    )  # fmt: skip
    figures = m.measure_cluster(cluster, judge)
    assert figures.names == ("g", "n")
    assert of(figures, m.SPARE) == [16, 64, 0, 0]
    assert of(figures, m.SPARE, 1) == [0, 0, 0, 0]


def test_too_little_of_itself_is_spare_not_usable() -> None:
    nodes = [make.node(name="n", cpu=8, memory="8Gi")]
    figures = measured(nodes, [plain("p", "n", 6, "1Gi")], (LEAN, 1))
    assert of(figures, m.FREE) == [2, 7, 0, 0]
    assert of(figures, m.SPARE) == [2, 7, 0, 0]
    assert of(figures, m.STRANDED) == [0, 0, 0, 0]


def test_nodes_and_pods_may_come_and_go_while_it_is_measured() -> None:
    """The operator measures a step at a time, and goes on with its work between two steps."""
    rng = random.Random(7)
    cluster = make.cluster(nodes=[gpu_node(name=f"g{i}") for i in range(6)])
    kinds = judges(*((shape, 10) for shape in (ONE, HALF, TWO, PLAIN, LEAN)))
    for round_ in range(20):
        steps = m.measure_in_steps(cluster, kinds)
        for i, _ in enumerate(steps):
            name = f"g{rng.randrange(100)}"
            if rng.random() < 0.5 and cluster.nodes.rows:
                cluster.drop_node(rng.choice([*cluster.nodes.rows]))
            else:
                cluster.see_node(gpu_node(name=name))
            cluster.see_pod(plain(f"p{round_}-{i}", name, 1, "1Gi"))
    figures = m.measure_cluster(cluster, kinds)
    assert figures.names == tuple(sorted(cluster.nodes.rows))
