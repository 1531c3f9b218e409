"""The rounds in which a group is looked for that is promised room: whom they find, and what may happen between two pieces."""

import random
from dataclasses import replace

import pytest

from scheduler.api import hami
from scheduler.api.cards import CardUse
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited, Work
from scheduler.engine.chores import Pace
from scheduler.engine.engine import Engine
from scheduler.engine.recorded import Recorded
from scheduler.engine.rerun import rerun
from scheduler.state import checks
from tests import make
from tests.unit.test_backfill import Scene, make_full_scene, write_time

_GANG = "gang.scheduling.koordinator.sh/"


class Few:
    """Allows so many pieces of small work, and all decisions."""

    pods = 1000

    def __init__(self, n: int) -> None:
        self._left = n

    def allows(self, work: Work) -> bool:
        if work != Work.CHORE:
            return True
        self._left -= 1
        return self._left >= 0


@pytest.mark.parametrize("n_pieces", range(5))
@pytest.mark.parametrize("gone", ["pod", "node"])
def test_a_round_goes_on_although_a_pod_or_a_node_goes_between_two_pieces(
    n_pieces: int, gone: str
) -> None:
    scene = Scene(n_nodes=3, pace=Pace(explain=1e9))
    for i in range(3):
        scene.add(f"p{i}", run=100 * (i + 1), node=f"n{i}")
    scene.add_gang(n=2)
    scene.engine.decide(scene.now, Few(n_pieces))
    if gone == "node":
        scene.engine.handle(events.Gone("Node", "n1"), scene.now)
    else:
        scene.end("gang-1")
        scene.add("gang-2", gang="gang")
    for at in (1, 7, 13):
        scene.decide(at)
    assert scene.find_promise() == (
        (300.0, ["n0", "n2"]) if gone == "node" else (200.0, ["n0", "n1"])
    )


def test_groups_that_can_be_told_no_time_do_not_stand_before_others_for_ever() -> None:
    scene = Scene(pace=Pace(explain=1e9))
    scene.add("a", run=1000, node="n0")
    scene.add("b", run=1000, node="n1")
    for i in range(9):
        scene.add_gang(f"huge{i}", 2, cpu=99)
    scene.add_gang("real", 2)
    times = [scene.decide(at) or scene.find_promise() for at in range(0, 400, 5)]
    first = next(i for i, one in enumerate(times) if one)
    assert first < 10
    assert all(one == (1000.0, ["n0", "n1"]) for one in times[first:])


def test_one_tenant_does_not_fill_a_round_with_groups_that_can_be_told_no_time() -> None:
    """The first four groups use up the rounds of the start; of the next four, two take their part of a round."""
    scene = Scene(pace=Pace(explain=1e9))
    scene.add("a", run=1000, node="n0")
    scene.add("b", run=1000, node="n1")
    for i in range(8):
        gang = {f"{_GANG}name": f"huge{i}", f"{_GANG}min-available": "1"}
        scene.add(f"huge{i}", 99, namespace="hostile", annotations=gang)
    scene.add_gang("real", 2)
    scene.decide()
    assert scene.find_promise() == (1000.0, ["n0", "n1"])


@pytest.mark.parametrize("how", ["pod", "object"])
def test_nothing_is_promised_to_a_group_that_may_not_be_tried_any_more(how: str) -> None:
    scene = make_full_scene()
    if how == "pod":
        scene.end("gang-1")
    else:
        scene.engine.handle(events.Gone("PodGroup.scheduling.k8s.io", "default/gang"), scene.now)
    scene.end("a")
    scene.add("endless", created=1)
    assert scene.decide(1) == {"endless": "n0"}
    assert scene.find_promise() is None


def test_pods_beyond_the_minimum_are_promised_nothing() -> None:
    scene = Scene(n_nodes=3)
    for i in range(3):
        scene.add(f"p{i}", run=100 * (i + 1), node=f"n{i}")
    scene.engine.handle(events.Seen(make.pod_group("elastic", 1)), scene.now)
    for i in range(3):
        scene.add(f"elastic-{i}", gang="elastic")
    scene.decide()
    assert scene.find_promise() == (100.0, ["n0"])
    scene.add_gang("gang", 2)
    scene.end("p0")
    assert len(scene.decide(1)) == 1
    scene.decide(2)
    assert scene.find_promise() == (300.0, ["n1", "n2"])


def test_no_room_is_promised_for_later_than_in_a_day() -> None:
    scene = Scene()
    scene.add("a", run=86_401, node="n0")
    scene.add("b", run=100, node="n1")
    scene.add_gang()
    scene.decide()
    assert scene.find_promise() is None


def test_a_node_that_is_gone_is_promised_no_longer() -> None:
    scene = Scene(n_nodes=3, pace=Pace(explain=1e9))
    for i in range(3):
        scene.add(f"p{i}", run=1000 * (i + 1), node=f"n{i}")
    scene.add_gang()
    scene.decide()
    scene.decide(1)
    assert scene.find_promise() == (2000.0, ["n0", "n1"])
    scene.engine.handle(events.Gone("Node", "n1"), scene.now)
    scene.decide(8)
    assert scene.find_promise() == (3000.0, ["n0", "n2"])


def _place_beside_promise(seed: int, slice_pods: int) -> tuple[dict[str, str], object]:
    """Where pods go that come in any order while some of eight nodes are promised to a gang."""
    rng = random.Random(seed)
    scene = Scene(n_nodes=8, config=replace(Config(), slice_pods=slice_pods))
    for i in range(8):
        if rng.random() < 0.7:
            scene.add(f"old{i}", cpu=rng.randint(1, 4), run=rng.choice((100, 200)), node=f"n{i}")
    # What its pods leave of a node is for anybody.
    scene.add_gang(n=rng.randint(5, 8), cpu=rng.randint(2, 4))
    scene.decide()
    promise = scene.find_promise()
    for i in range(rng.randint(4, 20)):
        run = rng.choice((None, 50, 150, 300))
        for j in range(rng.randint(1, 4)):
            scene.add(f"new{i:02}-{j}", cpu=1, run=run, created=1)
    return scene.decide(1), promise


@pytest.mark.parametrize("seed", range(40))
def test_pods_that_come_together_go_where_they_would_go_one_by_one(seed: int) -> None:
    """While a promise stands, a run of like pods is placed in one call until one lands on a promised node."""
    assert _place_beside_promise(seed, 64) == _place_beside_promise(seed, 1)


def test_pods_land_on_promised_nodes_and_elsewhere() -> None:
    kinds = set()
    for seed in range(40):
        placed, promise = _place_beside_promise(seed, 64)
        on = set(promise[1]) if isinstance(promise, tuple) else set()
        kinds |= {(name.startswith("new"), node in on) for name, node in placed.items()}
    assert {(True, True), (True, False)} <= kinds


def test_the_first_promise_comes_before_the_pods_behind_the_group_are_placed() -> None:
    """After a change of leader nobody knows what was promised, and all pods wait at once."""
    scene = Scene(n_nodes=3, pace=Pace(explain=1e9))
    scene.add("a", run=100, node="n0")
    scene.add_gang(n=3)
    for i in range(4):
        scene.add(f"endless{i}", created=1)
        scene.add(f"short{i}", cpu=2, run=50, created=2)
    assert sorted(scene.decide()) == ["short0", "short1", "short2", "short3"]
    assert scene.find_promise() == (100.0, ["n0", "n1", "n2"])


def test_a_fresh_start_of_the_log_keeps_the_promise() -> None:
    lines: list[bytes] = []
    scene = Scene(n_nodes=0)
    scene.engine = engine = Recorded(Config(), "test", lines.append)
    scene.cluster = engine._cluster
    for i in range(4):
        engine.handle(events.Seen(make.node(name=f"n{i}", cpu=4)), scene.now)
        scene.add(f"p{i}", run=(100, 200, None, None)[i], node=f"n{i}")
    scene.add_gang(n=2)
    scene.decide()
    promise, first = engine._cluster.later.room, len(lines)
    assert promise is not None
    engine.start_anew(scene.now)
    assert engine._cluster.later.room == promise
    scene.cluster = engine._cluster
    scene.end("p0")
    scene.add("endless", created=1)
    assert not scene.decide(20)
    scene.end("p1")
    assert sorted(scene.decide(40)) == ["gang-0", "gang-1"]
    for part in (lines[:first], lines[first:]):
        assert rerun(part).difference is None


def test_without_a_pause_the_rounds_end_when_all_groups_have_been_looked_at() -> None:
    scene = Scene()
    scene.add("a", run=1000, node="n0")
    scene.add("b", run=1000, node="n1")
    for i in range(9):
        scene.add_gang(f"huge{i}", 2, cpu=99)
    scene.add_gang("real", 2)
    n_calls = 0
    while scene.engine.find_due(scene.now) <= scene.now:
        assert n_calls < 20
        scene.engine.decide(scene.now, Unlimited())
        n_calls += 1
    assert scene.find_promise() == (1000.0, ["n0", "n1"])


def test_without_a_pause_the_rounds_end_although_no_group_can_be_told_a_time() -> None:
    scene = Scene()
    for i in range(9):
        scene.add_gang(f"huge{i}", 2, cpu=99)
    n_calls = 0
    while scene.engine.find_due(scene.now) <= scene.now:
        assert n_calls < 20
        scene.engine.decide(scene.now, Unlimited())
        n_calls += 1
    assert scene.find_promise() is None


def test_a_pod_that_room_is_made_for_is_promised_no_room_for_later_as_well() -> None:
    """``extra`` is beyond the minimum of its gang; on ``a`` somebody may go for it, on ``b`` somebody ends in 20 s."""
    engine, now = Engine(Config()), 1_000_000.0

    def see(found: events.Object, at: float = now) -> None:
        engine.handle(events.Seen(found), at)

    for name in "ba":
        card = make.card(uuid=f"{name}-c", index=0, mib=16000, sharers=4)
        see(make.hami_node(name=name, cpu=8, cards=[card]))
        claim = hami.make_bind_annotations(name, ((CardUse(f"{name}-c", 16000, 100),),), 1)
        priority, seconds = (900, 20) if name == "b" else (0, 10_000)
        pod = make.pod(
            name=f"on-{name}", node=name, priority=priority, cpu=1, gpu=1, gpumem=16000, gpucores=100,
            annotations=claim, spec={"activeDeadlineSeconds": seconds},
        )  # fmt: skip
        pod.status.start_time = write_time(now)
        see(pod)
    see(make.node(name="c", cpu=8))
    # Between two rounds there are five seconds.
    see(make.pod(name="z", cpu=1, annotations={f"{_GANG}name": "z", f"{_GANG}min-available": "1"}))
    engine.decide(now - 1, Unlimited())
    engine.handle(events.BindDone("default/z"), now)
    words = {f"{_GANG}name": "g", f"{_GANG}min-available": "2"}
    for name in ("one", "two"):
        see(make.pod(name=name, cpu=1, priority=100, annotations=words))
    extra = make.pod(name="extra", cpu=1, gpu=1, gpumem=8000, gpucores=25, priority=100, annotations=words)  # fmt: skip
    see(extra)
    outcome = engine.decide(now, Unlimited())
    assert [evict.victims for evict in outcome.evicts] == [("default/on-a",)]
    engine.handle(events.BindDone("default/one"), now)
    assert engine._cluster.nominations.find_node("default/extra") == "a"
    assert engine._cluster.later.room is None
    # Whoever looks for room beside both promises leaves the pod as it was.
    see(make.pod(name="x", cpu=1, gpu=1, gpumem=16000, gpucores=100), now + 1)
    engine.decide(now + 1, Unlimited())
    engine.handle(events.BindFailed("default/two", "conflict"), now + 1)
    engine.handle(events.Gone("Pod", "default/on-a"), now + 1)
    engine.decide(now + 1.1, Unlimited())
    checks.verify(engine._cluster)
    outcome = engine.decide(now + 20, Unlimited())
    assert {bind.uid: bind.node for bind in outcome.binds} == {
        "default/two": "c",
        "default/extra": "a",
    }


def test_a_promise_for_later_ends_when_room_is_made_now() -> None:
    """A pod of lower priority comes to a node that was too small."""
    scene = Scene(pace=Pace(explain=1e9))
    scene.add("stays", node="n0", priority=900)
    scene.add("ends", run=20, node="n1", priority=900)
    scene.add_gang(n=1, priority=50)
    assert not scene.decide()
    assert scene.find_promise() == (20.0, ["n1"])
    scene.engine.handle(events.Seen(make.node(name="new", cpu=4)), scene.now)
    scene.add("goes", node="new")
    outcome = scene.engine.decide(scene.now + 12, Unlimited())
    assert [evict.victims for evict in outcome.evicts] == [("default/goes",)]
    assert scene.find_promise() is None
