"""The first group in line is promised room for later, and others run there only if they do not delay it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from scheduler.api import names, wire
from scheduler.api.door import events, notes
from scheduler.api.door.decisions import Bind, Outcome
from scheduler.api.groups.definitions import GroupKey
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT, Pace
from scheduler.engine.engine import Engine
from scheduler.state import checks
from tests import make

BEGIN = 1_000_000.0


def write_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Scene:
    """Some nodes with four CPUs each, in racks of two, and pods that come and end."""

    def __init__(
        self,
        n_nodes: int = 2,
        config: Config | None = None,
        pace: Pace = PROMPT,
        promised_percent: int = 100,
    ) -> None:
        config = config or Config()
        every = replace(config.groups, promised_percent=promised_percent)
        self.engine = Engine(replace(config, groups=every), pace=pace)
        self.cluster = self.engine._cluster
        self.now = BEGIN
        self.notes: list[notes.Note] = []
        self._pods: dict[str, wire.Pod] = {}
        for i in range(n_nodes):
            node = make.node(name=f"n{i}", cpu=4, labels={"rack": f"r{i // 2}"})
            self.engine.handle(events.Seen(node), BEGIN)

    def add(
        self,
        name: str,
        cpu: int = 4,
        *,
        run: float | None = None,
        node: str = "",
        gang: str = "",
        created: float = 0.0,
        **more: Any,
    ) -> None:
        annotations = dict(more.pop("annotations", {}))
        if run is not None:
            annotations[names.RUN_TIME] = f"{run:g}"
        pod = make.pod(name=name, cpu=cpu, node=node, annotations=annotations, **more)
        pod.metadata.creation_timestamp = write_time(BEGIN + created)
        if node:
            pod.status.start_time = write_time(self.now)
        if gang:
            make.member(pod, gang)
        self._pods[name] = pod
        self.engine.handle(events.Seen(pod), self.now)

    def add_gang(
        self, name: str = "gang", n: int = 2, *, cpu: int = 4, rack: bool = False, priority: int = 0
    ) -> None:
        group = make.pod_group(name, n, topology="rack" if rack else "", priority=priority)
        self.engine.handle(events.Seen(group), self.now)
        for i in range(n):
            self.add(f"{name}-{i}", cpu, gang=name, priority=priority)

    def end(self, name: str) -> None:
        self.engine.handle(events.Gone("Pod", f"default/{name}"), self.now)

    def read_run_time(self, name: str) -> float:
        return float((self._pods[name].metadata.annotations or {})[names.RUN_TIME])

    def begin_deletion(self, name: str) -> None:
        self._pods[name].metadata.deletion_timestamp = write_time(self.now)
        self.engine.handle(events.Seen(self._pods[name]), self.now)

    def decide(self, at: float = 0.0) -> dict[str, str]:
        """Where the pods go that are placed now, so many seconds after the beginning."""
        self.now = max(self.now, BEGIN + at)
        outcome = self._turn()
        self.notes += outcome.notes
        placed = {}
        for bind in outcome.binds:
            name = bind.uid.partition("/")[2]
            placed[name] = bind.node
            self.write_bind(bind)
            self.engine.handle(events.BindDone(bind.uid), self.now)
            self.engine.handle(events.Seen(self._pods[name]), self.now)
        checks.verify(self.cluster)
        return placed

    def write_bind(self, bind: Bind) -> None:
        """Write into the pod what binding it and starting it there changes."""
        pod = self._pods[bind.uid.partition("/")[2]]
        pod.spec.node_name = bind.node
        pod.status.start_time = write_time(self.now)

    def _turn(self) -> Outcome:
        return self.engine.decide(self.now, Unlimited())

    def find_promise(self) -> tuple[float, list[str]] | None:
        """In how many seconds from the beginning the group fits, and on which nodes."""
        room = self.cluster.later.room
        return None if room is None else (room.until - BEGIN, sorted(room.on))


def make_full_scene() -> Scene:
    """Two nodes whose pods end after 100 and 200 s, and a gang that needs both nodes."""
    scene = Scene()
    scene.add("a", run=100, node="n0")
    scene.add("b", run=200, node="n1")
    scene.add_gang()
    assert not scene.decide()
    return scene


def test_the_first_group_in_line_is_told_when_and_where_it_fits() -> None:
    assert make_full_scene().find_promise() == (200.0, ["n0", "n1"])


def test_a_pod_that_ends_in_time_runs_on_promised_nodes_and_others_wait() -> None:
    scene = make_full_scene()
    scene.end("a")
    for name, run in (("endless", None), ("long", 101.0), ("short", 99.0)):
        scene.add(name, run=run, created=1)
    assert scene.decide(100) == {"short": "n0"}
    assert notes.Backfilled("default/short") in scene.notes
    scene.end("b")
    scene.end("short")
    assert sorted(scene.decide(199)) == ["gang-0", "gang-1"]
    group = GroupKey("PodGroup.scheduling.k8s.io", "default", "gang")
    assert notes.PromiseEnded(group, is_kept=True) in scene.notes
    assert scene.find_promise() is None
    scene.end("gang-0")
    scene.end("gang-1")
    assert sorted(scene.decide(300)) == ["endless", "long"]


def test_the_group_is_placed_as_soon_as_it_fits() -> None:
    scene = make_full_scene()
    scene.end("a")
    assert not scene.decide(20)
    scene.end("b")
    assert sorted(scene.decide(30)) == ["gang-0", "gang-1"]


def test_a_pod_runs_on_promised_nodes_if_the_group_fits_all_the_same() -> None:
    scene = Scene()
    scene.add("a", run=100, node="n0")
    scene.add("b", run=200, node="n1")
    scene.add_gang(cpu=3)
    assert not scene.decide()
    scene.end("a")
    scene.add("small", cpu=1, created=1)
    scene.add("large", cpu=2, created=1)
    assert scene.decide(100) == {"small": "n0"}


def test_a_pod_that_has_ended_by_then_does_not_count_beside_the_promise() -> None:
    scene = Scene()
    scene.add("a", 2, run=100, node="n0")
    scene.add("b", run=200, node="n1")
    scene.add_gang(cpu=3)
    assert not scene.decide()
    assert scene.find_promise() == (200.0, ["n0", "n1"])
    # Beside the first pod there would be no room for both this one and the group.
    scene.add("endless", 1)
    assert scene.decide() == {"endless": "n0"}


def test_pods_that_come_first_need_not_regard_the_promise() -> None:
    scene = make_full_scene()
    scene.end("a")
    scene.add("urgent", priority=5, created=1)
    assert scene.decide(100) == {"urgent": "n0"}
    # Nobody says when that pod ends.
    assert scene.find_promise() is None


def test_nodes_that_are_not_promised_are_free_for_all() -> None:
    scene = Scene(n_nodes=4)
    for i, run in enumerate((100, 200, 50, 400)):
        scene.add(f"p{i}", run=run, node=f"n{i}")
    scene.add_gang(rack=True)
    assert not scene.decide()
    assert scene.find_promise() == (200.0, ["n0", "n1"])
    scene.end("p2")
    scene.add("endless", created=1)
    assert scene.decide(50) == {"endless": "n2"}


def test_a_gang_is_backfilled_only_if_it_ends_in_time() -> None:
    scene = Scene(n_nodes=3)
    for i in range(3):
        scene.add(f"p{i}", run=(100, 100, 500)[i], node=f"n{i}")
    scene.add_gang("large", 3)
    assert not scene.decide()
    assert scene.find_promise() == (500.0, ["n0", "n1", "n2"])
    scene.end("p0")
    scene.end("p1")
    for name in ("endless", "short"):
        group = make.pod_group(name, 2)
        if name == "short":
            group.metadata.annotations = {names.RUN_TIME: "300"}
        scene.engine.handle(events.Seen(group), scene.now)
        for i in range(2):
            scene.add(f"{name}-{i}", gang=name, created=1)
    assert scene.decide(100) == {"short-0": "n0", "short-1": "n1"}


def test_a_group_that_nobody_can_tell_a_time_is_promised_nothing_and_the_next_one_is() -> None:
    scene = Scene()
    scene.add("a", node="n0")
    scene.add("b", run=100, node="n1")
    scene.add_gang("both", 2)
    scene.add_gang("one", 1)
    assert not scene.decide()
    assert scene.find_promise() == (100.0, ["n1"])


def test_a_promise_follows_a_pod_that_runs_on() -> None:
    scene = Scene(pace=Pace(explain=1e9))
    scene.add("a", run=150, node="n0")
    scene.add("b", run=200, node="n1")
    scene.add_gang()
    scene.decide()
    scene.decide(1)
    assert scene.find_promise() == (200.0, ["n0", "n1"])
    assert scene.engine.find_due(BEGIN + 2) <= BEGIN + 200
    scene.decide(210)
    scene.decide(220)
    found = scene.find_promise()
    assert found is not None
    assert found[0] > 220


@pytest.mark.parametrize(("percent", "is_promised"), [(49, False), (50, True), (0, False)])
def test_no_group_is_promised_more_of_the_nodes_than_the_configuration_allows(
    percent: int, is_promised: bool
) -> None:
    """Whoever may create pods could otherwise keep the whole cluster free."""
    scene = Scene(n_nodes=4, promised_percent=percent)
    for i in range(4):
        scene.add(f"p{i}", run=100, node=f"n{i}")
    scene.add_gang()
    scene.decide()
    assert (scene.find_promise() is not None) == is_promised


def test_a_pod_that_runs_twice_as_long_as_it_said_has_no_end_any_more() -> None:
    scene = Scene(pace=Pace(explain=1e9))
    scene.add("a", run=100, node="n0")
    scene.add("b", run=100, node="n1")
    scene.add_gang()
    scene.decide()
    scene.decide(1)
    for at in (150, 190):
        scene.decide(at)
        assert scene.find_promise() is not None
    scene.decide(210)
    scene.decide(220)
    assert scene.find_promise() is None


def test_a_group_that_goes_takes_its_promise_with_it() -> None:
    scene = make_full_scene()
    scene.end("gang-0")
    scene.end("gang-1")
    scene.end("a")
    scene.add("endless", created=1)
    assert scene.decide(100) == {"endless": "n0"}
    assert scene.find_promise() is None


@pytest.mark.parametrize("namespace", ["default", "other"])
@pytest.mark.parametrize("said", [10, 300])
def test_a_namespace_whose_pods_run_longer_than_they_said_is_not_believed(
    namespace: str, said: int
) -> None:
    scene = Scene(n_nodes=3, pace=Pace(explain=1e9))
    scene.add("liar", run=said, node="n2")
    scene.add("a", run=2000, node="n0")
    scene.add("b", run=3000, node="n1")
    scene.add_gang(n=3, cpu=4)
    scene.add_gang("pair", 2)
    for at in (0, 1, 200, 206, 1000, 1006):
        assert not scene.decide(at)
    scene.end("a")
    scene.add("short", run=5, created=1, namespace=namespace)
    scene.decide(1012)
    scene.decide(1018)
    placed = f"{namespace}/short" in {uid for uid, pod in scene.cluster.pods.items() if pod.node}
    assert scene.find_promise() is not None
    assert placed == (namespace == "other")


@pytest.mark.parametrize(("points", "first"), [(0.0, "new"), (10.0, "old")])
def test_age_is_worth_priority(points: float, first: str) -> None:
    """The old gang has two points less, and is half an hour older."""
    scene = Scene(config=Config(ageing_per_hour=points))
    scene.add("a", run=100, node="n0", priority=9)
    scene.add("b", run=100, node="n1", priority=9)
    scene.add_gang("old", priority=3)
    scene.decide()
    for i in range(2):
        scene.add(f"new-{i}", gang="new", priority=5, created=1800)
    scene.engine.handle(events.Seen(make.pod_group("new", 2, priority=5)), scene.now)
    scene.decide(1)
    scene.end("a")
    scene.end("b")
    assert sorted(scene.decide(2)) == [f"{first}-0", f"{first}-1"]


def test_each_pod_of_a_group_without_an_object_runs_for_the_time_that_it_says_itself() -> None:
    scene = Scene()
    for i, run in enumerate((100, 200)):
        label, total = {names.KUEUE_GROUP: "kueue"}, {names.KUEUE_TOTAL: "2"}
        scene.add(f"k{i}", run=run, node=f"n{i}", labels=label, annotations=total)
    scene.add_gang()
    assert not scene.decide()
    assert scene.find_promise() == (200.0, ["n0", "n1"])


@pytest.mark.parametrize("text", ["soon", "-5", "", "1e9", "9" * 400, "\x00", "1h30"])
def test_a_pod_whose_run_time_is_no_time_waits_with_its_mistake_and_no_other_does(
    text: str,
) -> None:
    scene = Scene()
    wrong = make.pod(name="wrong", cpu=1, annotations={names.RUN_TIME: text})
    scene.engine.handle(events.Seen(wrong), scene.now)
    scene.add("right", cpu=1, run=5)
    outcome = scene.engine.decide(scene.now, Unlimited())
    assert [bind.uid for bind in outcome.binds] == ["default/right"]
    (hold,) = outcome.holds
    assert hold.problem is not None
    assert "evenkeel.dev/run-time" in str(hold.problem)
    # A pod that runs is charged and ends at an unknown time, whatever it says.
    scene.engine.handle(
        events.Seen(make.pod(name="runs", cpu=1, node="n0", annotations={names.RUN_TIME: text})),
        scene.now,
    )
    checks.verify(scene.cluster)
    pod = scene.cluster.pods["default/runs"]
    assert scene.cluster.ends.find_end(pod, scene.now) == float("inf")
