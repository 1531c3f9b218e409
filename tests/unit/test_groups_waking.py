"""Groups that wait are tried when a change helps them, whichever of their pods it helps, and while pods leave for them."""

from __future__ import annotations

import pytest

from scheduler.api.door import events
from scheduler.engine.chores import Pace
from tests import make
from tests.unit.test_backfill import Scene

_LIVE = Pace(explain=1e9)


@pytest.mark.parametrize("sizes", [(3, 4), (4, 3), (3, 4, 9), (9, 4, 3)])
def test_a_change_that_helps_another_pod_helps_the_group(sizes: tuple[int, ...]) -> None:
    """The one of four CPUs fits on n0 from the beginning, but so does that of three, which may come first."""
    scene = Scene(pace=_LIVE)
    scene.add("a", 3, node="n1")
    scene.add("b", 1, node="n1")
    scene.engine.handle(events.Seen(make.pod_group("gang", 2)), scene.now)
    for i, cpu in enumerate(sizes):
        scene.add(f"gang-{i}", cpu, gang="gang")
    assert scene.decide(1) == {}
    scene.end("a")
    placed = {**scene.decide(5), **scene.decide(6), **scene.decide(20)}
    by_cpu = {cpu: placed.get(f"gang-{i}") for i, cpu in enumerate(sizes)}
    assert by_cpu == dict.fromkeys(sizes) | {3: "n1", 4: "n0"}


def test_a_group_of_many_templates_is_tried_after_its_backoff() -> None:
    scene = Scene(n_nodes=12, pace=_LIVE)
    for i in range(12):
        scene.add(f"a{i}", 4, node=f"n{i}")
    scene.engine.handle(events.Seen(make.pod_group("gang", 10)), scene.now)
    for i in range(10):
        scene.add(f"gang-{i}", 1, gang="gang", memory=f"{10 + i}Mi")
    assert scene.decide(1) == {}
    for i in range(3):
        scene.end(f"a{i}")
    placed = {**scene.decide(5), **scene.decide(6), **scene.decide(20)}
    assert len(placed) == 10


@pytest.mark.parametrize("n_gone", [0, 1])
def test_a_group_whose_victims_leave_goes_where_room_opens_meanwhile(n_gone: int) -> None:
    scene = Scene(pace=_LIVE)
    for i in range(2):
        scene.add(f"v{i}", node=f"n{i}")
    scene.add_gang("gang", 2, priority=5)
    assert scene.decide(1) == {}
    assert set(scene.cluster.nominations.going) == {"default/v0", "default/v1"}
    for i in range(2):
        scene.begin_deletion(f"v{i}")
    for i in range(n_gone):
        scene.end(f"v{i}")
    assert scene.decide(10) == {}
    for i in range(2 + n_gone, 4):
        scene.engine.handle(events.Seen(make.node(name=f"n{i}", cpu=4)), scene.now)
    scene.add("low", created=15)
    placed = {**scene.decide(20), **scene.decide(35)}
    assert {placed["gang-0"], placed["gang-1"]} == ({"n0", "n3"} if n_gone else {"n2", "n3"})
