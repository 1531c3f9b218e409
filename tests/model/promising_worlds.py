"""Small random clusters in time, in which pods take the place of others and are promised room, and what may happen."""

import random
from typing import Any

import msgspec

from scheduler.config import Config
from tests.model import peer_objects as objects
from tests.scenarios.in_time import Town

Json = dict[str, Any]
_NODES = [f"n{i}" for i in range(5)]
_APPS = "ab"


class Promising:
    """A town, and lots.

    Attributes:
        log: what has happened, step by step, to be read when something is wrong.
    """

    def __init__(self, seed: int) -> None:
        self._rng, self._n = random.Random(seed), 0
        self._nodes = self._rng.sample(_NODES, self._rng.randint(1, 4))
        there = [self._node(name) for name in self._nodes]
        self.log: list[tuple[str, Json, list[Json]]] = []
        pods = [self._pod(self._rng.choice(self._nodes)) for _ in range(self._rng.randint(0, 6))]
        self.town = Town(Config(), there + pods)

    def something_happens(self) -> None:
        """One thing, and then there is time for all that follows."""
        happens = self._rng.choice([
            self._like_pods_come, self._like_pods_come, self._node_comes, self._node_goes, self._pods_go,
            self._pods_go, self._pods_are_leaving, self._other_is_bound, self._label_changes, self._budget_comes,
        ])  # fmt: skip
        step: Json = {"after": self._rng.choice([0, 60])}
        come: list[Json] = []
        happens(step, come)
        self.log.append((happens.__name__, step, come))
        self.town.step(step, come)
        self.town.step({}, [])

    def _like_pods_come(self, _: Json, come: list[Json]) -> None:
        first = self._pod()
        come += [
            first | {"metadata": first["metadata"] | self._name()}
            for _i in range(self._rng.randint(1, 4))
        ]

    def _node_comes(self, _: Json, come: list[Json]) -> None:
        """Or one is another."""
        name = self._rng.choice(_NODES)
        self._nodes = sorted({*self._nodes, name})
        come.append(self._node(name))

    def _node_goes(self, step: Json, _: list[Json]) -> None:
        if self._nodes:
            name = self._rng.choice(self._nodes)
            self._nodes.remove(name)
            step["gone"] = {"Node": [name]}

    def _pods_go(self, step: Json, _: list[Json]) -> None:
        step["gone"] = {"Pod": self._some()}

    def _pods_are_leaving(self, step: Json, _: list[Json]) -> None:
        step["leaving"] = self._some()

    def _other_is_bound(self, _: Json, come: list[Json]) -> None:
        if self._nodes:
            come.append(self._pod(self._rng.choice(self._nodes)))

    def _label_changes(self, _: Json, come: list[Json]) -> None:
        if pods := list(self.town.pods.values()):
            body = msgspec.to_builtins(self._rng.choice(pods)) | {"kind": "Pod"}
            body["metadata"]["labels"] = {"app": self._rng.choice(_APPS)}
            come.append(body)

    def _budget_comes(self, _: Json, come: list[Json]) -> None:
        come.append(
            {
                "kind": "PodDisruptionBudget",
                "metadata": {"name": f"b{self._rng.randint(0, 1)}", "namespace": "default"},
                "spec": {"selector": {"matchLabels": {"app": self._rng.choice(_APPS)}}},
                "status": {"disruptionsAllowed": self._rng.randint(0, 1)},
            }
        )

    def _some(self) -> list[str]:
        """Names of a pod or two, rather of those that were sent away."""
        pods, going = self.town.pods, self.town.engine._cluster.nominations.going
        sent = [pods[uid].metadata.name for uid in going if uid in pods]
        those = (
            sent
            if sent and self._rng.random() < 0.7
            else [one.metadata.name for one in pods.values()]
        )
        return self._rng.sample(those, min(len(those), self._rng.randint(1, 2)))

    def _node(self, name: str) -> Json:
        often = self._rng.random
        labels = {objects.HOSTNAME: name, objects.ZONE: self._rng.choice("xy")}
        if often() < 0.3:
            labels["group"] = "g"
        taints = [{"key": "k", "effect": "NoSchedule"}] if often() < 0.15 else []
        return {
            "kind": "Node",
            "metadata": {"name": name, "uid": name, "labels": labels},
            "spec": {"unschedulable": often() < 0.15, "taints": taints},
            "status": {
                "allocatable": {
                    "cpu": self._rng.choice([2, 4, 6]),
                    "pods": self._rng.choice([3, 10]),
                }
            },
        }

    def _name(self) -> Json:
        self._n += 1
        return {"name": f"p{self._n}", "uid": f"p{self._n}"}

    def _pod(self, node: str = "") -> Json:
        """A pod of ours that waits; of another's, on a node, when one is given."""
        rng, often = self._rng, self._rng.random
        container: Json = {"name": "c", "resources": {"requests": {"cpu": rng.randint(1, 4)}}}
        if often() < 0.15:
            container["ports"] = [{"hostPort": rng.randint(1, 2)}]
        spec: Json = {
            "schedulerName": "other" if node else "evenkeel",
            "priority": rng.choice([0, 0, 1, 5, 10]),
            "containers": [container],
        }
        about = {"labelSelector": {"matchLabels": {"app": rng.choice(_APPS)}}}
        domain = {"topologyKey": rng.choice([objects.HOSTNAME, objects.HOSTNAME, objects.ZONE])}
        if often() < 0.2:
            spec["affinity"] = objects.affinity("podAntiAffinity", about | domain)
        if often() < 0.2:
            even = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
            spec["topologySpreadConstraints"] = [even | about | domain]
        if often() < 0.15:
            spec["nodeSelector"] = {"group": "g"}
        if often() < 0.2:
            spec["tolerations"] = [{"operator": "Exists"}]
        if often() < 0.15:
            spec["preemptionPolicy"] = "Never"
        if node:
            spec["nodeName"] = node
        meta = {"namespace": "default", "labels": {"app": rng.choice(_APPS)}} | self._name()
        phase = "Running" if node else "Pending"
        return {"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}}
