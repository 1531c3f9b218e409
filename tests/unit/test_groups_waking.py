"""Groups that wait are tried when a change helps them, whichever of their pods it helps, and while pods leave for them."""

from __future__ import annotations

import pytest

from scheduler.api.door import events
from scheduler.api.door.decisions import Barriers
from scheduler.cycle.schedule import Cycle
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import Pace
from scheduler.engine.freed import FreedRows
from scheduler.schema import columns as c
from scheduler.state.pods import PodRecord
from tests import make
from tests.unit.test_backfill import Scene

_LIVE = Pace(explain=1e9)


@pytest.mark.parametrize("sizes", [(3, 4), (4, 3), (3, 4, 9), (9, 4, 3), (3, 4, *range(9, 17))])
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


@pytest.mark.parametrize("is_many", [False, True])
def test_the_pods_of_a_group_of_many_templates_are_not_looked_at_one_by_one(
    is_many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room opens for each of them but the first, which is the one that the group waits with."""
    n, looks = 9 if is_many else 8, []
    find_barriers = Cycle.find_barriers

    def count_and_find(cycle: Cycle, pod: PodRecord, rows: c.Ints | None) -> Barriers | None:
        looks.append(pod.uid)
        return find_barriers(cycle, pod, rows)

    scene = Scene(n_nodes=4, pace=_LIVE)
    for i in range(4):
        scene.add(f"small{i}", 1, node=f"n{i}")
        scene.add(f"large{i}", 3, node=f"n{i}")
    scene.engine.handle(events.Seen(make.pod_group("gang", n)), scene.now)
    for i in range(n):
        scene.add(f"gang-{i}", 1 if i else 3, gang="gang", memory=f"{10 + i}Mi")
    assert scene.decide(1) == {}
    monkeypatch.setattr(Cycle, "find_barriers", count_and_find)
    scene.end("small0")
    assert scene.decide(5) == {}
    assert len(looks) == (0 if is_many else n - 1)
    for i in range(4):
        scene.end(f"large{i}")
    placed = {**scene.decide(10), **scene.decide(11), **scene.decide(25)}
    assert len(placed) == n


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


def decide_victims(scene: Scene, at: float) -> set[str]:
    """Decide, also after the backoff; return who goes."""
    evicts = [
        evict
        for later in (0.0, 15.0)
        for evict in scene.engine.decide(scene.now + at + later, Unlimited()).evicts
    ]
    return {uid for evict in evicts for uid in evict.victims}


@pytest.mark.parametrize("is_alike", [True, False])
def test_a_group_is_tried_when_more_is_free_beside_possible_victims(*, is_alike: bool) -> None:
    """No pod of the group fits where the pod has ended, until others have gone from there."""
    scene = Scene(pace=_LIVE)
    scene.add("stays", 2, node="n0", priority=900)
    scene.add("low-0", 2, node="n0")
    scene.add("low-1", 4, node="n1")
    scene.engine.handle(events.Seen(make.pod_group("gang", 2, priority=50)), scene.now)
    for i in range(2):
        memory = "10Mi" if is_alike else f"{10 + i}Mi"
        scene.add(f"gang-{i}", 4, gang="gang", priority=50, memory=memory)
    assert not decide_victims(scene, 1)
    scene.end("stays")
    assert decide_victims(scene, 30) == {"default/low-0", "default/low-1"}


@pytest.mark.parametrize("why", ["too little", "too few places", "of higher priority"])
def test_a_group_is_not_tried_when_what_is_free_is_of_no_use_to_it(why: str) -> None:
    scene = Scene(n_nodes=3, pace=_LIVE)
    priority = 900 if why == "of higher priority" else 0
    scene.add("stays", 3, node="n0", priority=900)
    scene.add("ends", 1, node="n0", priority=900)
    scene.add("low", 4, node="n1", priority=priority)
    scene.add("high", 4, node="n2", priority=900)
    if why == "too few places":
        scene.end("stays")
        scene.add("small", 3, node="n0")
    scene.add_gang("gang", 3 if why == "too few places" else 1, priority=50)
    if why == "too little":
        # Somebody could go for it elsewhere, but a budget did not let him go.
        assert decide_victims(scene, 1) == {"default/low"}
        refused = events.EvictFailed("default/low", "a budget", is_refused=True)
        scene.engine.handle(refused, scene.now)
    assert not decide_victims(scene, 20)
    scene.end("ends")
    assert scene.engine.decide(scene.now + 60, Unlimited()).holds == []


def test_a_look_at_who_could_make_room_is_no_news_and_brings_no_other_look() -> None:
    """With all small ones gone there are places for three of the four pods."""
    scene = Scene(n_nodes=3, pace=_LIVE)
    for i in range(3):
        scene.add(f"low-{i}", 3, node=f"n{i}")
    scene.add("small", 1, node="n0")
    scene.add_gang("gang", 4, cpu=3, priority=50)
    scene.engine.decide(scene.now, Unlimited())
    scene.end("small")
    for _ in range(9):
        scene.engine.decide(scene.now, Unlimited())
        scene.now = max(scene.now + 0.001, min(scene.engine.find_due(scene.now), scene.now + 5))
    assert scene.engine.find_due(scene.now) > scene.now + 100


def test_a_group_that_takes_nobodys_place_is_not_tried_when_more_is_free_beside_others() -> None:
    scene = Scene(pace=_LIVE)
    for i in range(2):
        scene.add(f"low-{i}", 3, node=f"n{i}")
    scene.add("ends", 1, node="n0")
    scene.engine.handle(events.Seen(make.pod_group("gang", 1, priority=50)), scene.now)
    scene.add("gang-0", 4, gang="gang", priority=50, spec={"preemptionPolicy": "Never"})
    assert not decide_victims(scene, 1)
    scene.end("ends")
    assert scene.engine.decide(scene.now + 60, Unlimited()).holds == []


def test_a_group_is_tried_when_a_pod_that_may_go_takes_the_place_of_one_that_may_not() -> None:
    """No more is free than before."""
    scene = Scene(pace=_LIVE)
    scene.add("high", node="n0", priority=900)
    scene.add("low-1", node="n1")
    scene.add_gang("gang", 2, priority=50)
    assert not decide_victims(scene, 1)
    scene.end("high")
    scene.add("low-0", node="n0")
    assert decide_victims(scene, 30) == {"default/low-0", "default/low-1"}


def test_room_that_is_promised_beside_pods_that_may_go_counts_once_these_have_gone() -> None:
    scene = Scene(n_nodes=3, pace=_LIVE)
    scene.add("full", node="n1", priority=900)
    scene.add("low-2", 3, node="n2", priority=10)
    scene.add("goes", 1, node="n2")
    scene.add("stays", 2, node="n0", priority=900)
    scene.add("low-0", 2, node="n0", priority=20)
    scene.add("promised", 1, priority=900, spec={"nodeSelector": {"rack": "r1"}})
    assert decide_victims(scene, 1) == {"default/goes"}
    scene.begin_deletion("goes")
    scene.add_gang("gang", 2, cpu=3, priority=50)
    assert not decide_victims(scene, 20)
    scene.end("stays")
    assert decide_victims(scene, 60) == {"default/low-0", "default/low-2"}


def test_a_victim_that_a_pod_keeps_away_from_is_in_nobodys_way_once_it_has_gone() -> None:
    """The shape of the pod is made anew for the look, because room was promised meanwhile."""
    scene = Scene(n_nodes=3, pace=_LIVE)
    scene.add("stays", 2, node="n0", priority=900)
    scene.add("low", 2, node="n0", labels={"app": "x"})
    scene.add("full", 4, node="n1", priority=900)
    scene.add("most", 3, node="n2", priority=900)
    scene.engine.handle(events.Seen(make.pod_group("gang", 1, priority=50)), scene.now)
    term = {
        "labelSelector": {"matchLabels": {"app": "x"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    keeps = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    scene.add("gang-0", 4, gang="gang", priority=50, spec={"affinity": keeps})
    assert not decide_victims(scene, 1)
    scene.add("goes", 1, node="n2", priority=100)
    scene.add("promised", 1, priority=900, spec={"nodeSelector": {"rack": "r1"}})
    assert decide_victims(scene, 20) == {"default/goes"}
    scene.begin_deletion("goes")
    assert not decide_victims(scene, 40)
    scene.end("stays")
    assert decide_victims(scene, 80) == {"default/low"}


def test_what_a_search_has_undone_is_not_freed() -> None:
    scene = Scene(pace=_LIVE)
    for i in range(2):
        scene.add(f"p-{i}", 3, node=f"n{i}", priority=i)
    freed = FreedRows(scene.cluster)
    find_row = scene.cluster.nodes.find_row
    assert freed.find_rows() == set()
    with scene.cluster.trial() as trial:
        trial.take_away("default/p-0", "default/p-1")
    assert freed.find_rows() == set()
    scene.end("p-0")
    assert freed.find_rows() == {find_row("n0")}
    scene.add("other", 3, node="n0", priority=5)
    assert freed.find_rows() == {find_row("n0")}
    scene.end("other")
    scene.add("last", 3, node="n0", priority=0)
    assert freed.find_rows() == {find_row("n0")}
    assert freed.find_rows() == set()
