"""The Eviction API refuses to let a victim of a group go: who was evicted comes back, and nobody is evicted over and over."""

from __future__ import annotations

from scheduler.api.door import events
from scheduler.engine.chores import Pace
from tests import make
from tests.unit.test_backfill import Scene

_GANG = "gang.scheduling.koordinator.sh/"


class Refusing(Scene):
    """Pods that are evicted are made again at once, but for those that the Eviction API does not let go.

    Attributes:
        n_evicted: how many pods were evicted.
    """

    def __init__(self, *refused: str) -> None:
        super().__init__(pace=Pace(explain=1e9))
        self._refused = refused
        self.n_evicted = 0
        for i in range(2):
            self.add_victim(f"v{i}", f"n{i}")
        self.add_gang("gang", 2, priority=5)

    def add_victim(self, name: str, node: str = "") -> None:
        annotations = {f"{_GANG}name": "victims", f"{_GANG}min-available": "2"}
        self.add(name, node=node, annotations=annotations)

    def live(self, seconds: int) -> dict[str, str]:
        """Decide once a second; return where the pods are in the end."""
        end = int(self.now) + seconds
        while self.now < end:
            outcome = self._turn()
            for bind in outcome.binds:
                self.write_bind(bind)
                self.engine.handle(events.BindDone(bind.uid), self.now)
                self.engine.handle(events.Seen(self._pods[bind.uid.partition("/")[2]]), self.now)
            for uid in (uid for evict in outcome.evicts for uid in evict.victims):
                name = uid.partition("/")[2]
                if name in self._refused:
                    self.engine.handle(
                        events.EvictFailed(uid, "a budget", is_refused=True), self.now
                    )
                    continue
                self.n_evicted += 1
                self.engine.handle(events.EvictDone(uid), self.now)
                self.end(name)
                self.add_victim(f"{name}r")
            self.now += 1.0
        pods = self.cluster.pods.values()
        return {pod.name: pod.node for pod in pods if pod.node}


def test_a_gang_of_which_one_pod_may_not_go_is_whole_again_soon() -> None:
    scene = Refusing("v1")
    assert scene.live(60) == {"v0r": "n0", "v1": "n1"}
    assert scene.n_evicted == 1


def test_a_pod_that_may_not_go_is_not_asked_again_with_each_try() -> None:
    scene = Refusing("v1")
    scene.live(1200)
    assert scene.n_evicted <= 4


def test_the_group_goes_where_room_opens_after_a_refusal() -> None:
    scene = Refusing("v1")
    scene.live(60)
    for i in (2, 3):
        scene.engine.handle(events.Seen(make.node(name=f"n{i}", cpu=4)), scene.now)
    assert scene.live(60) == {"v0r": "n0", "v1": "n1", "gang-0": "n2", "gang-1": "n3"}
    assert scene.n_evicted == 1


def test_other_victims_are_found_after_a_refusal() -> None:
    scene = Refusing("v1")
    for i in (2, 3):
        scene.engine.handle(events.Seen(make.node(name=f"n{i}", cpu=4)), scene.now)
        scene.add(f"other{i}", node=f"n{i}", priority=1)
    found = scene.live(60)
    # One node is free by then, and one more victim is enough.
    assert {found["gang-0"], found["gang-1"]} == {"n0", "n2"}
    assert (found["v1"], found["other3"]) == ("n1", "n3")
    assert scene.n_evicted == 2
