"""MIG where something is amiss: promised places, claims that say little or too much, nodes that change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler.api import names, wire
from scheduler.api.cards import list_uses
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.schema import columns as c
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests import make
from tests.model.mig import Json, make_card, make_cluster

SMALL = ("1g.5gb", "2g.10gb", "3g.20gb")


def make_engine() -> Engine:
    engine = Engine(Config(), pace=PROMPT, is_shared=False)
    engine.handle(events.Seen(make.hami_node(name="n", cards=[make_card("GPU-0")], cpu=64)), 0.0)
    return engine


def see(engine: Engine, at: float, **asked: Any) -> None:
    engine.handle(events.Seen(make.pod(gpu=1, **asked)), at)


def bind_claim(
    cluster: Cluster, claim: str, allocations: str | None, gpu: int = 1, **more: Any
) -> Any:
    """A pod that runs with these annotations."""
    notes = {names.HAMI_ALLOCATED: claim}
    if allocations is not None:
        notes[names.HAMI_MIG_ALLOCATIONS] = allocations
    asked = {"gpu": gpu, "gpumem": 4000} | more
    record = cluster.see_pod(make.pod(name="a", node="n", annotations=notes, **asked))
    assert record is not None
    checks.verify(cluster)
    return record


def list_places(cluster: Cluster, n: int = 7) -> list[tuple[str, int]]:
    """The cards and slots that further small pods get."""
    found = []
    for i in range(n):
        record = cluster.see_pod(make.pod(name=f"more{i}", gpu=1, gpumem=4000))
        assert record is not None
        for bind in make.cycle(cluster=cluster).schedule([record]).binds:
            for use in list_uses(bind.devices):
                assert use.place is not None
                found.append((use.uuid, use.place.start))
    checks.verify(cluster)
    return found


def write_allocations(*places: tuple[int, int]) -> str:
    """Instances of one slice, by their place in the claim of the first container."""
    return json.dumps(
        [
            {
                "containerIndex": 0,
                "deviceIndex": device,
                "gpuUUID": "GPU-0",
                "profile": "1g.5gb",
                "placement": {"start": start, "size": 1},
            }
            for device, start in places
        ]
    )


def test_a_promised_place_is_bound_only_when_it_is_free() -> None:
    """Another pod ends while the victim is still there: the place of the victim is not the place that became free."""
    engine = make_engine()
    for i in range(2):
        see(engine, float(i), name=f"low{i}", gpumem=19_000, priority=0)
        assert len(engine.decide(float(i), Unlimited()).binds) == 1
    see(engine, 5.0, name="high", gpumem=19_000, priority=10)
    (evict,) = engine.decide(5.0, Unlimited()).evicts
    (victim,) = evict.victims
    other = ({"default/low0", "default/low1"} - {victim}).pop()
    engine.handle(events.Gone("Pod", other), 6.0)
    engine.decide(6.0, Unlimited())
    cluster = engine._cluster
    assert (cluster.cards.carvings.slots.used <= 1).all()
    engine.handle(events.Gone("Pod", victim), 7.0)
    engine.decide(70.0, Unlimited())
    assert cluster.pods["default/high"].node == "n"
    assert (cluster.cards.carvings.slots.used <= 1).all()


def test_a_group_evicts_whom_it_needs_and_no_longer_waits() -> None:
    engine = make_engine()
    for i in range(2):
        see(engine, float(i), name=f"low{i}", gpumem=19_000, priority=i)
        engine.decide(float(i), Unlimited())
    engine.handle(events.Seen(make.pod_group("gang", 2, priority=10)), 20.0)
    for i in range(2):
        pod = make.member(make.pod(name=f"high{i}", gpu=1, gpumem=9500, priority=10))
        engine.handle(events.Seen(pod), 20.0)
    at, bound = 20.0, 0
    for _ in range(8):
        outcome = engine.decide(at, Unlimited())
        bound += len(outcome.binds)
        for uid in [uid for one in outcome.evicts for uid in one.victims]:
            engine.handle(events.Gone("Pod", uid), at + 1)
        at += 400.0
    assert bound == 2
    assert (engine._cluster.cards.carvings.slots.used <= 1).all()


def test_a_node_that_learns_to_cut_its_cards_serves_pods_that_wait_already() -> None:
    """They may get more parts than there are cards, for which the working space has to be large enough."""
    card = make_card("GPU-0")
    old = {key: value for key, value in card.items() if key != "migProfiles"}
    cluster = make.cluster(nodes=[make.hami_node(name="n", cards=[old], cpu=64)])
    cycle = make.cycle(cluster=cluster)
    pod = make.pod(name="a", gpu=3, gpumem=4000, annotations={names.USE_UUID: "GPU-0"})
    record = cluster.see_pod(pod)
    assert record is not None
    assert cycle.schedule([record]).binds == []
    cluster.see_node(make.hami_node(name="n", cards=[card], cpu=64))
    (bind,) = cycle.schedule([cluster.pods[record.uid]]).binds
    assert len(list_uses(bind.devices)) == 3
    checks.verify(cluster)


@pytest.mark.parametrize("cores", [100, 2_000_000_000])
def test_a_place_on_a_card_that_is_not_cut_gives_no_more_cores(cores: int) -> None:
    cluster = make.cluster(nodes=[make.hami_node(name="n", cards=[make.card(uuid="GPU-0")])])
    claim = f"GPU-0,NVIDIA,100,{cores}:;"
    bind_claim(cluster, claim, write_allocations((0, 3)), gpumem=100, gpucores=1)
    assert cluster.cards.columns.used[c.CORES, 0] == 1


def test_a_pod_whose_places_cannot_be_read_closes_its_own_card() -> None:
    cluster = make_cluster(2)
    record = bind_claim(cluster, "GPU-1,NVIDIA,4864,15:;", "[")
    assert names.HAMI_MIG_ALLOCATIONS in str(cluster.find_claim_problem(record))
    assert {uuid for uuid, _ in list_places(cluster)} == {"GPU-0"}


@pytest.mark.parametrize(
    ("claim", "allocations"),
    [
        ("GPU-0,NVIDIA,4864,15:" * 3 + ";", write_allocations((0, 6))),
        ("GPU-0,NVIDIA,4864,15:" * 3 + ";", write_allocations((0, 6), (1, 6), (2, 6))),
        ("GPU-0,NVIDIA,4864,15:;", write_allocations((0, 6))),
    ],
)
def test_a_pod_that_names_fewer_instances_than_it_has_closes_its_card(
    claim: str, allocations: str
) -> None:
    cluster = make_cluster(2)
    bind_claim(cluster, claim, allocations, gpu=3)
    assert {uuid for uuid, _ in list_places(cluster)} == {"GPU-1"}


def test_a_pod_that_names_no_instance_closes_its_card_also_where_no_profile_is_the_whole_card() -> (
    None
):
    cluster = make_cluster(1, SMALL)
    bind_claim(cluster, "GPU-0,NVIDIA,4864,15:;", None)
    assert list_places(cluster) == []
    cluster.drop_pod("default/a")
    assert len(list_places(cluster)) == 7


@pytest.mark.parametrize("profile", ["7g.40gb", "7g.40gb+me"])
def test_the_instance_of_an_init_container_stays_also_where_the_register_does_not_know_it(
    profile: str,
) -> None:
    cluster = make_cluster()
    told = [
        {
            "containerIndex": 0,
            "deviceIndex": 0,
            "gpuUUID": "GPU-0",
            "profile": profile,
            "placement": {"start": 0, "size": 8},
        }
    ]
    notes = {
        names.HAMI_ALLOCATED: "GPU-0,NVIDIA,40192,100:;;",
        names.HAMI_MIG_ALLOCATIONS: json.dumps(told),
    }
    init = [make.container(name="init", gpu=1, gpumem=39_000)]
    pod = make.pod(name="a", node="n", init_containers=init, annotations=notes)
    pod.status.conditions = [wire.Condition(type="Initialized", status="True")]
    assert cluster.see_pod(pod) is not None
    checks.verify(cluster)
    assert list_places(cluster) == []


def test_a_register_with_more_than_any_card_has_is_refused() -> None:
    card = make_card("GPU-0")
    card["migProfiles"] = [
        card["migProfiles"][0] | {"name": f"x{i}", "memoryMB": 1000 + i} for i in range(40)
    ]
    cluster = make.cluster(nodes=[make.hami_node(name="n", cards=[card])])
    assert list_places(cluster, 1) == []
    facts = cluster.nodes.facts[cluster.nodes.find_row("n")]
    assert facts is not None
    assert "more than" in str(facts.problem)


def test_a_bind_at_another_place_is_not_the_one_that_was_sent() -> None:
    cluster = make_cluster()
    record = cluster.see_pod(make.pod(name="a", gpu=1, gpumem=4000))
    assert record is not None
    (bind,) = make.cycle(cluster=cluster).schedule([record]).binds
    driver = cluster.nodes.devices.cards[0]
    slots = make.read_slots(bind.devices)
    notes: dict[str, str] = dict(driver.write_answer("n", slots, 1).annotations)
    assert driver.is_answered(notes, slots)
    told: list[Json] = json.loads(notes[names.HAMI_MIG_ALLOCATIONS])
    told[0]["placement"]["start"] = 0
    assert not driver.is_answered(notes | {names.HAMI_MIG_ALLOCATIONS: json.dumps(told)}, slots)


def test_compute_that_is_requested_is_compared_with_what_earlier_instances_of_the_container_leave() -> (
    None
):
    cluster = make_cluster()
    small = cluster.see_pod(make.pod(name="small", gpu=1, gpumem=4000))
    assert small is not None
    assert make.cycle(cluster=cluster).schedule([small]).binds
    asking = cluster.see_pod(make.pod(name="asking", gpu=3, gpumem=9000, gpucores=30))
    plain = cluster.see_pod(make.pod(name="plain", gpu=3, gpumem=9000))
    assert asking is not None
    assert plain is not None
    (hold,) = make.cycle(cluster=cluster).schedule([asking]).holds
    assert hold.diagnosis is not None
    assert "CardInsufficientCore" in {detail.about for detail in hold.diagnosis.details}
    (bind,) = make.cycle(cluster=cluster).schedule([plain]).binds
    assert len(list_uses(bind.devices)) == 3
