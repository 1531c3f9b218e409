"""MIG as HAMi from v2.10 has it: the scheduler reserves a place on a card, and the device plugin makes the instance."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.api.cards import Identity, Place, list_uses
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from tests import make, slices
from tests.model.mig import A100, Json, make_card, make_cluster
from tests.oracles import mig as twin

# The pods that choose as HAMi does.
HAMI = {"hami.io/gpu-scheduler-policy": "binpack"}


def place(
    cluster: Cluster, name: str, mib: int = 4000, gpu: int = 1, **asked: Any
) -> list[Place | None]:
    """The places that a pod gets; none if it fits nowhere."""
    record = cluster.see_pod(make.pod(name=name, gpu=gpu, gpumem=mib, **asked))
    assert record is not None
    binds = make.cycle(cluster=cluster).schedule([record]).binds
    checks.verify(cluster)
    return [use.place for bind in binds for use in list_uses(bind.devices)]


def test_small_instances_come_from_the_end_and_the_smallest_profile_is_taken() -> None:
    cluster = make_cluster()
    assert place(cluster, "a", annotations=HAMI) == [Place("1g.5gb", 6, 1)]
    assert place(cluster, "b", annotations=HAMI) == [Place("1g.5gb", 5, 1)]
    assert place(cluster, "c", 9000, annotations=HAMI) == [Place("2g.10gb", 0, 2)]
    assert place(cluster, "d", 19000, annotations=HAMI) == []
    assert place(cluster, "e", 9000, annotations=HAMI) == [Place("2g.10gb", 2, 2)]
    assert place(cluster, "f", annotations=HAMI) == [Place("1g.5gb", 4, 1)]
    assert place(cluster, "g", annotations=HAMI) == []


def test_where_the_smallest_profile_has_no_place_a_larger_one_is_cut() -> None:
    cluster = make_cluster()
    for name in "abc":
        assert len(place(cluster, name, 9000)) == 1
    # Only the last slot is left, and the place of a 1g instance.
    assert place(cluster, "d", 9000) == []
    cluster.drop_pod("default/a")
    cluster.drop_pod("default/b")
    assert place(cluster, "e", 19_000) == [Place("3g.20gb", 0, 4)]


def test_keel_keeps_the_place_of_the_large_instances() -> None:
    """HAMi cuts the 2g instance at 0, and no 3g or 4g instance fits any more beside the two."""
    pods = [("a", 4000), ("b", 9000), ("c", 19_000)]
    cluster = make_cluster()
    assert [len(place(cluster, name, mib, annotations=HAMI)) for name, mib in pods] == [1, 1, 0]
    cluster = make_cluster()
    assert [place(cluster, name, mib) for name, mib in pods] == [
        [Place("1g.5gb", 6, 1)],
        [Place("2g.10gb", 4, 2)],
        [Place("3g.20gb", 0, 4)],
    ]


def test_what_is_charged_is_the_instance_and_not_what_was_asked_for() -> None:
    cluster = make_cluster()
    record = cluster.see_pod(make.pod(name="a", gpu=1, gpumem=100, gpucores=1))
    assert record is not None
    (bind,) = make.cycle(cluster=cluster).schedule([record]).binds
    assert [tuple(use)[1:3] for use in list_uses(bind.devices)] == [(4864, 15)]
    assert list(cluster.read_held(cluster.pods[record.uid]).values()) == [(15, 4864, 1)]


def test_several_instances_of_one_card_serve_one_container() -> None:
    cluster = make_cluster()
    got = place(cluster, "a", 4000, gpu=3)
    assert got == [Place("1g.5gb", start, 1) for start in (6, 5, 4)]
    assert place(cluster, "b", 4000, gpu=5) == []


def test_a_pod_that_wants_a_whole_gpu_gets_the_largest_instance() -> None:
    """It has a little less memory than the card."""
    cluster = make_cluster(2)
    record = cluster.see_pod(make.pod(name="a", gpu=1))
    assert record is not None
    (bind,) = make.cycle(cluster=cluster).schedule([record]).binds
    assert [use.place for use in list_uses(bind.devices)] == [Place("7g.40gb", 0, 8)]
    assert len(place(cluster, "b", 4000, gpu=8)) == 0
    assert len(place(cluster, "c", 4000, gpu=7)) == 7


def test_the_reason_names_the_largest_instance_that_fits() -> None:
    cluster = make_cluster()
    assert len(place(cluster, "a", 19_000)) == 1
    record = cluster.see_pod(make.pod(name="b", gpu=1, gpumem=20_000))
    assert record is not None
    cycle = make.cycle(cluster=cluster)
    (hold,) = cycle.schedule([record]).holds
    assert hold.diagnosis is not None
    assert (
        "CardMigTopologyInfeasible on 1 GPU: requested an instance with 20000 MiB, the largest that fits has 19968 MiB,"
        " on n"
    ) in str(hold.diagnosis.details)


def bind_pod(cluster: Cluster, record: PodRecord, allocations: list[Json] | None) -> PodRecord:
    """The pod as the watch shows it once it is bound, with what the annotation says of its instances."""
    made = cluster.pods[record.uid]
    marks = cluster.nodes.devices.cards[0].write_answer("n", make.read_slots(made.claim), 1)
    notes = dict(marks.annotations)
    if allocations is not None:
        notes[names.HAMI_MIG_ALLOCATIONS] = json.dumps(allocations)
    else:
        notes.pop(names.HAMI_MIG_ALLOCATIONS, None)
    bound = cluster.see_pod(
        make.pod(name=record.name, gpu=1, gpumem=4000, node="n", annotations=notes)
    )
    assert bound is not None
    checks.verify(cluster)
    return bound


def test_the_annotations_are_hamis_and_a_scheduler_that_starts_anew_reads_them() -> None:
    cluster = make_cluster()
    record = cluster.see_pod(make.pod(name="a", gpu=1, gpumem=4000))
    assert record is not None
    (bind,) = make.cycle(cluster=cluster).schedule([record]).binds
    marks = cluster.nodes.devices.cards[0].write_answer("n", make.read_slots(bind.devices), 1)
    assert marks.annotations[names.HAMI_ALLOCATED] == "GPU-0,NVIDIA,4864,15:;"
    told = json.loads(marks.annotations[names.HAMI_MIG_ALLOCATIONS])
    assert told == [
        {
            "containerIndex": 0,
            "deviceIndex": 0,
            "gpuUUID": "GPU-0",
            "profile": "1g.5gb",
            "placement": {"start": 6, "size": 1},
        }
    ]
    # The plugin adds the identity of the instance.
    told[0] |= {"migUUID": "MIG-1", "gpuInstanceID": 9, "computeInstanceID": 0}
    bound = bind_pod(cluster, record, told)
    (use,) = list_uses(bound.claim)
    assert use.identity == Identity("MIG-1", 9, 0)
    assert [use._replace(identity=None)] == list_uses(bind.devices)
    cards = cluster.nodes.devices.cards[0]
    assert cards.is_answered(
        marks.annotations | {names.HAMI_MIG_ALLOCATIONS: json.dumps(told)},
        make.read_slots(bind.devices),
    )
    assert place(cluster, "b") == [Place("1g.5gb", 5, 1)]
    cluster.drop_pod(record.uid)
    checks.verify(cluster)
    assert place(cluster, "c") == [Place("1g.5gb", 6, 1)]


def test_a_reservation_that_was_never_carried_out_counts_for_nothing_and_is_emptied() -> None:
    """HAMi's scheduler takes a shared card for unhealthy if its pod has a reservation of an instance."""
    cluster = make_cluster()
    old = {names.HAMI_MIG_ALLOCATIONS: '[{"containerIndex":0,"deviceIndex":0}]'}
    record = cluster.see_pod(make.pod(name="a", gpu=1, gpumem=4000, annotations=old))
    assert record is not None
    assert record.problem is None
    assert record.left_notes == (names.HAMI_MIG_ALLOCATIONS,)
    emptied = {names.HAMI_ALLOCATED: "GPU-0,NVIDIA,4864,15:;", names.HAMI_MIG_ALLOCATIONS: ""}
    bound = cluster.see_pod(make.pod(name="a", gpu=1, gpumem=4000, node="n", annotations=emptied))
    assert bound is not None
    assert bound.left_notes == ()
    assert cluster.find_claim_problem(bound) is None


def test_a_pod_that_names_no_instance_may_have_any() -> None:
    """Nothing else is cut out of its card, because nobody knows what is left."""
    cluster = make_cluster(2)
    record = cluster.see_pod(make.pod(name="a", gpu=1, gpumem=4000))
    assert record is not None
    make.cycle(cluster=cluster).schedule([record])
    bind_pod(cluster, record, None)
    held = {use.uuid for use in list_uses(cluster.pods[record.uid].claim)}
    got = [place(cluster, f"p{i}") for i in range(8)]
    assert [len(one) for one in got] == [1] * 7 + [0]
    uuids = {
        use.uuid
        for pod in cluster.pods.values()
        if pod.uid != record.uid
        for use in list_uses(pod.claim)
    }
    assert uuids.isdisjoint(held)


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "[1]",
        '[{"containerIndex":0}]',
        '[{"containerIndex":0,"deviceIndex":0,"gpuUUID":"GPU-0","profile":"x","placement":{"start":7,"size":9}}]',
    ],
)
def test_an_annotation_that_cannot_be_read_closes_the_card_and_is_told(text: str) -> None:
    cluster = make_cluster()
    notes = {names.HAMI_ALLOCATED: "GPU-0,NVIDIA,4864,15:;", names.HAMI_MIG_ALLOCATIONS: text}
    bound = cluster.see_pod(make.pod(name="a", gpu=1, gpumem=4000, node="n", annotations=notes))
    assert bound is not None
    assert names.HAMI_MIG_ALLOCATIONS in str(cluster.find_claim_problem(bound))
    checks.verify(cluster)
    assert place(cluster, "b") == []


def choose_by_hami(taken: set[int], mib: int) -> Place | None:
    """HAMi's choice on one card, of which these slots are taken."""
    for name, (memory, _, _, places) in sorted(
        A100.items(), key=lambda one: (one[1][0], one[1][2])
    ):
        if memory < mib:
            continue
        for start, size in sorted(places, reverse=name[0] in "13"):
            if taken.isdisjoint(range(start, start + size)):
                return Place(name, start, size)
    return None


@settings(max_examples=slices.count_examples(150), deadline=None)
@given(st.lists(st.tuples(st.integers(1, 41_000), st.integers(0, 5)), min_size=1, max_size=14))
def test_instances_are_cut_as_hami_cuts_them_whatever_came_and_went(
    steps: list[tuple[int, int]],
) -> None:
    cluster, taken = make_cluster(), dict[str, Place]()
    for i, (mib, leaves) in enumerate(steps):
        if leaves and taken:
            name = list(taken)[leaves % len(taken)]
            cluster.drop_pod(f"default/{name}")
            del taken[name]
        slots = {slot for at in taken.values() for slot in range(at.start, at.start + at.size)}
        # Beside the places HAMi looks at the memory of the whole card.
        free = 40_960 - sum(A100[at.profile][0] for at in taken.values())
        expected = choose_by_hami(slots, mib) if free >= mib else None
        got = place(cluster, f"p{i}", mib, annotations=HAMI)
        assert got == ([] if expected is None else [expected])
        if expected is not None:
            taken[f"p{i}"] = expected


def test_pods_on_cards_that_are_cut_and_on_cards_that_are_shared_come_and_go() -> None:
    rng = np.random.default_rng(5)
    cards = [make_card("GPU-0"), make.card(uuid="GPU-1", index=1), make_card("GPU-2", 2)]
    cluster = make.cluster(nodes=[make.hami_node(name="n", cards=cards, cpu=640)])
    for i in range(60):
        bound = [pod.uid for pod in cluster.pods.values() if pod.node]
        if bound and rng.random() < 0.45:
            cluster.drop_pod(bound[int(rng.integers(len(bound)))])
        else:
            place(cluster, f"p{i}", int(rng.integers(1, 20_000)), gpu=int(rng.integers(1, 3)))
        assert (cluster.cards.carvings.slots.used <= 1).all()
        assert not checks.list_overcommitted(cluster)


PROFILES = tuple(
    twin.Profile(name, mib, slices, tuple(places))
    for name, (mib, _, slices, places) in A100.items()
)


@settings(max_examples=slices.count_examples(100), deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40_192), st.integers(0, 3)), min_size=1, max_size=16))
def test_keel_cuts_where_it_loses_least(steps: list[tuple[int, int]]) -> None:
    """While no demand is known and, as far as the scheduler knows, nothing leaves."""
    cluster, taken = make_cluster(2), dict[str, tuple[int, frozenset[int], int]]()
    for i, (mib, leaves) in enumerate(steps):
        if leaves == 3 and taken:
            name = list(taken)[mib % len(taken)]
            cluster.drop_pod(f"default/{name}")
            del taken[name]
        cards = [frozenset().union(*(at for card, at, _ in taken.values() if card == j)) for j in range(2)]  # fmt: skip
        # A card whose memory does not suffice by its sum is refused before its places are looked at.
        free = [40_960 - sum(held for card, _, held in taken.values() if card == j) for j in range(2)]  # fmt: skip
        cards = [used if free[j] >= mib else frozenset(range(8)) for j, used in enumerate(cards)]
        expected = twin.choose_place(PROFILES, mib, cards)
        record = cluster.see_pod(make.pod(name=f"p{i}", gpu=1, gpumem=mib))
        assert record is not None
        binds = make.cycle(cluster=cluster).schedule([record]).binds
        uses = [use for bind in binds for use in list_uses(bind.devices)]
        assert [(int(use.uuid[-1]), *(use.place or ())[:3]) for use in uses] == [expected or ()][: len(uses)]  # fmt: skip
        assert bool(uses) == (expected is not None)
        if expected is not None:
            card, name, start, size = expected
            taken[f"p{i}"] = card, frozenset(range(start, start + size)), A100[name][0]


def test_as_few_go_as_must_for_a_large_instance() -> None:
    """A place of a 3g instance is made by those who stand on one half of the card, not by all."""
    engine = Engine(Config(), pace=PROMPT, is_shared=False)
    engine.handle(events.Seen(make.hami_node(name="n", cards=[make_card("GPU-0")], cpu=64)), 0.0)
    for i in range(7):
        engine.handle(events.Seen(make.pod(name=f"low{i}", gpu=1, gpumem=4000, priority=0)), 0.0)
    assert len(engine.decide(0.0, Unlimited()).binds) == 7
    engine.handle(events.Seen(make.pod(name="high", gpu=1, gpumem=19_000, priority=10)), 1.0)
    (evict,) = engine.decide(1.0, Unlimited()).evicts
    assert len(evict.victims) in (3, 4)
    held = {
        use.place.start
        for uid in evict.victims
        for use in list_uses(engine._cluster.pods[uid].claim)
        if use.place is not None
    }
    assert held in ({0, 1, 2, 3}, {4, 5, 6})
    for uid in evict.victims:
        engine.handle(events.Gone("Pod", uid), 2.0)
    (bind,) = engine.decide(60.0, Unlimited()).binds
    (use,) = list_uses(bind.devices)
    assert use.place is not None
    assert use.place.profile == "3g.20gb"


def test_the_instance_of_an_init_container_is_the_pods_until_its_end() -> None:
    """Also where the scheduler starts anew after the init container has ended: the plugin keeps the instance."""
    cluster = make_cluster()
    containers = [make.container(name="main")]
    init = [make.container(name="init", gpu=1, gpumem=39_000)]
    pod = make.pod(name="a", containers=containers, init_containers=init)
    record = cluster.see_pod(pod)
    assert record is not None
    (bind,) = make.cycle(cluster=cluster).schedule([record]).binds
    driver = cluster.nodes.devices.cards[0]
    notes = dict(driver.write_answer("n", make.read_slots(bind.devices), 1).annotations)
    pod = make.pod(name="a", containers=containers, init_containers=init, node="n", annotations=notes)  # fmt: skip
    pod.status.conditions = [wire.Condition(type="Initialized", status="True")]
    anew = make_cluster()
    assert anew.see_pod(pod) is not None
    checks.verify(anew)
    assert place(anew, "b") == []
    anew.drop_pod("default/a")
    assert len(place(anew, "c")) == 1
