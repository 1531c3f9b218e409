"""A small API server in memory: raw objects, and streams that deliver what changed, in order but late.

There are three streams, of nodes, of our pods and of others' pods, each in its own time. A list replaces what
a stream still has to deliver. What is delivered goes into a ``Cluster`` as the operator's loop does it.
"""

import copy
import random
from collections import deque
from typing import Any

import msgspec

from scheduler.api import hami, names, wire
from scheduler.api.cards import CardUse, Slots
from scheduler.state.cluster import Cluster
from tests import make
from tests.unit import random_clusters

Json = dict[str, Any]
STREAMS = ("nodes", "ours", "others")


def raw(thing: wire.Node | wire.Pod) -> Json:
    """The JSON of a built object."""
    body: Json = msgspec.to_builtins(thing)
    return body


def node(rng: random.Random, name: str) -> Json:
    """A node of any kind: with HAMi in JSON or text, with plain GPUs, without, or malformed."""
    figures: Json = {
        "name": name,
        "uid": f"{name}-{rng.randrange(3)}",
        "cpu": rng.choice(["4", "3500m", "8"]),
        "memory": rng.choice(["8Gi", "16Gi"]),
        "pods": rng.choice([0, 5, 110]),
        "labels": {"zone": rng.choice("abc")},
        "taints": [("soft", "", "PreferNoSchedule")] * rng.randrange(2),
        "unschedulable": rng.random() < 0.1,
    }
    if rng.random() < 0.5:
        figures["allocatable"] = {f"example.com/late-{rng.randrange(6)}": rng.randrange(5)}
    kind = rng.random()
    if kind < 0.45:
        cards = [
            make.card(uuid=f"{name}-GPU-{i}", index=i, mib=rng.choice([15360, 24576]))
            for i in rng.sample(range(5), rng.randrange(5))
        ]
        cordoned = [f"{name}-GPU-{i}" for i in range(2) if rng.random() < 0.2]
        return raw(make.hami_node(cards=cards, cordoned=cordoned, **figures))
    if kind < 0.55:
        text = "".join(
            f"{name}-GPU-{i},10,15360,100,T4,0,true,{i},hami-core:" for i in range(rng.randrange(3))
        )
        return raw(make.node(annotations={names.HAMI_REGISTER: text or ":"}, **figures))
    if kind < 0.65:
        return raw(make.node(annotations={names.HAMI_REGISTER: "[oops"}, gpus=2, **figures))
    if kind < 0.7:
        figures["allocatable"] = {"example.com/late-0": "two"}
    if rng.random() < 0.2:
        figures["labels"] |= {"gpu": rng.choice(["on", "off"])}
    return raw(make.node(gpus=rng.choice([0, 1, 2, 20]), **figures))


def slots(rng: random.Random, body: Json, node_name: str) -> Slots:
    """Cards for some containers of a pod; the node may not have them."""
    containers = [*body["spec"].get("initContainers", ()), *body["spec"]["containers"]]
    return tuple(
        tuple(
            CardUse(f"{node_name}-GPU-{i}", rng.choice([1000, 7500]), rng.choice([0, 30]))
            for i in rng.sample(range(5), rng.randrange(3))
        )
        for _ in containers
    )


class Server:
    """Objects by name or uid, and what each stream has yet to deliver (None: deleted)."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.nodes: dict[str, Json] = {}
        self.pods: dict[str, Json] = {}
        self.late: dict[str, deque[tuple[str, Json | None]]] = {s: deque() for s in STREAMS}
        self._serial = 0

    # Changes.

    def put_node(self, body: Json) -> None:
        self.nodes[body["metadata"]["name"]] = body
        self.late["nodes"].append((body["metadata"]["name"], copy.deepcopy(body)))

    def delete_node(self, name: str) -> None:
        if self.nodes.pop(name, None):
            self.late["nodes"].append((name, None))

    def put_pod(self, body: Json) -> None:
        self.pods[body["metadata"]["uid"]] = body
        self.late[_stream(body)].append((body["metadata"]["uid"], copy.deepcopy(body)))

    def delete_pod(self, uid: str) -> None:
        body = self.pods.pop(uid, None)
        if body:
            self.late[_stream(body)].append((uid, None))

    def finish_pod(self, uid: str, *, seen: bool) -> None:
        """A finished pod leaves the stream; a list without a field selector may still show it."""
        body = self.pods.pop(uid)
        body["status"]["phase"] = "Succeeded"
        self.late[_stream(body)].append((uid, body if seen else None))

    def new_pod(self, kind: str, *, scheduler_name: str = names.SCHEDULER, **more: Any) -> Json:
        self._serial += 1
        figures = random_clusters.PODS[kind] | more
        body = raw(
            make.pod(name=f"{kind}-{self._serial}", scheduler_name=scheduler_name, **figures)
        )
        self.put_pod(body)
        return body

    def bind(self, uid: str, node_name: str, cards: Slots) -> bool:
        """What the binding subresource does: node and annotations in one write, or a refusal."""
        body = self.pods.get(uid)
        if body is None or body["spec"].get("nodeName"):
            return False
        body["spec"]["nodeName"] = node_name
        if cards:
            notes = body["metadata"].get("annotations") or {}
            body["metadata"]["annotations"] = notes | hami.bind_annotations(node_name, cards, 1)
        self.put_pod(body)
        return True

    # Deliveries.

    def deliver(self, stream: str, most: int = 10**6) -> list[str]:
        """Bring up to ``most`` changes of a stream to the cluster; the keys of what was deleted."""
        gone = []
        while self.late[stream] and most:
            key, body = self.late[stream].popleft()
            most -= 1
            self.see(stream, key, body)
            if body is None or body.get("status", {}).get("phase") == "Succeeded":
                gone.append(key)
        return gone

    def deliver_all(self) -> list[str]:
        return [key for stream in STREAMS for key in self.deliver(stream)]

    def see(self, stream: str, key: str, body: Json | None) -> None:
        if stream == "nodes":
            if body is None:
                self.cluster.node_gone(key)
            else:
                self.cluster.see_node(msgspec.convert(body, wire.Node))
        elif body is None:
            self.cluster.pod_gone(key)
        else:
            self.cluster.see_pod(msgspec.convert(body, wire.Pod))

    def relist(self, stream: str, rng: random.Random, into: Cluster | None = None) -> None:
        """All objects of a stream in no particular order, ahead of what was yet to come."""
        cluster = into or self.cluster
        if into is None:
            self.late[stream].clear()
        if stream == "nodes":
            nodes = [msgspec.convert(body, wire.Node) for body in self.nodes.values()]
            make.relist_nodes(cluster, rng.sample(nodes, len(nodes)))
            return
        pods = [
            msgspec.convert(body, wire.Pod)
            for body in self.pods.values()
            if _stream(body) == stream
        ]
        make.relist_pods(
            cluster, rng.sample(pods, len(pods)), scheduler="evenkeel" if stream == "ours" else ""
        )

    def build(self, cluster: Cluster, rng: random.Random) -> None:
        """Show a cluster today's objects and no others, pods and nodes in any order."""
        for stream in rng.sample(STREAMS, len(STREAMS)):
            self.relist(stream, rng, into=cluster)


def _stream(body: Json) -> str:
    return "ours" if body["spec"]["schedulerName"] == names.SCHEDULER else "others"
