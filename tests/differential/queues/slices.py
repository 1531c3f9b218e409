"""Elastic jobs in a world: workloads that get fewer pods, and larger ones that are to take their place."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from copy import deepcopy
from random import Random
from typing import Any

from tests.differential.queues.quotas import NAMESPACE
from tests.differential.queues.times import write_time

Json = dict[str, Any]
Scaled = tuple[str, Mapping[str, int]]

GATE = "ElasticJobsViaWorkloadSlices"
ELASTIC = "kueue.x-k8s.io/elastic-job"
REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"
REPLACED = "WorkloadSliceReplaced"
# Of all workloads, those of elastic jobs; of those in each later step, those that grow and those that shrink.
_ELASTIC, _GROW, _SHRINK = 0.6, 0.4, 0.2


class Elastic:
    """The workloads of elastic jobs that are there, as they are step by step."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        # The last slice of each job, and all that came before.
        self._last: dict[str, Json] = {}
        self._bodies: dict[str, Json] = {}

    def choose(self, created: Iterable[Json]) -> None:
        """Make some of the workloads elastic. Of those, none may be admitted in part."""
        for body in created:
            if self._rng.random() < _ELASTIC:
                body["metadata"]["annotations"] = {ELASTIC: "true"}
                for one in body["spec"]["podSets"]:
                    one.pop("minCount", None)
                self._remember(body)

    def forget(self, names: Iterable[str]) -> None:
        """Let workloads be that end or are stopped."""
        for name in names:
            self._last.pop(name, None)

    def grow(self, at: int) -> list[Json]:
        """Return the next slice of some of the jobs; they come one a second from a time on."""
        found: list[Json] = []
        for name in list(self._last):
            if self._rng.random() < _GROW:
                found.append(self._grow(self._last.pop(name), at + len(found)))
        for body in found:
            self._remember(body)
        return found

    def shrink(self) -> tuple[Scaled, ...]:
        """Return which workloads have fewer pods from now on; a job whose next slice waits may too."""
        found: list[Scaled] = []
        for name, body in self._bodies.items():
            large = [one for one in body["spec"]["podSets"] if one["count"] > 1]
            if large and self._rng.random() < _SHRINK:
                chosen = self._rng.choice(large)
                chosen["count"] -= self._rng.randint(1, chosen["count"] - 1)
                found.append((name, {chosen["name"]: chosen["count"]}))
        return tuple(found)

    def _remember(self, body: Json) -> None:
        name = body["metadata"]["name"]
        self._last[name] = self._bodies[name] = deepcopy(body)

    def _grow(self, old: Json, at: int) -> Json:
        body, name = deepcopy(old), old["metadata"]["name"]
        body["metadata"] |= {
            "name": f"{name}-up",
            "uid": str(uuid.UUID(int=self._rng.getrandbits(128), version=4)),
            "creationTimestamp": write_time(at),
            "annotations": {ELASTIC: "true", REPLACES: f"{NAMESPACE}/{name}"},
        }
        grows, *others = self._rng.sample(body["spec"]["podSets"], len(body["spec"]["podSets"]))
        grows["count"] += self._rng.choice([1, 1, 2, 3])
        for one in others:
            if one["count"] > 1 and self._rng.random() < 0.2:
                one["count"] -= 1
        return body


def scale(pod_sets: Iterable[Json], counts: Mapping[str, int]) -> list[Json]:
    """Return pod sets with other counts."""
    return [{**one, "count": counts.get(one["name"], one["count"])} for one in pod_sets]
