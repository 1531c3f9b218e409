"""Flavors, cohorts and ClusterQueues, and the workloads that come to them step by step, from a seed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tests.differential.queues import quotas, workloads
from tests.differential.queues.quotas import API, NAMESPACE
from tests.differential.queues.slices import GATE, Elastic, Scaled
from tests.differential.queues.times import ROUNDS_AFTER, time_of, write_time

Json = dict[str, Any]

_STEPS = (3, 4)
_FIRST, _LATER = (6, 16), (2, 6)


@dataclass(frozen=True, slots=True)
class Step:
    """What happens before the scheduler may go on. All of it is there when it does.

    Attributes:
        created: workloads that come, each a second after the one before.
        finished: workloads by name, whose jobs end; of those, the ones that are not admitted go on waiting.
        stopped: workloads by name that are not active any more.
        changed: Cohorts and ClusterQueues as they are from now on.
        scaled: workloads by name, and the pod sets that have fewer pods from now on.
    """

    created: tuple[Json, ...] = ()
    finished: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    changed: tuple[Json, ...] = ()
    scaled: tuple[Scaled, ...] = ()


@dataclass(frozen=True, slots=True)
class World:
    """One world.

    Attributes:
        seed: it is made from.
        settings: of Kueue's Configuration, such as fairSharing.
        objects: what is there before the first step, no workloads.
        steps: one after the other.
    """

    seed: int
    settings: Json = field(default_factory=dict)
    objects: tuple[Json, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def objects_at_the_end(self) -> list[Json]:
        """What is there after the last step, no workloads."""
        changed = [one for step in self.steps for one in step.changed]
        named = {(one["kind"], one["metadata"]["name"]): one for one in (*self.objects, *changed)}
        return list(named.values())


def build(seed: int, *, is_fair: bool = False, has_slices: bool = False) -> World:
    """The world of a seed; with fair sharing its cohorts share by weight, with slices some of its jobs are elastic."""
    rng = Random(f"{seed}/queues")
    plan = quotas.draw_plan(rng)
    objects = quotas.build(rng, plan, is_fair=is_fair)
    settings: Json = {}
    if is_fair:
        strategies = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
        settings["fairSharing"] = {
            "preemptionStrategies": rng.choice([strategies, strategies[:1], strategies[1:]])
        }
    steps = tuple(_draw_steps(rng, plan, objects))
    if has_slices:
        settings["featureGates"] = {GATE: True}
        steps = tuple(_add_slices(Random(f"{seed}/slices"), steps))
    return World(seed, settings, tuple(objects), steps)


def _draw_steps(rng: Random, plan: quotas.Plan, objects: list[Json]) -> Iterator[Step]:
    queues = [one["metadata"]["name"] for one in objects if one["kind"] == "LocalQueue"]
    now = {
        (one["kind"], one["metadata"]["name"]): one
        for one in objects
        if one["kind"] in {"Cohort", "ClusterQueue"}
    }
    there: list[str] = []
    for index in range(rng.randint(*_STEPS)):
        number = rng.randint(*(_FIRST if not index else _LATER))
        created = [
            _date(
                workloads.draw(rng, f"w{len(there) + i}", queues, plan, is_late=index > 0),
                rng,
                index,
                i,
            )
            for i in range(number)
        ]
        finished = _draw_some(rng, there, 0.3 if index > 1 else 0.0)
        stopped = _draw_some(rng, there, 0.05)
        changed = []
        if index > 1 and now and rng.random() < 0.6:
            key = rng.choice(sorted(now))
            now[key] = quotas.change(rng, deepcopy(now[key]))
            changed.append(now[key])
        there += [one["metadata"]["name"] for one in created]
        yield Step(tuple(created), finished, stopped, tuple(changed))


def _add_slices(rng: Random, steps: tuple[Step, ...]) -> Iterator[Step]:
    elastic = Elastic(rng)
    for index, step in enumerate(steps):
        elastic.forget([*step.finished, *step.stopped])
        scaled = elastic.shrink()
        grown = elastic.grow(time_of(index, len(step.created)))
        elastic.choose(step.created)
        yield replace(step, created=(*step.created, *grown), scaled=scaled)


def _draw_some(rng: Random, names: list[str], share: float) -> tuple[str, ...]:
    return tuple(name for name in names if rng.random() < share)


def _date(workload: Json, rng: Random, step: int, second: int) -> Json:
    """Give it what the API server would: all that an order can depend on is the world's."""
    workload["metadata"] |= {
        "uid": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        "creationTimestamp": write_time(time_of(step, second)),
    }
    return workload


__all__ = ["API", "NAMESPACE", "ROUNDS_AFTER", "Step", "World", "build", "time_of", "write_time"]
