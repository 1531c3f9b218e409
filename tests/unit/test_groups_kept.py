"""Which pods of groups run, and which of them do not go alone, is known as it is found anew, whatever changes."""

from __future__ import annotations

import random

import pytest

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.groups.objects import CompositePodGroup, KubePodGroup
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.state import checks
from scheduler.state.groups import forming
from scheduler.state.groups.running import list_running
from tests import make

_STEPS = 120
# A group names one above it, whether it exists or not; circles are among them.
_ABOVE, _LEAVES, _PODS = ("a", "b", "c"), ("x", "y"), 6
_KOORDINATOR = "gang.scheduling.koordinator.sh/"


class World:
    """A node, and groups whose objects, parents, pods and names of each other change all the time."""

    def __init__(self, seed: int, *, agrees: bool = False) -> None:
        """``agrees``: all pods are in gangs that name each other alike."""
        self.rng, self._agrees = random.Random(seed), agrees
        # With few pods it happens that all of a gang have gone.
        self._n_pods = 3 if agrees else _PODS
        self.engine = Engine(Config(), is_shared=False)
        self.engine.handle(events.Seen(make.node(name="n", cpu=64)), 0.0)
        # The most pods that were kept at once, and how often a group moved to another parent.
        self.n_kept = self.n_moved = 0
        self._parent_of: dict[str, str] = {}
        self._bound: set[str] = set()

    def happen(self) -> None:
        """Let something change, and take some pods away in a trial."""
        what = self.rng.choice(
            (self._see_group, self._see_composite, self._see_pod, self._drop_pod)
        )
        what()
        if self.rng.random() < 0.3:
            self.engine.decide(0.0, Unlimited())
        cluster = self.engine._cluster
        there = sorted(uid for uid, pod in cluster.pods.items() if pod.node)
        if there and self.rng.random() < 0.5:
            with cluster.trial() as trial:
                trial.take_away(*self.rng.sample(there, self.rng.randint(1, len(there))))
                for root in cluster.groups.list_roots().values():
                    known = cluster.groups.kept.list_running(root, cluster.groups)
                    within = forming.list_groups_within(root, cluster.groups)
                    assert known == list_running(within, cluster.groups)
        if self.rng.random() < 0.7:
            # Else several changes are looked at together.
            checks.verify(cluster)
        kept = cluster.groups.kept.find_rows(cluster.ledger.pods.columns.node.size)
        self.n_kept = max(self.n_kept, int(kept.sum()))

    def _see_group(self) -> None:
        name = self.rng.choice(_LEAVES)
        if self.rng.random() < 0.2:
            self.engine.handle(events.Gone("PodGroup.scheduling.k8s.io", f"default/{name}"), 0.0)
            return
        spec = {
            "schedulingPolicy": {"gang": {"minCount": self.rng.randint(1, 3)}},
            "disruptionMode": self.rng.choice(({"all": {}}, {"single": {}})),
        }
        self._see(KubePodGroup, name, spec, _ABOVE)

    def _see_composite(self) -> None:
        at = self.rng.randrange(len(_ABOVE))
        spec = {
            "schedulingPolicy": {"gang": {"minGroupCount": 1}},
            "disruptionMode": self.rng.choice(({"all": {}}, {"single": {}})),
        }
        self._see(CompositePodGroup, _ABOVE[at], spec, _ABOVE)

    def _see(
        self,
        shape: type[KubePodGroup | CompositePodGroup],
        name: str,
        spec: dict[str, object],
        parents: tuple[str, ...],
    ) -> None:
        parent = self.rng.choice(("", *parents))
        self.n_moved += self._parent_of.get(name, parent) != parent
        self._parent_of[name] = parent
        more = {"parentCompositePodGroupName": parent} if parent else {}
        meta = wire.Meta(name=name, namespace="default", uid=name)
        self.engine.handle(events.Seen(shape(metadata=meta, spec=spec | more, status=None)), 0.0)

    def _see_pod(self) -> None:
        name = f"p{self.rng.randrange(self._n_pods)}"
        node = "n" if name in self._bound or self.rng.random() < 0.7 else ""
        if node:
            self._bound.add(name)
        group = self.rng.choice(_LEAVES)
        if not self._agrees and self.rng.random() < 0.5:
            spec = {"schedulingGroup": {"podGroupName": group}}
            pod = make.pod(name=name, node=node, cpu=1, spec=spec)
        else:
            named = [one for one in _LEAVES if self._agrees or self.rng.random() < 0.7]
            together = [f"default/{one}" for one in named]
            words = {"name": group, "min-available": "2"}
            if together:
                words["groups"] = f"[{', '.join(map(_quote, together))}]"
            annotations = {f"{_KOORDINATOR}{key}": value for key, value in words.items()}
            pod = make.pod(name=name, node=node, cpu=1, annotations=annotations)
        self.engine.handle(events.Seen(pod), 0.0)

    def _drop_pod(self) -> None:
        name = f"p{self.rng.randrange(self._n_pods)}"
        self._bound.discard(name)
        self.engine.handle(events.Gone("Pod", f"default/{name}"), 0.0)


def _quote(name: str) -> str:
    return f'"{name}"'


@pytest.mark.parametrize("seed", range(40))
def test_who_is_kept_is_as_found_anew(seed: int) -> None:
    world = World(seed)
    for _ in range(_STEPS):
        world.happen()
    assert world.n_kept > 1
    assert world.n_moved > 1


@pytest.mark.parametrize("seed", range(10))
def test_gangs_that_name_each_other_stay_one_group_when_the_pods_of_one_of_them_have_gone(
    seed: int,
) -> None:
    world = World(seed, agrees=True)
    for _ in range(_STEPS):
        world.happen()
    assert world.n_kept > 1


@pytest.mark.parametrize("n_pods", [0, 2**62])
def test_of_groups_that_have_gone_nothing_stays(n_pods: int) -> None:
    """Another replica leads, or nobody asks who would have to go: no search clears what was marked for it."""
    engine = Engine(Config())
    engine.handle(events.Seen(make.node(name="n", cpu=8)), 0.0)
    for number in range(20):
        words = {f"{_KOORDINATOR}name": f"g{number}", f"{_KOORDINATOR}min-available": "1"}
        engine.handle(events.Seen(make.pod(name="p", cpu=1, annotations=words)), 0.0)
        assert len(engine.decide(0.0, Unlimited(n_pods)).binds) == bool(n_pods)
        engine.handle(events.Gone("Pod", "default/p"), 0.0)
        engine.decide(0.0, Unlimited(n_pods))
    assert not engine._cluster.groups._kept._stale
