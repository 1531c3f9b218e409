"""Pods of kinds that come for the first time: what is decided without a board is what a board would say."""

import random
from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.api.door.decisions import Bind
from scheduler.api.placement import MODES, NODE_POLICIES, Mode, Placement
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.kernels import parts, place
from scheduler.kernels.cold import bounds, choose, classes, known
from scheduler.kernels.devices import pools
from scheduler.kernels.modes import keel
from scheduler.modes import learning
from scheduler.schema import cold as schema
from scheduler.schema import columns as c
from scheduler.shapes import cold
from scheduler.shapes.boards import Boards
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from tests import make, slices
from tests.model import life, peer_objects, workloads
from tests.model.clusters import Json, Kit
from tests.unit import compiled, twin_worlds

KEEL = Placement()
PLACEMENTS = [
    *(Placement(mode=mode) for mode in MODES),
    *(Placement(node_policy=policy) for policy in NODE_POLICIES),
    KEEL,
]
ODD = Kit(even=False, beside=0.5)
CUT = Kit(even=False, beside=0.2, cut=0.6)
ALL_CUT = Kit(odd=False, cut=1.0)
PLAIN = Kit(odd=False, taints=0, closed=0, beside=0.5)


@pytest.fixture(autouse=True)
def _no_kind_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a kind comes, it is decided as if for the first time."""
    monkeypatch.setattr(cold, "_LIKE", 1 << 30)


def expected(cycle: Cycle, cluster: Cluster, pod: PodRecord) -> Bind | None:
    """Where a pod goes, and on which cards, when all nodes are scored."""
    cycle._begin()
    key = cycle._make_key(pod)
    assert key is not None
    anew = Boards(cluster, cycle.learner)
    shape = anew.get_shape(key)
    anew.refresh(shape)
    cycle.boards._fit_scratch(shape)
    keys, rank = shape.board.key, cluster.nodes.columns.rank
    rows = np.flatnonzero(keys >= 0).tolist()
    if not rows:
        return None
    row = min(rows, key=lambda row: (-keys[row], rank[row]))
    world, picks = anew.get_world(shape), []
    if shape.ask.containers.shape[1] and cluster.nodes.find_managed(shape.ask.family)[row]:
        s, n = world.scratch, parts.choose_cards(world, shape.ask, row)
        picks = [(cluster.cards.find_uuid(s.picks[p]), int(s.pick_slot[p])) for p in range(n)]
    return Bind(pod.uid, cluster.nodes.find_name(row), tuple(picks))  # type: ignore[arg-type]


def told(bind: Bind) -> Bind:
    """A decision in the words of ``expected``: which card for which container."""
    picks = [
        (use.uuid, slot) for slot, uses in enumerate(make.read_slots(bind.devices)) for use in uses
    ]
    return Bind(bind.uid, bind.node, tuple(picks))  # type: ignore[arg-type]


def decide(cycle: Cycle, cluster: Cluster, pod: PodRecord) -> str:
    """Decide for one pod without a board, and compare; what came of it."""
    before = len(cycle.boards._shapes)
    wanted = expected(cycle, cluster, pod)
    outcome = cycle.schedule([pod], explain=False)
    if wanted is None:
        assert [hold.uid for hold in outcome.holds] == [pod.uid]
    else:
        (bind,) = outcome.binds
        assert sorted(told(bind).devices) == sorted(wanted.devices)
        assert told(bind).node == wanted.node
    if len(cycle.boards._shapes) > before:
        return "board"
    return "placed" if wanted else "held"


def asks(pod: Json, resource: str) -> bool:
    return any(resource in one["resources"]["requests"] for one in pod["spec"]["containers"])


def story(seed: int, kit: Kit, placement: Placement, pods: int) -> Counter[str]:
    """Pods of all kinds come to a cluster that has run for a while, and some leave; what came of how many."""
    rng = random.Random(seed)
    made = twin_worlds.world(
        rng, kit, rng.randrange(4, 90), load=rng.randrange(160),
        past=rng.choice([0, 100]), churn=rng.random() < 0.7,
    )  # fmt: skip
    cluster, config = made.cluster, Config(placement=placement)
    cycle = make.cycle(cluster=cluster, config=config)
    cycle.learn()
    seen = Counter(departures=int(cycle.learner.tables.rates[c.RATE_DEPARTURES] > 0))
    for i in range(pods):
        pod = twin_worlds.drawn(rng, kit, f"new-{i}")
        record = cluster.pods[made.see(pod)]
        if rng.random() < 0.1:
            cycle.learn(anew=True)
        became = decide(cycle, cluster, record)
        seen[became] += 1
        for family in (names.GPU, names.AMD_GPU):
            seen[f"{became}, of {family}"] += asks(pod.raw, family)
        if rng.random() < 0.3:
            cluster.drop_pod(rng.choice(sorted(cluster.pods)))
    checks.verify(cluster)
    return seen


@settings(
    max_examples=slices.count_examples(60), deadline=None, suppress_health_check=list(HealthCheck)
)
@given(seed=st.integers(0, 2**32 - 1), kit=st.sampled_from([ODD, PLAIN, CUT, ALL_CUT]))
def test_keel_without_a_board_finds_the_node_and_cards_that_scoring_all_finds(
    seed: int, kit: Kit
) -> None:
    story(seed, kit, KEEL, pods=12)


def test_the_stories_hold_and_place_pods_of_both_families_and_know_departures() -> None:
    seen: Counter[str] = Counter()
    for seed in range(12):
        seen += story(seed, ODD, KEEL, pods=12)
    families = (names.GPU, names.AMD_GPU)
    each = [f"{became}, of {one}" for became in ("placed", "held") for one in families]
    assert min(seen[what] for what in (*each, "departures")) > 1
    assert not seen["board"]


@pytest.mark.parametrize("placement", PLACEMENTS, ids=str)
def test_every_mode_without_a_board_finds_what_scoring_all_finds(placement: Placement) -> None:
    for seed in slices.pick_part((7, 2, 8, 4)):
        story(seed, ODD, placement, pods=10)
        story(seed, CUT, placement, pods=10)


@pytest.mark.parametrize("placement", [KEEL, Placement(mode=Mode.LEAST_ALLOCATED)], ids=str)
@pytest.mark.parametrize("seed", slices.pick_part((0, 1, 2)))
def test_whatever_happens_in_between_is_known_to_the_next_decision(
    monkeypatch: pytest.MonkeyPatch, seed: int, placement: Placement
) -> None:
    """Nodes come, go and change, strangers run and binds fail; rows grow from 64 on."""
    monkeypatch.setattr(learning, "ENOUGH", 5)
    rng = random.Random(seed)
    town = life.Town.founded(rng, 50, Config(placement=placement))
    cluster, cycle = town.cluster, town.cycle
    kinds = [kind for kind in workloads.PODS if kind not in {"prefers", "half-gpu"}]
    for step in range(150):
        town.something_happens(rng)
        if step % 10 == 0:
            cycle.learn(anew=True)
        decide(cycle, cluster, town.comes(rng.choice(kinds)))
    checks.verify(cluster)


@pytest.mark.parametrize(
    ("card", "asked"),
    [
        ({"healthy": False}, {}),
        ({"mode": "mig"}, {}),
        ({"model": "NVIDIA-P4"}, {"annotations": {names.USE_TYPE: "T4"}}),
        ({"mode": "mps"}, {"annotations": {names.VGPU_MODE: "hami-core"}}),
    ],
    ids=["unhealthy", "mig", "model", "mode"],
)
def test_nodes_whose_cards_differ_in_more_than_amounts_are_not_alike(
    card: dict[str, Any], asked: dict[str, Any]
) -> None:
    """The first node by name cannot take the pod, and the second, with as much free, can."""
    cluster = make.cluster(
        nodes=[
            make.hami_node(name="a", cards=[make.card(uuid="a", **card)]),
            make.hami_node(name="b", cards=[make.card(uuid="b")]),
        ]
    )
    pod = cluster.see_pod(make.pod(name="p", gpu=1, gpumem=1000, **asked))
    assert pod is not None
    (bind,) = make.cycle(cluster=cluster).schedule([pod]).binds
    assert bind.node == "b"


def test_images_that_nodes_have_count_without_a_board() -> None:
    """Nodes that are alike in amounts differ in them, and of pods that ask nothing they decide."""
    rng, cluster = np.random.default_rng(5), Cluster()
    images, on = ["a:1", "b:1", "c:1"], {}
    for i in range(70):
        has = {name: int(rng.integers(1, 3000)) for name in images if rng.random() < 0.5}
        on[f"n{i:02}"] = has
        cluster.see_node(msgspec.convert(peer_objects.node(f"n{i:02}", images=has), wire.Node))
    pods = [peer_objects.pod(images=[str(rng.choice(images)), "elsewhere"]) for _ in range(30)]
    cycle, chosen = make.cycle(cluster=cluster), set()
    for pod in peer_objects.named(pods):
        record = cluster.see_pod(msgspec.convert(pod, wire.Pod))
        assert record is not None
        assert decide(cycle, cluster, record) == "placed"
        node = cluster.pods[record.uid].node
        assert pod["spec"]["containers"][0]["image"] in on[node]
        chosen.add(node)
    assert 1 < len(chosen) < len(pods)


@settings(
    max_examples=slices.count_examples(25), deadline=None, suppress_health_check=list(HealthCheck)
)
@given(seed=st.integers(0, 2**32 - 1), kit=st.sampled_from([ODD, PLAIN, CUT, ALL_CUT]))
def test_no_bound_is_less_than_what_it_bounds(seed: int, kit: Kit) -> None:
    rng = random.Random(seed)
    made = twin_worlds.world(
        rng, kit, 40, load=120, past=rng.choice([0, 100]), churn=rng.random() < 0.8
    )
    cluster = made.cluster
    cycle = twin_worlds.cycle_of(made)
    nodes, cards = cluster.nodes.columns, cluster.cards.columns
    for i in range(8):
        shape = cycle.get_shape(cluster.pods[made.see(twin_worlds.drawn(rng, kit, f"new-{i}"))])
        assert shape is not None
        cycle.boards.refresh(shape)
        tables, kept = (
            cycle.learner.get_tables(shape.ask.family),
            cold_figures(cycle, cluster, shape.ask),
        )
        weight, points = (
            shape.ask.prefers.mode.weight,
            shape.board.part // shape.ask.prefers.mode.unit,
        )
        if shape.ask.rules.walk:
            continue
        for row in np.flatnonzero(nodes.has_gpu & (shape.board.part >= 0)).tolist():
            given = nodes, cards, shape.ask, tables, kept, row
            if nodes.pools.carved[cluster.registers.find_pool(shape.ask.family, row)]:
                assert keel.score_loss(bounds.bound_parts(*given)) * weight >= points[row]
                continue
            assert keel.score_loss(bounds.bound_node(*given)) * weight >= points[row]
            if cluster.nodes.find_managed(shape.ask.family)[row] and shape.ask.containers.shape[1]:
                assert keel.score_loss(bounds.bound_cards(*given)) * weight >= points[row]
                if choose.is_plain(shape.ask, kept, row):
                    assert keel.score_loss(bounds.bound_rooms(*given)) * weight >= points[row]


def test_what_is_free_on_cards_bounds_shares_more_closely_than_amounts_do() -> None:
    rng = random.Random(1)
    made = twin_worlds.world(rng, PLAIN, 40, load=120, past=100)
    cluster, cycle = made.cluster, twin_worlds.cycle_of(made)
    nodes, cards = cluster.nodes.columns, cluster.cards.columns
    closer, looser = 0, 0
    for i in range(20):
        shape = cycle.get_shape(cluster.pods[made.see(twin_worlds.drawn(rng, PLAIN, f"new-{i}"))])
        assert shape is not None
        cycle.boards.refresh(shape)
        if shape.ask.rules.walk or not shape.ask.containers.shape[1]:
            continue
        tables, kept = (
            cycle.learner.get_tables(shape.ask.family),
            cold_figures(cycle, cluster, shape.ask),
        )
        managed = cluster.nodes.find_managed(shape.ask.family)
        for row in np.flatnonzero(managed & (shape.board.part >= 0)).tolist():
            if choose.is_plain(shape.ask, kept, row):
                given = nodes, cards, shape.ask, tables, kept, row
                gained = bounds.bound_rooms(*given) - bounds.bound_node(*given)
                closer += gained > keel.STEP
                looser += gained < -keel.STEP
    assert closer > 2 * looser
    assert closer > 20


def test_a_closed_card_of_another_kind_says_nothing_of_what_is_taken_of_the_others() -> None:
    """Of the small card a pod would take five times as much: a bound by it would pass a good node over."""
    small = make.card(uuid="small", mib=15_360, healthy=False)
    large = make.card(uuid="large", index=1, mib=81_920)
    cluster = make.cluster(nodes=[make.hami_node(name="n", cards=[small, large], cpu="64")])
    cycle = make.cycle(cluster=cluster)
    running = cluster.see_pod(make.pod(gpu=1, gpumem=40_960))
    assert running is not None
    (first,) = cycle.schedule([running]).binds
    assert make.read_slots(first.devices)[0][0].uuid == "large"
    # Where all that counts is what is taken.
    tables = cycle.learner.tables
    price, value = np.ones(cluster.nodes.capacity), np.zeros_like(tables.value)
    tables = cycle.learner._tables[0] = tables.replace(price=price, value=value)
    pod = cluster.see_pod(make.pod(name="second", gpu=1, gpucores=30, gpumem=4_096))
    assert pod is not None
    shape = cycle.get_shape(pod)
    assert shape is not None
    cycle.boards.refresh(shape)
    nodes, cards = cluster.nodes.columns, cluster.cards.columns
    row, kept = cluster.nodes.find_row("n"), cold_figures(cycle, cluster, shape.ask)
    cost = bounds.bound_node(nodes, cards, shape.ask, tables, kept, row)
    points = shape.board.part[row] // shape.ask.prefers.mode.unit
    assert keel.score_loss(cost) * shape.ask.prefers.mode.weight >= points > 0


def cold_figures(cycle: Cycle, cluster: Cluster, ask: c.Ask) -> Any:
    """What is known of every node to a pod that asks a family, read anew."""
    nodes, cards, tables = (
        cluster.nodes.columns,
        cluster.cards.columns,
        cycle.learner.get_tables(ask.family),
    )
    scratch = cycle.boards._world.scratch
    kept = schema.make_empty(nodes.valid.size, cards.numa.size, has_parts=True).known
    kept.rounded[0] = tables.keel.weight.sum() / tables.rates[c.RATE_KEEL]
    for row in np.flatnonzero(nodes.valid).tolist():
        pool = pools.find_pool(nodes, ask, row)
        known.refresh_node(nodes, cards, tables, kept, pool, row, scratch)
    return kept


def test_nothing_is_kept_of_cards_for_families_whose_devices_are_only_counted() -> None:
    """Else each such family would keep as much as the one with cards, of which there may be 160,000."""
    cluster = make.cluster(
        nodes=[
            make.hami_node(name="cards", cards=4),
            make.node(name="counted", allocatable={names.AMD_GPU: 4}),
        ]
    )
    cycle = make.cycle(cluster=cluster)
    amd = {names.AMD_GPU: 2}
    asks: list[dict[str, Any]] = [{}, {"gpu": 1}, {"requests": amd, "limits": amd}]
    for i, asked in enumerate(asks * 2):
        record = cluster.see_pod(make.pod(name=f"p{i}", **asked))
        assert record is not None
        assert decide(cycle, cluster, record) == "placed"
    kept = {pool: len(one.figures.known.card) for pool, one in cycle.cold._kept.items()}
    n_cards = cluster.cards.columns.numa.size
    find_family = cluster.nodes.devices.find_family
    assert kept == {
        -1: n_cards,
        find_family(names.GPU): n_cards,
        find_family(names.AMD_GPU): 0,
    }


def boards_after(monkeypatch: pytest.MonkeyPatch, *batches: int, cpu: str = "10m") -> int:
    """How many boards there are when batches of so many like pods have come."""
    monkeypatch.undo()
    cluster = make.cluster(nodes=[make.node(name="n", cpu="1")])
    cycle = make.cycle(cluster=cluster)
    for k, n in enumerate(batches):
        pods = [cluster.see_pod(make.pod(name=f"p{k}-{i}", cpu=cpu)) for i in range(n)]
        cycle.schedule([pod for pod in pods if pod is not None])
    return len(cycle.boards._shapes)


def test_a_kind_that_came_a_few_times_has_no_board(monkeypatch: pytest.MonkeyPatch) -> None:
    assert boards_after(monkeypatch, 1, 1, 2) == 0


def test_a_kind_that_keeps_coming_gets_a_board(monkeypatch: pytest.MonkeyPatch) -> None:
    assert boards_after(monkeypatch, 1, 1, 1, 1, 1) == 1


def test_a_run_of_like_pods_gets_a_board(monkeypatch: pytest.MonkeyPatch) -> None:
    assert boards_after(monkeypatch, 5) == 1


def test_pods_that_fit_nowhere_get_no_board(monkeypatch: pytest.MonkeyPatch) -> None:
    assert boards_after(monkeypatch, 9, 9, cpu="2") == 0


@compiled.needs_jit
def test_kernels_without_a_board_are_compiled_exactly_once() -> None:
    for placement in PLACEMENTS:
        story(1, ODD, placement, pods=6)
    counts = {
        f"{module.__name__}.{name}": len(compiled.versions(value))
        for module in (choose, classes, known, bounds, parts, place)
        for name, value in vars(module).items()
        if hasattr(value, "signatures")
    }
    assert {name: n for name, n in counts.items() if n > 1} == {}
    assert counts["scheduler.kernels.cold.choose.place_one"] == 1
