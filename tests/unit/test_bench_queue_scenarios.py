"""Kueue's performance scenarios as the bench plays them, on a clock that the engine does not move."""

import pytest

from bench import queue_scenarios
from bench.queue_cluster import NOW, QueueCluster, read_object
from bench.queue_scenarios import SCENARIOS, Kind, Scenario
from scheduler.api.door.workload_decisions import Admit


def stand_still() -> float:
    return 0.0


def make_scenario(*kinds: Kind, n_queues: int = 1) -> Scenario:
    return Scenario(1, n_queues, kinds, seconds=(1, 1), usage=(1, 1), waits={})


def test_a_queue_that_is_full_lets_the_next_one_wait_until_the_first_ends() -> None:
    """Two come after 0.1 and 0.2 s, and each needs the whole queue for a second."""
    found = queue_scenarios.play(
        make_scenario(Kind("large", "", 2, 100, 1000, 200, 20)), clock=stand_still
    )
    assert found["seconds"] == 2.1
    assert found["seconds_to_admission"] == {"large": 0.45}
    assert found["usage_percent"] == pytest.approx(100 * 2 * 20 / (20 * 2.1), abs=0.1)
    assert found["evictions"] == 0


def test_a_workload_that_is_evicted_starts_anew() -> None:
    """The small one has run for 0.5 s when the large one comes, and again waits until that has ended at 1.5 s."""
    found = queue_scenarios.play(
        make_scenario(
            Kind("small", "", 1, 100, 5000, 50, 1), Kind("large", "", 1, 600, 1000, 200, 20)
        ),
        clock=stand_still,
    )
    assert found["evictions"] == 1
    assert found["seconds"] == pytest.approx(0.6 + 1 + 5)
    assert found["seconds_to_admission"] == {"large": 0.0, "small": 1.5}


def test_the_time_that_the_engine_takes_counts_as_waiting() -> None:
    """Every look at the clock is a tenth of a second later than the last one."""
    ticks = iter(range(1_000))
    found = queue_scenarios.play(
        make_scenario(Kind("small", "", 3, 10, 50, 50, 1)), clock=lambda: next(ticks) / 10
    )
    assert found["seconds_to_admission"]["small"] >= 0.1
    assert found["cpu_seconds"] >= 0.2


@pytest.mark.parametrize("way", ["required", "preferred", "balanced"])
def test_pods_get_places_in_one_rack(way: str) -> None:
    """A node has room for one pod, and only the last rack has the eight nodes that are needed."""
    kind = Kind("large", way, 1, 100, 1000, 200, 20, 8, 8)
    objects = []
    for one in queue_scenarios.make_objects(make_scenario(kind)):
        if one["kind"] == "Node":
            rack, number = divmod(int(one["metadata"]["name"].removeprefix("node-")), 64)
            if number >= (8 if rack == 9 else 7):
                continue
            one["status"]["allocatable"]["cpu"] = "3"
        objects.append(one)
    cluster = QueueCluster(objects)
    cluster.add(read_object(queue_scenarios.make_workload(kind, "one", 0, 0.0)), NOW)
    (admitted,) = cluster.decide()
    assert isinstance(admitted, Admit)
    seats = cluster.engine._cluster.stand_ins.list_of(admitted.key)
    racks = {int(str(seat.node).removeprefix("node-")) // 64 for seat in seats}
    assert len({seat.node for seat in seats}) == 8
    assert racks == {9}


def test_scenarios_have_as_many_workloads_as_kueues() -> None:
    found = {name: one.n_workloads for name, one in SCENARIOS.items()}
    assert found == {"baseline": 15_000, "large-scale": 50_000, "tas": 15_000}


def test_each_kind_of_a_scenario_has_a_published_limit() -> None:
    for one in SCENARIOS.values():
        assert {kind.name for kind in one.kinds} == one.waits.keys()
