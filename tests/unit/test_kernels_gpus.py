"""The card-picking kernel against its twin, over random nodes and pods."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from scheduler.api import names
from scheduler.api.reasons import CARD_CODES, CardRefusal
from scheduler.kernels.devices import choose, gpus
from scheduler.schema import columns as c
from scheduler.shapes.boards import Boards, Shape
from scheduler.state.cluster import Cluster
from tests import make, slices
from tests.model import card_situations
from tests.oracles import hami as twin
from tests.unit import compiled

property_settings = settings(
    max_examples=slices.count_examples(300),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def built(node_cards: Sequence[twin.Card]) -> tuple[Cluster, int]:
    """The node behind another one, its cards' use written straight into the columns."""
    node = make.hami_node(
        name="node",
        cards=[
            make.card(
                uuid=card.uuid, index=card.index, sharers=card.count, mib=card.mem, cores=card.cores,
                model=card.model, numa=card.numa, mode=card.mode, healthy=card.health,
            )
            for card in node_cards
        ],
        cordoned=[card.uuid for card in node_cards if card.cordoned],
    )  # fmt: skip
    cluster = make.cluster(nodes=[make.hami_node(name="a-decoy", cards=2), node])
    row = cluster.nodes.find_row("node")
    columns = cluster.cards.columns
    start = cluster.registers.list_card_rows(row)[0]
    for d, card in enumerate(sorted(node_cards, key=lambda card: card.index), start):
        columns.used[:, d] = (card.used_cores, card.used_mem, card.used)
    span = slice(start, start + len(node_cards))
    pool = cluster.registers.find_pool(0, row)
    cluster.nodes.columns.pools.used[:, pool] = columns.used[:, span].sum(axis=1)
    return cluster, row


def wire_container(asked: twin.Container, name: str) -> make.Json:
    if not asked.nums:
        return make.container(name=name, sidecar=asked.kind == "sidecar")
    by_share = asked.percent != twin.PERCENT_UNSET
    return make.container(
        name=name,
        gpu=asked.nums,
        gpumem=None if by_share else asked.mem,
        gpumem_percent=asked.percent if by_share else None,
        gpucores=asked.cores,
        sidecar=asked.kind == "sidecar",
    )


def shape_of(cluster: Cluster, pod: twin.Pod) -> tuple[Shape, Boards]:
    slot, core, memory = pod.weights
    annotations = {
        names.HAMI_GPU_POLICY: pod.policy,
        names.NUMA_BIND: "true" if pod.numa_bind else "0",
        names.HAMI_WEIGHTS: f"slot={slot},core={core},memory={memory}",
        names.USE_TYPE: pod.use_type,
        names.NOUSE_TYPE: pod.nouse_type,
        names.USE_UUID: pod.use_uuid,
        names.NOUSE_UUID: pod.nouse_uuid,
    }
    if pod.vgpu_mode is not None:
        annotations[names.VGPU_MODE] = pod.vgpu_mode
    made = [wire_container(one, f"c{i}") for i, one in enumerate(pod.containers)]
    n_init = sum(one.kind != "app" for one in pod.containers)
    record = cluster.see_pod(
        make.pod(init_containers=made[:n_init], containers=made[n_init:], annotations=annotations)
    )
    cycle = make.cycle(cluster=cluster)
    shape = cycle.get_shape(record) if record else None
    assert shape is not None
    cycle.boards.refresh(shape)
    return shape, cycle.boards


def kernel_choice(node_cards: Sequence[twin.Card], pod: twin.Pod) -> twin.Choice:
    """What the kernel chose, in the twin's words."""
    cluster, row = built(node_cards)
    shape, boards = shape_of(cluster, pod)
    s, nodes = boards.get_world(shape).scratch, cluster.nodes.columns
    n = choose.choose_devices(nodes, cluster.cards.columns, shape.ask, row, s)
    if n < 0:
        codes = {
            CARD_CODES[CardRefusal(i)]: count for i, count in enumerate(s.codes.tolist()) if count
        }
        return twin.Choice(fits=False, reasons=Counter(codes))
    choice = twin.Choice(picks=[[] for _ in pod.containers])
    for p in range(n):
        slot = int(s.pick_slot[p])
        uuid = cluster.cards.find_uuid(int(s.picks[p]))
        cores = int(shape.ask.containers[c.ASK_CORES, slot])
        choice.picks[slot].append((uuid, int(s.pick_mib[p]), cores))
    for j, d in enumerate(cluster.registers.list_card_rows(row)):
        cores, mib, slots = s.peak[:, j].tolist()
        if slots:
            choice.charge[cluster.cards.find_uuid(d)] = (slots, mib, cores)
    return choice


def test_choose_picks_charges_and_refuses_exactly_like_hami() -> None:
    """900 random pods and nodes, which between them meet nearly every reason HAMi knows."""
    seen: Counter[str] = Counter()

    @given(card_situations.situations())
    @settings(property_settings, max_examples=slices.count_examples(900))
    def agree(situation: tuple[list[twin.Card], twin.Pod]) -> None:
        node_cards, pod = situation
        expected = twin.choose(node_cards, pod)
        seen.update(["fits"] if expected.fits else expected.reasons.keys())
        assert kernel_choice(node_cards, pod) == expected

    agree()
    assert len(seen) >= 10
    assert seen["fits"] > slices.scale_bound(50)


@given(card_situations.nodes())
@property_settings
def test_node_score_is_hamis_to_the_last_bit_of_float32(node_cards: list[twin.Card]) -> None:
    cluster, row = built(node_cards)
    score = gpus.score_node(cluster.nodes.columns, cluster.registers.find_pool(0, row))
    assert float(score) == float(twin.node_score(node_cards))


def test_a_node_with_one_total_of_zero_scores_zero_whatever_is_in_use() -> None:
    """HAMi gives such a node 0, not the sum of what is left: it is the emptiest there is."""
    node_cards = [twin.Card("GPU-0", 0, cores=0, used=2, used_mem=8192)]
    cluster, row = built(node_cards)
    assert float(twin.node_score(node_cards)) == 0.0
    assert float(gpus.score_node(cluster.nodes.columns, cluster.registers.find_pool(0, row))) == 0.0


def test_mutex_sorts_idle_cards_first_even_where_numa_bind_is_asked() -> None:
    """HAMi looks for the word mutex before it looks at numa-bind, and counts reasons accordingly."""
    node_cards = [
        twin.Card("GPU-0", 0, numa=0),
        twin.Card("GPU-1", 1, numa=1),
        twin.Card("GPU-2", 2, numa=1, used=1, used_mem=100),
    ]
    pod = twin.Pod((twin.Container(nums=2, mem=100),), policy="mutex", numa_bind=True)
    assert kernel_choice(node_cards, pod) == twin.choose(node_cards, pod)


@pytest.mark.parametrize("numa_bind", [False, True])
@pytest.mark.parametrize(
    "policy",
    [
        "binpack", "spread", "numa", "topology-aware", "mutex", "binpack,numa", "numa,binpack", "spread,numa",
        "spread,binpack", "binpack,spread", "mutex,binpack",
    ],
)  # fmt: skip
def test_every_policy_picks_in_hamis_order_with_and_without_numa_bind(
    policy: str, *, numa_bind: bool
) -> None:
    used = [0, 3, 2, 1, 0, 1]
    node_cards = [
        twin.Card(f"GPU-{i}", i, numa=i % 2, used=n, used_mem=500 * n) for i, n in enumerate(used)
    ]
    pod = twin.Pod((twin.Container(nums=2, mem=100),), policy=policy, numa_bind=numa_bind)
    choice = twin.choose(node_cards, pod)
    assert choice.fits
    assert kernel_choice(node_cards, pod) == choice


ONE = twin.Pod((twin.Container(nums=1, mem=1000),))
TWO = replace(ONE, containers=(twin.Container(nums=2, mem=1000),))
CARD = twin.Card("GPU-0", 0)


@pytest.mark.parametrize(
    ("pod", "card", "code"),
    [
        (ONE, replace(CARD, health=False), "CardNotHealth"),
        (ONE, replace(CARD, cordoned=True), "CardCordoned"),
        (replace(ONE, use_type="A100"), CARD, "CardTypeMismatch"),
        (replace(ONE, nouse_type="t4"), CARD, "CardTypeMismatch"),
        (replace(ONE, vgpu_mode="mps"), CARD, "CardTypeMismatch"),
        (replace(ONE, use_uuid="GPU-1"), CARD, "CardUuidMismatch"),
        (replace(ONE, nouse_uuid="GPU-1, GPU-0"), CARD, "CardUuidMismatch"),
        (ONE, replace(CARD, count=2, used=2), "CardTimeSlicingExhausted"),
        (replace(ONE, policy="mutex"), replace(CARD, used=1), "ExclusiveDeviceAllocateConflict"),
        (ONE, replace(CARD, used_mem=15385), "CardInsufficientMemory"),
        (
            twin.Pod((twin.Container(nums=1, mem=1, cores=30),)),
            replace(CARD, used=1, used_cores=71),
            "CardInsufficientCore",
        ),
        (
            twin.Pod((twin.Container(nums=1, mem=1, cores=100),)),
            replace(CARD, used=1),
            "ExclusiveDeviceAllocateConflict",
        ),
        (ONE, replace(CARD, used=1, used_cores=100), "CardComputeUnitsExhausted"),
        (ONE, replace(CARD, mode="mig"), "CardMigTopologyInfeasible"),
        (TWO, CARD, "NodeInsufficientDevice"),
    ],
)
def test_each_reason_of_hami_is_given_for_its_card(
    pod: twin.Pod, card: twin.Card, code: str
) -> None:
    choice = kernel_choice([card], pod)
    assert choice == twin.Choice(fits=False, reasons=Counter({code: 1}))
    assert choice == twin.choose([card], pod)


@pytest.mark.parametrize(
    ("percent", "mib", "expected"),
    [(50, 15361, 7680), (1, 60, 1), (100, 15360, 15360), (33, 100, 33)],
)
def test_a_share_of_a_card_is_floored_and_never_0_mib(
    percent: int, mib: int, expected: int
) -> None:
    """0 MiB would mean no limit to the library inside the container."""
    choice = kernel_choice(
        [twin.Card("GPU-0", 0, mem=mib)], twin.Pod((twin.Container(nums=1, percent=percent),))
    )
    assert choice.picks == [[("GPU-0", expected, 0)]]


@compiled.needs_jit
def test_choose_is_compiled_in_exactly_one_version() -> None:
    cluster, row = built([twin.Card("GPU-0", 0)])
    shape, boards = shape_of(cluster, twin.Pod((twin.Container(nums=1, mem=1),)))
    choose.choose_devices(
        cluster.nodes.columns,
        cluster.cards.columns,
        shape.ask,
        row,
        boards.get_world(shape).scratch,
    )
    assert len(compiled.versions(choose.choose_devices)) == 1
