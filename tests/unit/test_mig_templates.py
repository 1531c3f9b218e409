"""MIG as HAMi up to 2.9 has it: tables of templates, and a card in use keeps its template."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import hami_templates, names
from scheduler.api.cards import TEMPLATES_MAX, Place, list_uses
from scheduler.api.door import events
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.modes import carved_tables
from scheduler.schema import card_parts
from scheduler.shapes import cold
from scheduler.state import checks
from scheduler.state.carvings import CarvingTable
from scheduler.state.cluster import Cluster
from scheduler.state.demand import DemandShape
from scheduler.state.pods import PodRecord
from tests import make, slices
from tests.model.mig_templates import (
    A100,
    GOLDEN,
    TABLES,
    Json,
    make_card,
    make_cluster,
    make_settings,
)
from tests.oracles import mig_templates as twin
from tests.unit import test_cold, test_device_maps

# The pods that choose as HAMi does.
HAMI = {"hami.io/gpu-scheduler-policy": "binpack"}


def place(cluster: Cluster, name: str, mib: int = 5000, gpu: int = 1, **asked: Any) -> str:
    """What is written on a pod; empty if it fits nowhere."""
    pod = make.pod(name=name, gpu=gpu, gpumem=mib, **asked)
    record = cluster.see_pod(pod)
    assert record is not None
    cycle = make.cycle(cluster=cluster)
    cycle.learn()
    binds = cycle.schedule([record]).binds
    checks.verify(cluster)
    assert not checks.list_overcommitted(cluster)
    return write(cluster, binds[0].devices) if binds else ""


def write(cluster: Cluster, devices: Any) -> str:
    slots = make.read_slots(devices)
    driver = cluster.nodes.devices.cards[0]
    notes = driver.write_answer("n", slots, 1).annotations
    assert notes[names.HAMI_TO_ALLOCATE] == notes[names.HAMI_ALLOCATED]
    assert names.HAMI_MIG_ALLOCATIONS not in notes
    assert driver.is_answered(notes, slots)
    return notes[names.HAMI_ALLOCATED]


def bind(cluster: Cluster, name: str, text: str, **asked: Any) -> PodRecord:
    """A pod that runs and has this text."""
    asked = {"gpu": 1, "gpumem": 5000} | asked
    notes = {names.HAMI_ALLOCATED: text}
    bound = cluster.see_pod(make.pod(name=name, node="n", annotations=notes, **asked))
    assert bound is not None
    checks.verify(cluster)
    return bound


@pytest.mark.parametrize("case", GOLDEN["cases"])
@pytest.mark.parametrize("restarts", [False, True])
def test_instances_are_those_that_hamis_own_functions_choose(
    case: dict[str, Any], restarts: bool
) -> None:
    """Also where the scheduler knows no more than what stands on the pods, which HAMi's scheduler has written."""
    model, running = case["table"], dict[int, tuple[str, int, int]]()
    cluster = make_cluster(model=model)
    for number, (gone, mib, gpu, cores, text) in enumerate(case["steps"]):
        for one in gone:
            del running[one]
            cluster.drop_pod(f"default/p{one}")
        if restarts:
            cluster = make_cluster(model=model)
            for one, (held, asked_mib, asked) in running.items():
                bind(cluster, f"p{one}", held, gpu=asked, gpumem=asked_mib)
        got = place(cluster, f"p{number}", mib, gpu, gpucores=cores, annotations=HAMI)
        assert got == text, number
        if text:
            running[number] = text, mib, gpu


STEPS = st.lists(
    st.tuples(st.sampled_from([1, 5000, 5120, 9000, 10_240, 20_000, 20_481, 40_960]), st.integers(0, 3)),
    min_size=1,
    max_size=16,
)  # fmt: skip


# Templates that name large instances first, and several alike before others.
ODD = [
    [{"name": "3g.20gb", "core": 42, "memory": 20480, "count": 1}, {"name": "1g.5gb", "core": 14, "memory": 5120, "count": 3}],
    [{"name": "2g.10gb", "core": 28, "memory": 10240, "count": 2}, {"name": "3g.20gb", "core": 42, "memory": 20480, "count": 1}],
    [{"name": "1g.5gb", "core": 14, "memory": 5120, "count": 3}, {"name": "2g.10gb", "core": 28, "memory": 10240, "count": 2}],
    [{"name": "4g.20gb", "core": 56, "memory": 20480, "count": 1}, {"name": "2g.10gb", "core": 28, "memory": 10240, "count": 1}],
    [{"name": "7g.40gb", "core": 100, "memory": 40960, "count": 1}],
]  # fmt: skip
TABLE = st.sampled_from([TABLES[A100]["geometries"], ODD])


def list_instances(geometries: list[list[Json]]) -> list[list[twin.Instance]]:
    return [
        [
            twin.Instance(one["memory"], int(one["name"][0]))
            for one in template
            for _ in range(one["count"])
        ]
        for template in geometries
    ]


@settings(max_examples=slices.count_examples(150), deadline=None)
@given(STEPS, TABLE, st.booleans())
def test_instances_are_chosen_as_the_rules_say(
    steps: list[tuple[int, int]], table: list[list[Json]], by_hami: bool
) -> None:
    """By HAMi's order, and by ``keel`` while no demand is known."""
    n_cards = 1 if by_hami else 2
    cluster, templates = make_cluster(n_cards, geometries=table), list_instances(table)
    taken: dict[str, tuple[int, tuple[int, int]]] = {}
    for i, (mib, leaves) in enumerate(steps):
        if leaves == 3 and taken:
            name = list(taken)[mib % len(taken)]
            cluster.drop_pod(f"default/{name}")
            del taken[name]
        cards: list[twin.Used | None] = []
        for j in range(n_cards):
            used = frozenset(at for card, at in taken.values() if card == j)
            # A card whose memory or sharers do not suffice by their sum is refused before.
            free = 40_960 - sum(templates[t][k].mib for t, k in used)
            cards.append(used if free >= mib else None)
        if not by_hami:
            expected = twin.choose_by_keel(templates, mib, cards)
        elif cards[0] is not None and (at := twin.choose_by_hami(templates, mib, cards[0])):
            expected = 0, *at
        else:
            expected = None
        got = place(cluster, f"p{i}", mib, annotations=HAMI if by_hami else {})
        assert got.partition(",")[0] == (
            f"GPU-{expected[0]}[{expected[1]}-{expected[2]}]" if expected else ""
        )
        if expected:
            taken[f"p{i}"] = expected[0], (expected[1], expected[2])


def test_a_card_in_use_keeps_its_template_and_an_idle_one_takes_another() -> None:
    cluster = make_cluster()
    assert place(cluster, "a", 19_000) == "GPU-0[2-0],NVIDIA,20480,42:;"
    assert place(cluster, "b", 5000) == "GPU-0[2-1],NVIDIA,20480,42:;"
    assert place(cluster, "c", 5000) == ""
    cluster.drop_pod("default/a")
    cluster.drop_pod("default/b")
    assert place(cluster, "d", 9000) == "GPU-0[1-1],NVIDIA,10240,28:;"


def test_keel_takes_the_template_that_the_pods_to_come_fill() -> None:
    """HAMi takes the first template, of seven small instances, and a larger pod fits no more."""
    pods = [make.pod(name=f"seen{i}", gpu=1, gpumem=9000) for i in range(70)]
    for notes, second in ((HAMI, ""), ({}, "GPU-0[1-1],NVIDIA,10240,28:;")):
        cluster = make_cluster()
        for pod in pods:
            cluster.see_pod(pod)
        template = "1" if second else "0"
        assert place(cluster, "a", annotations=notes) == f"GPU-0[{template}-0],NVIDIA,5120,14:;"
        assert place(cluster, "b", 9000, annotations=notes) == second
    # While nothing is known of them it is HAMi's choice as well.
    assert place(make_cluster(), "a") == "GPU-0[0-0],NVIDIA,5120,14:;"


@settings(max_examples=slices.count_examples(100), deadline=None)
@given(
    TABLE,
    st.dictionaries(st.sampled_from([5000, 9000, 20_000, 40_000]), st.integers(1, 9), min_size=1),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.data(),
)
def test_what_fits_counts_by_how_often_it_is_requested(
    table: list[list[Json]], counts: dict[int, int], departures: float, data: st.DataObject
) -> None:
    templates, carvings = list_instances(table), CarvingTable()
    known = make_settings(geometries=table).config.nvidia.geometries[0].geometries
    v = carvings.number_parts(hami_templates.list_parts(known))
    template = data.draw(st.integers(0, len(templates) - 1))
    places = data.draw(st.sets(st.integers(0, len(templates[template]) - 1)))
    bits = 0
    for at in places:
        part = carvings.find_part(v, Place("", at, 1, template))
        bits |= int(carvings.carvings.parts[part, card_parts.PART_BITS])
    demand = {
        DemandShape(1000, 1, mib=mib, family=names.GPU): float(n) for mib, n in counts.items()
    }
    sizes = carvings.sizes[v]
    requested = Counter[int]()
    for mib, n in counts.items():
        requested[min(size for size in sizes if size >= mib)] += n
    wanted = twin.measure_fitting(templates, frozenset((template, at) for at in places), requested)
    found = carved_tables.compute_fitting(carvings, demand, departures)[v, bits]
    assert found == pytest.approx((0.25 + 2 * departures) * wanted)


def test_the_place_counts_instances_where_a_template_names_several_alike_first() -> None:
    """HAMi writes the number of the entry for the first pod of a card, and its plugin takes that for another instance."""
    mixed = [{"name": "1g.5gb", "core": 14, "memory": 5120, "count": 3}, {"name": "4g.20gb", "core": 58, "memory": 20480, "count": 1}]  # fmt: skip
    cluster = make_cluster(geometries=[mixed])
    assert place(cluster, "a", 9000) == "GPU-0[0-3],NVIDIA,20480,58:;"
    assert place(cluster, "b", 9000) == ""
    assert place(cluster, "c", 5000, gpu=3).count("GPU-0[0-") == 3


def test_a_pod_that_wants_a_whole_gpu_gets_the_largest_instance() -> None:
    """Tables may give it more memory than the register gives the card."""
    cluster = make_cluster(model="H100-80GB")
    record = cluster.see_pod(make.pod(name="a", gpu=1))
    assert record is not None
    (made,) = make.cycle(cluster=cluster).schedule([record]).binds
    assert write(cluster, made.devices) == "GPU-0[3-0],NVIDIA,81920,100:;"
    assert not checks.list_overcommitted(cluster)
    assert place(cluster, "b") == ""


def test_a_pod_that_runs_is_read_as_it_was_decided() -> None:
    cluster = make_cluster()
    record = cluster.see_pod(make.pod(name="a", gpu=2, gpumem=9000))
    assert record is not None
    (made,) = make.cycle(cluster=cluster).schedule([record]).binds
    text = write(cluster, made.devices)
    again = make_cluster()
    bound = bind(again, "a", text, gpu=2, gpumem=9000)
    held = [again.read_held(again.pods[bound.uid]), cluster.read_held(cluster.pods[record.uid])]
    assert held[0] == held[1]
    assert [again.cards.columns.cut[0], again.find_claim_problem(bound)] == [
        cluster.cards.columns.cut[0],
        None,
    ]


@pytest.mark.parametrize("name", ["GPU-0[", "GPU-0[1]", "GPU-0[a-0]", "GPU-0[0-0", "GPU-0[-1-0]", "GPU-0[0-0]x", "GPU-0[0-9999]"])  # fmt: skip
def test_a_name_that_cannot_be_read_closes_the_card_and_is_told(name: str) -> None:
    cluster = make_cluster()
    bound = bind(cluster, "a", f"{name},NVIDIA,5120,14:;")
    said = str(cluster.find_claim_problem(bound))
    assert said.startswith(f"metadata.annotations[{names.HAMI_ALLOCATED}]: device")
    assert place(cluster, "b") == ""
    cluster.drop_pod(bound.uid)
    assert place(cluster, "c") != ""


@pytest.mark.parametrize("name", ["GPU-0", "GPU-0[9-0]", "GPU-0[2-2]"])
def test_an_instance_that_the_tables_do_not_have_may_be_any(name: str) -> None:
    cluster = make_cluster()
    bound = bind(cluster, "a", f"{name},NVIDIA,5120,14:;")
    said = str(cluster.find_claim_problem(bound))
    assert ("names an instance of GPU-0 that the GPU cannot have" in said) == (name != "GPU-0")
    assert place(cluster, "b") == ""
    cluster.drop_pod(bound.uid)
    assert place(cluster, "c") != ""


def test_pods_of_two_templates_on_one_card_close_it() -> None:
    cluster = make_cluster()
    bind(cluster, "a", "GPU-0[0-0],NVIDIA,5120,14:;")
    bind(cluster, "b", "GPU-0[1-1],NVIDIA,10240,28:;", gpumem=9000)
    assert place(cluster, "c") == ""
    cluster.drop_pod("default/a")
    assert place(cluster, "d", 9000) == "GPU-0[1-2],NVIDIA,10240,28:;"


def test_only_cards_in_mig_mode_without_profiles_are_cut_by_tables() -> None:
    cluster = make_cluster()
    other = make_card("GPU-1", 1) | {"type": "NVIDIA L4"}
    shared = make_card("GPU-2", 2) | {"mode": "hami-core"}
    cluster.see_node(make.hami_node(name="m", cards=[other, shared], cpu=64))
    carving = cluster.cards.columns.carving
    rows = cluster.registers.list_card_rows(cluster.nodes.find_row("m"))
    assert [bool(carving[d]) for d in (0, *rows)] == [True, False, False]


def test_tables_of_mig_may_come_and_change_while_pods_wait_and_run() -> None:
    """As HAMi up to 2.9 has them: the register does not say what its cards can be cut into."""
    node = make.hami_node(name="n", cards=[make_card()])
    tables = TABLES[A100]["geometries"]
    world = test_device_maps.World()
    world.see(node, test_device_maps.ask("a", nvidia_gpu=1, nvidia_gpumem=9000))
    assert world.decide() == {}
    known = [{"models": [A100], "allowedGeometries": tables}]
    world.configure(test_device_maps.of_nvidia(knownMigGeometries=known))
    world.relist(node)
    assert world.decide() == {"a": "n"}
    assert world.used() == [(28, 10_240, 1)]
    # Its instance means nothing by other tables, so nothing else is cut out of its card until it is gone.
    known = [{"models": [A100], "allowedGeometries": tables[3:]}]
    world.configure(test_device_maps.of_nvidia(knownMigGeometries=known))
    world.relist(node)
    world.see(test_device_maps.ask("b", nvidia_gpu=1, nvidia_gpumem=5000))
    assert world.decide() == {}
    gone = world.pods.pop("default/a")
    world.engine.handle(events.Gone("Pod", gone.metadata.uid), world.now)
    assert world.decide() == {"b": "n"}
    assert world.used() == [(100, 40_960, 1)]


def test_kinds_that_come_for_the_first_time_get_what_a_board_would_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cold, "_LIKE", 1 << 30)
    rng = np.random.default_rng(3)
    cluster = make_cluster()
    for i in range(70):
        cards = [make_card(f"GPU-{i}-{j}", j) for j in range(2)]
        cluster.see_node(make.hami_node(name=f"n{i}", cards=cards, cpu=64))
    cycle, placed = make.cycle(cluster=cluster), Counter[bool]()
    for i in range(80):
        bound = [pod.uid for pod in cluster.pods.values() if pod.node]
        if bound and rng.random() < 0.3:
            cluster.drop_pod(bound[int(rng.integers(len(bound)))])
        mib = int(rng.choice([1000, 5000, 9000, 15_000, 30_000]))
        pod = make.pod(
            name=f"p{i}", gpu=int(rng.integers(1, 3)), gpumem=mib, cpu=int(rng.integers(1, 4))
        )
        record = cluster.see_pod(pod)
        assert record is not None
        wanted = test_cold.expected(cycle, cluster, record)
        binds = cycle.schedule([record]).binds
        assert [test_cold.told(one) for one in binds] == ([wanted] if wanted else [])
        placed[bool(binds)] += 1
    assert placed[True] > 60
    checks.verify(cluster)


@pytest.mark.parametrize("n_templates", range(1, TEMPLATES_MAX + 1))
def test_parts_clash_with_themselves_and_with_all_of_other_templates(n_templates: int) -> None:
    templates = [[(f"{i + 1}g.5gb", 5000 + i, 2, 10)] for i in range(n_templates)]
    carvings = CarvingTable()
    parts = hami_templates.list_parts(templates)
    carvings.number_parts(parts)
    rows = carvings.carvings.parts
    bits, clashes = rows[:, card_parts.PART_BITS], rows[:, card_parts.PART_CLASH]
    for p, one in enumerate(parts):
        for q, other in enumerate(parts):
            together = one.template == other.template and p != q
            assert bool(bits[p] & clashes[q]) != together
    # No part is beside the one of which nobody knows where it is.
    assert (clashes & bits[len(parts)] != 0).all()


def test_all_instances_of_a_card_go_for_one_of_another_template() -> None:
    """A card takes another template only when it is idle; one of its own template needs one place only."""
    engine = Engine(test_device_maps.CONFIG, pace=PROMPT, is_shared=False)
    known = [{"models": [A100], "allowedGeometries": TABLES[A100]["geometries"]}]
    engine.handle(events.Seen(test_device_maps.of_nvidia(knownMigGeometries=known)), 0.0)
    engine.handle(events.Seen(make.hami_node(name="n", cards=[make_card()], cpu=64)), 0.0)
    for i in range(4):
        mib = 5000 if i == 3 else 9000
        engine.handle(events.Seen(make.pod(name=f"low{i}", gpu=1, gpumem=mib, priority=0)), 0.0)
    assert len(engine.decide(0.0, Unlimited()).binds) == 4
    engine.handle(events.Seen(make.pod(name="middle", gpu=1, gpumem=9000, priority=5)), 1.0)
    (evict,) = engine.decide(1.0, Unlimited()).evicts
    (victim,) = evict.victims
    assert victim != "default/low3"
    engine.handle(events.Gone("Pod", victim), 2.0)
    (made,) = engine.decide(60.0, Unlimited()).binds
    engine.handle(events.BindDone(made.uid), 60.0)
    engine.handle(events.Seen(make.pod(name="high", gpu=1, gpumem=19_000, priority=10)), 61.0)
    (evict,) = engine.decide(61.0, Unlimited()).evicts
    assert len(evict.victims) == 4
    for uid in evict.victims:
        engine.handle(events.Gone("Pod", uid), 62.0)
    (made,) = engine.decide(120.0, Unlimited()).binds
    (use,) = list_uses(made.devices)
    assert use.place is not None
    assert (use.place.template, use.place.start) == (2, 0)
    checks.verify(engine._cluster)
