"""Pods that wait for room on a node: who comes after them has to fit beside them, too.

They have scheduling gates, or kube-scheduler would decide for them as well; and its name, or it would not count them.
"""

from __future__ import annotations

from random import Random

from tests.differential.features.priorities import rank
from tests.differential.worlds import Feature, World
from tests.differential.worlds import pod as a_pod


def _nominated(rng: Random, world: World) -> None:
    for node in world.nodes:
        name = node["metadata"]["name"]
        for i in range(rng.choice([0, 1, 1, 2])):
            one = a_pod(rng, f"nominated-{name}-{i}")
            asked = rng.choice([{}, {"cpu": "1"}, {"cpu": "3500m"}, {"memory": "6Gi"}])
            one["spec"]["containers"][0]["resources"]["requests"] |= asked
            one["spec"]["schedulingGates"] = [{"name": "example.com/later"}]
            one["status"] = {"phase": "Pending", "nominatedNodeName": name}
            rank(rng, one)
            world.pods.append(one)


FEATURES = (Feature(name="nominated", world=_nominated),)
