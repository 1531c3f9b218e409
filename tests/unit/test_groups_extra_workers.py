"""Workers of a Job beyond the minimum of its gang: which of them goes first, and what happens if it may not go."""

from __future__ import annotations

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.groups.objects import Job
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from tests import make

GANG = "gang.scheduling.koordinator.sh/"


class Scene:
    """An indexed Job of three workers, of which two must run, each on a node of its own."""

    def __init__(self, ranks: tuple[int, ...]) -> None:
        self.engine, self.now = Engine(Config()), 1_000_000.0
        meta = wire.Meta(name="j", namespace="default", uid="j", annotations={names.GANG: "2"})
        spec = {"parallelism": 3, "completions": 3, "completionMode": "Indexed", "template": {}}
        self.see(Job(meta, spec))
        owner = wire.Owner(kind="Job", name="j", api_version="batch/v1", controller=True)
        for i in ranks:
            self.see(make.node(name=f"n{len(self.engine._cluster.nodes.rows)}", cpu=4))
            node = f"n{len(self.engine._cluster.nodes.rows) - 1}"
            worker = make.pod(name=f"w{i}", node=node, cpu=3, annotations={names.JOB_INDEX: str(i)})
            worker.metadata.owner_references = [owner]
            self.see(worker)
        self.decide()

    def see(self, found: events.Object) -> None:
        self.engine.handle(events.Seen(found), self.now)

    def add_gang(self, name: str, n: int) -> None:
        words = {f"{GANG}name": name, f"{GANG}min-available": str(n)}
        for i in range(n):
            self.see(make.pod(name=f"{name}-{i}", cpu=3, priority=100, annotations=words))

    def decide(self) -> list[str]:
        """Decide; return who goes."""
        evicts = self.engine.decide(self.now, Unlimited()).evicts
        return sorted(uid for evict in evicts for uid in evict.victims)


def test_the_worker_of_the_last_rank_goes_first() -> None:
    scene = Scene((0, 1, 2))
    scene.add_gang("one", 1)
    assert scene.decide() == ["default/w2"]


def test_the_minimum_does_not_go_while_an_extra_worker_may_not_go() -> None:
    scene = Scene((2, 0, 1))
    scene.add_gang("one", 1)
    assert scene.decide() == ["default/w2"]
    refused = events.EvictFailed("default/w2", "a budget refuses", is_refused=True)
    scene.engine.handle(refused, scene.now)
    scene.engine.handle(events.Gone("Pod", "default/one-0"), scene.now)
    scene.add_gang("two", 2)
    for _ in range(3):
        scene.now += 20.0
        assert scene.decide() == []
    # After five minutes it may be asked again, and the whole Job goes.
    scene.now += 600.0
    assert scene.decide() == ["default/w0", "default/w1", "default/w2"]
