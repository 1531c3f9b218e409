"""A pod by itself takes no pod that a group needs. What an engine knew earlier changes no answer."""

import random
from collections.abc import Iterator

import pytest

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.groups.objects import KaiPodGroup
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from tests import make

_GROUPS, _NODES, _STEPS = ("a", "b"), 4, 16
_OTHERS = "default-scheduler"


class World:
    """Groups with extra pods on a few nodes, and what happens to them."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.pods: dict[str, wire.Pod] = {}
        self.minimum: dict[str, int] = dict.fromkeys(_GROUPS, 1)
        for number in range(2 * _NODES):
            self._make_pod(f"p{number}")

    def happen(self, step: int) -> Iterator[events.Event]:
        """Let a pod come or go, or the minimum of a group change."""
        what = self.rng.choice(("comes", "comes", "goes", "minimum"))
        if what == "comes":
            yield events.Seen(self._make_pod(f"r{step}"))
        elif what == "goes" and self.pods:
            yield events.Gone("Pod", self.pods.pop(self.rng.choice(sorted(self.pods))).metadata.uid)
        elif what == "minimum":
            group = self.rng.choice(_GROUPS)
            self.minimum[group] = self.rng.randint(1, 3)
            yield self.see_group(group)

    def see_group(self, group: str) -> events.Seen:
        meta = wire.Meta(name=group, namespace="default", uid=group)
        return events.Seen(KaiPodGroup(meta, {"minMember": self.minimum[group]}))

    def list_objects(self) -> Iterator[events.Event]:
        """List everything that there is."""
        for number in range(_NODES):
            yield events.Seen(make.node(name=f"n{number}", cpu=2))
        for group in _GROUPS:
            yield self.see_group(group)
        for pod in self.pods.values():
            yield events.Seen(pod)

    def _make_pod(self, name: str) -> wire.Pod:
        group = self.rng.choice((*_GROUPS, *_GROUPS, ""))
        pod = make.pod(
            name=name,
            cpu=1,
            node=f"n{self.rng.randrange(_NODES)}",
            scheduler_name=_OTHERS,
            annotations={names.KAI_GROUP: group} if group else {},
        )
        self.pods[name] = pod
        return pod


def find_victims(engine: Engine, name: str) -> tuple[str, list[str]]:
    """Find the node and the victims for a pod of high priority; then the pod and the evictions are no more."""
    asker = make.pod(name=name, cpu=2, priority=10)
    engine.handle(events.Seen(asker), 0.0)
    outcome = engine.decide(0.0, Unlimited())
    places = [bind.node for bind in outcome.binds] + [one.node for one in outcome.evicts]
    victims = sorted(uid for one in outcome.evicts for uid in one.victims)
    engine.handle(events.Gone("Pod", asker.metadata.uid), 0.0)
    for uid in victims:
        engine.handle(events.EvictFailed(uid, "the test goes on"), 0.0)
    return (places or [""])[0], victims


@pytest.mark.parametrize("seed", range(20))
def test_an_engine_that_knows_more_takes_the_same_pods(seed: int) -> None:
    world, engine = World(seed), Engine(Config(), is_shared=False)
    for event in world.list_objects():
        engine.handle(event, 0.0)
    n_evicted = 0
    for step in range(_STEPS):
        for event in world.happen(step):
            engine.handle(event, 0.0)
        anew = Engine(Config(), is_shared=False)
        for event in world.list_objects():
            anew.handle(event, 0.0)
        found = find_victims(engine, f"asker-{step}")
        assert found == find_victims(anew, f"asker-{step}")
        n_evicted += bool(found[1])
    assert n_evicted
