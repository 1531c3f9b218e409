"""Pods and gangs that come and end over time: no promise for later is broken if everybody says the truth."""

import random
from typing import Any

import pytest

from scheduler.api import hami, wire
from scheduler.api.door import events
from scheduler.api.door.decisions import Bind
from scheduler.engine.chores import Pace
from scheduler.state.later import LaterRoom
from tests import make, slices
from tests.unit.test_backfill import BEGIN, Scene


class Stream(Scene):
    """Pods and gangs that come and end over time; those that say how long they run say the truth."""

    def __init__(self, seed: int, n_nodes: int = 0) -> None:
        self.rng = random.Random(seed)
        self.n_nodes = n_nodes or self.rng.randint(2, 4)
        super().__init__(self.n_nodes)
        self._ends: list[tuple[float, str]] = []
        self._run: dict[str, float] = {}
        # By the uid of a group: the time that it was promised first, until it is placed; and all those promises.
        self.promised: dict[str, float] = {}
        self.n_promises = self.n_in_time = 0

    def live(self, n_steps: int) -> None:
        for step in range(n_steps):
            at = BEGIN + 10.0 * step
            while self._ends and min(self._ends)[0] <= at:
                self.now = min(self._ends)[0]
                for one in [one for one in self._ends if one[0] == self.now]:
                    self._ends.remove(one)
                    self.end(one[1])
                self.settle()
            self.now = at
            self._someone_comes(step)
            self.settle()

    def _someone_comes(self, step: int) -> None:
        run = self.rng.choice((15.0, 40.0, 100.0))
        if self.rng.random() < 0.2:
            n = self.rng.randint(2, self.n_nodes)
            group = make.pod_group(f"gang{step}", n)
            self.engine.handle(events.Seen(group), self.now)
            cpu = self.rng.choice((2, 3, 4))
            for i in range(n):
                self._run[f"gang{step}-{i}"] = run
                name = f"gang{step}-{i}"
                self.add(name, cpu, run=run, gang=f"gang{step}", created=10.0 * step)
        else:
            self._run[f"p{step}"] = run
            cpu = self.rng.randint(1, 4)
            self.add(f"p{step}", cpu, run=run, created=10.0 * step)

    def settle(self) -> None:
        """Decide until nobody else is placed, and compare with what was promised."""
        while True:
            room = self.cluster.later.room
            if not (placed := self.decide(self.now - BEGIN)):
                break
            for name, node in placed.items():
                if room is not None and node in room.on and self._comes_before(name, room):
                    # Nobody promised anything for this case.
                    self.promised.pop(room.entity.rpartition("/")[2], None)
                self._ends.append((self.now + self._run[name], name))
                gang = name.partition("-")[0]
                if gang in self.promised:
                    self.n_promises += 1
                    assert self.now <= self.promised.pop(gang)
        self.compare_with_twin()
        room = self.cluster.later.room
        if room is not None:
            self.promised.setdefault(room.entity.rpartition("/")[2], room.until)

    def _comes_before(self, name: str, room: LaterRoom) -> bool:
        pod = self.cluster.pods[f"default/{name}"]
        return pod.created < room.place[2] and not name.startswith(room.entity.rpartition("/")[2])

    def compare_with_twin(self) -> None:
        """The promised time is the first at which enough pods have ended, counted slowly."""
        room = self.cluster.later.room
        if room is None:
            return
        gang = room.entity.rpartition("/")[2]
        pods = self.cluster.pods.values()
        members = [pod for pod in pods if pod.name.startswith(f"{gang}-")]
        cpu = {pod.name: _count_cpus(self._pods[pod.name]) for pod in pods}
        running = [pod for pod in pods if pod.node]
        end_of = {name: at for at, name in self._ends}
        for at in sorted({end_of[pod.name] for pod in running}):
            left = [pod for pod in running if end_of[pod.name] > at]
            free = [
                4 - sum(cpu[pod.name] for pod in left if pod.node == f"n{i}")
                for i in range(self.n_nodes)
            ]
            if sum(one // cpu[members[0].name] for one in free) >= len(members):
                assert room.until == at
                return
        raise AssertionError(f"{gang} fits at no time")


def _count_cpus(pod: wire.Pod) -> int:
    resources = pod.spec.containers[0].resources
    assert resources is not None
    assert resources.requests is not None
    return int(str(resources.requests["cpu"]))


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(100))))
def test_no_promise_is_broken_if_everybody_says_the_truth(seed: int) -> None:
    """The promised time is that of a slow twin, and whoever passes the group meanwhile does not delay it."""
    stream = Stream(seed)
    stream.live(60)
    assert stream.n_promises > 0


class CardStream(Stream):
    """As ``Stream``, on nodes of two cards that pods share."""

    def __init__(self, seed: int, n_nodes: int = 0) -> None:
        super().__init__(seed, n_nodes)
        for i in range(self.n_nodes):
            node = make.hami_node(name=f"n{i}", cards=2, cpu=64)
            self.engine.handle(events.Seen(node), BEGIN)

    def write_bind(self, bind: Bind) -> None:
        super().write_bind(bind)
        pod = self._pods[bind.uid.partition("/")[2]]
        cards = hami.make_bind_annotations(bind.node, make.read_slots(bind.devices), 1)
        pod.metadata.annotations = dict(pod.metadata.annotations or {}) | cards

    def _someone_comes(self, step: int) -> None:
        rng, run = self.rng, self.rng.choice((15.0, 40.0, 100.0))
        said: dict[str, Any] = {"run": run, "created": 10.0 * step, "gpumem": 100}
        if rng.random() < 0.2:
            n, gang = rng.randint(2, max(3, self.n_nodes)), f"gang{step}"
            self.engine.handle(events.Seen(make.pod_group(gang, n)), self.now)
            said |= {"gpu": rng.choice((1, 2)), "gpucores": rng.choice((50, 100)), "gang": gang}
            pods = [f"{gang}-{i}" for i in range(n)]
        else:
            said |= {"gpu": rng.choice((1, 1, 2)), "gpucores": rng.choice((30, 50, 60, 100))}
            pods = [f"p{step}"]
        for name in pods:
            self._run[name] = run
            self.add(name, 1, **said)

    def compare_with_twin(self) -> None:
        """When a group fits depends on which cards are chosen until then."""


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(150))))
def test_no_pod_takes_a_card_that_a_group_is_to_have(seed: int) -> None:
    """There may be room on the promised node for all of them, and the cards that are chosen still delay the group."""
    stream = CardStream(seed)
    stream.live(60)
    assert stream.n_promises > 0


def test_a_pod_that_finds_no_card_beside_a_promised_group_waits() -> None:
    """A card has room for it now, and all of both cards is the group's later."""
    scene = CardStream(0, n_nodes=1)
    scene.add("a", 1, run=200, gpu=1, gpucores=30, gpumem=100)
    scene.add("b", 1, run=100, gpu=2, gpucores=30, gpumem=100)
    assert scene.decide(1) == {"a": "n0", "b": "n0"}
    scene.engine.handle(events.Seen(make.pod_group("gang", 3)), scene.now)
    for name, gpus, cores in (("gang-0", 1, 50), ("gang-1", 1, 30), ("gang-2", 2, 50)):
        scene.add(name, 1, created=2, gang="gang", gpu=gpus, gpucores=cores, gpumem=100)
    assert scene.decide(3) == {}
    assert scene.cluster.later.room is not None
    scene.add("c", 1, created=4, gpu=1, gpucores=50, gpumem=100)
    scene.add("d", 1, created=4, gpu=1, gpucores=20, gpumem=100)
    assert scene.decide(5) == {"d": "n0"}


@pytest.mark.parametrize("late", [2.0, 20.0, 55.0])
def test_pods_that_end_a_little_late_do_not_put_a_promise_off_for_ever(late: float) -> None:
    """Whenever room is left until the promised time, others come for just so long, and end late."""
    scene = Scene(pace=Pace(explain=1e9))
    ends = {"a": 100.0, "b": 200.0}
    for i, name in enumerate(ends):
        scene.add(name, run=ends[name], node=f"n{i}")
    scene.add_gang()
    for step in range(120):
        at = 5.0 * step
        for name in [name for name, end in ends.items() if end <= at]:
            scene.end(name)
            del ends[name]
        room = scene.find_promise()
        if room is not None and room[0] > at + 5.0:
            scene.add(f"p{step}", run=room[0] - at - 5.0, created=1)
        placed = scene.decide(at)
        if "gang-0" in placed:
            break
        ends |= {name: at + scene.read_run_time(name) + late for name in placed}
        if f"p{step}" not in placed:
            scene.end(f"p{step}")
    assert 200.0 <= at <= 205.0 + late
