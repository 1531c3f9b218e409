"""Metrics of groups: how many wait, how often they are tried, how long they take to start, and which are evicted."""

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.engine.engine import Engine
from tests import make
from tests.unit.metrics_replica import Replica, of

GANG = "gang.scheduling.koordinator.sh/"
SIZES = ("1-8", "9-64", "65-512", "513+")


def members(group: str, n: int, minimum: int, *, cpu: int = 1, priority: int = 0) -> list[wire.Pod]:
    notes = {GANG + "name": group, GANG + "min-available": str(minimum)}
    return [
        make.pod(name=f"{group}-{i}", cpu=cpu, annotations=notes, priority=priority)
        for i in range(n)
    ]


async def count_starts(replica: Replica) -> list[float]:
    found = await replica.scrape()
    return [of(found, "evenkeel_group_start_seconds_count", size=size) for size in SIZES]


async def test_groups_that_wait_are_counted_by_part_of_the_queue() -> None:
    replica = Replica()
    few, big = members("few", 1, 2), members("big", 2, 2, cpu=99)
    replica.see(make.node(name="n", cpu=8), make.pod(name="alone", cpu=99), *few, *big)
    replica.decide()
    found = await replica.scrape()
    assert of(found, "evenkeel_pending_groups", queue="gated") == 1
    assert of(found, "evenkeel_pending_groups", queue="unschedulable") == 1
    assert of(found, "evenkeel_pending_groups") == 2
    assert of(found, "scheduler_pending_pods") == 4
    assert of(found, "evenkeel_group_attempts_total", result="unschedulable") == 1
    assert of(found, "evenkeel_group_attempts_total", result="placed") == 0


async def test_the_start_of_a_group_is_timed_once_by_its_size() -> None:
    replica = Replica()
    replica.see(*members("gang", 12, 9))
    replica.decide()
    replica.see(make.node(name="n", cpu=10))
    replica.now = 130.0
    assert len(replica.decide().binds) == 10
    assert await count_starts(replica) == [0, 1, 0, 0]
    found = await replica.scrape()
    assert of(found, "evenkeel_group_start_seconds_sum", size="9-64") == 30.0
    # The others join a group that has its minimum.
    replica.see(make.node(name="m", cpu=10))
    replica.now = 160.0
    assert len(replica.decide().binds) == 2
    assert await count_starts(replica) == [0, 1, 0, 0]
    found = await replica.scrape()
    assert of(found, "evenkeel_group_attempts_total", result="placed") == 2


async def test_a_group_that_makes_room_is_counted_once_and_an_extra_pod_is_not() -> None:
    replica = Replica()
    replica.see(make.node(name="n", cpu=4), *members("low", 4, 3))
    for bind in replica.decide().binds:
        replica.bound(bind.uid)
    replica.see(*members("one", 1, 1, priority=5))
    assert [len(one.victims) for one in replica.decide().evicts] == [1]
    assert of(await replica.scrape(), "evenkeel_group_evictions_total") == 0
    _end_pod(replica.engine, "default/low-3", replica.now)
    replica.decide()
    replica.see(*members("all", 3, 3, priority=9))
    assert {len(one.victims) for one in replica.decide().evicts} == {3}
    assert of(await replica.scrape(), "evenkeel_group_evictions_total") == 1


def _end_pod(engine: Engine, uid: str, now: float) -> None:
    engine.handle(events.Gone("Pod", uid), now)


async def test_promises_for_later_and_backfilled_pods_are_counted() -> None:
    replica = Replica()
    a = make.pod(name="a", cpu=4, node="n", annotations={"evenkeel.dev/run-time": "1000"})
    # A node that is not promised: no more than half of the nodes may be.
    other = make.node(name="m", cpu=0)
    replica.see(make.node(name="n", cpu=4), other, a, *members("gang", 2, 2, cpu=2))
    replica.decide()
    replica.now = 150.0
    replica.engine.handle(events.Gone("Pod", "default/a"), replica.now)
    blocker = make.pod(name="b", cpu=3, node="n", annotations={"evenkeel.dev/run-time": "1000"})
    short = make.pod(name="short", cpu=1, annotations={"evenkeel.dev/run-time": "10"})
    short.metadata.creation_timestamp = "2026-01-01T00:00:00Z"
    replica.see(blocker, short)
    assert [bind.uid for bind in replica.decide().binds] == ["default/short"]
    found = await replica.scrape()
    assert of(found, "evenkeel_backfilled_pods_total") == 1
    for name in ("b", "short"):
        replica.engine.handle(events.Gone("Pod", f"default/{name}"), replica.now)
    replica.now += 1.0
    assert len(replica.decide().binds) == 2
    found = await replica.scrape()
    assert of(found, "evenkeel_promises_total", result="kept") == 1
    assert of(found, "evenkeel_promises_total", result="missed") == 0


async def test_groups_that_lost_pods_are_counted_until_they_are_whole_again() -> None:
    replica = Replica()
    replica.see(make.node(name="n", cpu=4), *members("gang", 2, 2, cpu=2))
    for bind in replica.decide().binds:
        replica.bound(bind.uid)
    replica.decide()
    assert of(await replica.scrape(), "evenkeel_broken_groups") == 0
    replica.engine.handle(events.Gone("Pod", "default/gang-0"), replica.now)
    replica.decide()
    assert of(await replica.scrape(), "evenkeel_broken_groups") == 1
    again = members("gang", 1, 2, cpu=2)
    again[0].metadata.uid = "default/again"
    replica.see(*again)
    replica.now += 1.0
    for bind in replica.decide().binds:
        replica.bound(bind.uid)
    replica.decide()
    assert of(await replica.scrape(), "evenkeel_broken_groups") == 0
