"""A cluster hears of a server's changes: three streams, each in order, late, and in its own time.

What is delivered goes into a ``Cluster`` as the operator's loop does it.
"""

import random

import msgspec

from scheduler.api import hami, hami_mig, names, wire
from scheduler.api.cards import Slots
from scheduler.state.cluster import Cluster
from tests import make
from tests.model import server as model
from tests.model.server import Json, Server

# Kind and field selector. Pods of others are seen before they are bound, and so are pods that have finished.
SOURCES = {
    "nodes": ("nodes", ""),
    "ours": ("pods", f"spec.schedulerName={names.SCHEDULER}"),
    "others": ("pods", f"spec.schedulerName!={names.SCHEDULER}"),
}


class Streams:
    """What a cluster has heard of a server so far.

    Attributes:
        cluster: who hears; ``restart`` puts another in its place.
    """

    def __init__(self, server: Server, cluster: Cluster) -> None:
        self.server = server
        self.cluster = cluster
        self._read = dict.fromkeys(SOURCES, 0)

    def deliver(self, stream: str, most: int = 10**6) -> list[str]:
        """Bring up to ``most`` changes of a stream to the cluster; the uids of pods that are over."""
        gone = []
        while self._read[stream] < len(self.server.log) and most:
            change = self.server.log[self._read[stream]]
            self._read[stream] += 1
            if event := model.event_of(change, *SOURCES[stream]):
                most -= 1
                gone += self._see(*event, stream)
        return gone

    def deliver_all(self) -> list[str]:
        return [uid for stream in SOURCES for uid in self.deliver(stream)]

    def repeat(self, stream: str, rng: random.Random) -> None:
        """Show some objects of a stream once more, as they are."""
        for body in self._listed(stream):
            if rng.random() < 0.3:
                self._see("MODIFIED", body, stream)

    def relist(self, stream: str, rng: random.Random) -> None:
        """All objects of a stream in no particular order; what was yet to come is not delivered any more."""
        self._read[stream] = len(self.server.log)
        self._list_into(self.cluster, stream, rng)

    def build(self, cluster: Cluster, rng: random.Random) -> None:
        """Show a cluster today's objects and no others, pods and nodes in any order."""
        for stream in rng.sample(list(SOURCES), len(SOURCES)):
            self._list_into(cluster, stream, rng)

    def restart(self, cluster: Cluster, rng: random.Random) -> None:
        """Another cluster hears from now on, which knows only what the server shows."""
        self.cluster = cluster
        self._read = dict.fromkeys(SOURCES, len(self.server.log))
        self.build(cluster, rng)

    def bind(self, uid: str, node_name: str, cards: Slots) -> bool:
        """Send a binding, node and annotations in one write; whether the server took it."""
        pod = self.server.pod_of(uid)
        if pod is None:
            return False
        notes = hami.make_bind_annotations(node_name, cards, 1) if cards else {}
        if instances := hami_mig.encode_allocations(cards):
            notes[names.HAMI_MIG_ALLOCATIONS] = instances
        binding = {"metadata": {"uid": uid, "annotations": notes}, "target": {"name": node_name}}
        try:
            self.server.bind(pod["metadata"]["namespace"], pod["metadata"]["name"], binding)
        except model.Refused:
            return False
        return True

    def _listed(self, stream: str) -> list[Json]:
        kind, selector = SOURCES[stream]
        return [body for body in self.server.of_kind(kind) if model.matches(selector, body)]

    def _list_into(self, cluster: Cluster, stream: str, rng: random.Random) -> None:
        found = self._listed(stream)
        found = rng.sample(found, len(found))
        if stream == "nodes":
            make.relist_nodes(cluster, [msgspec.convert(body, wire.Node) for body in found])
            return
        scheduler = names.SCHEDULER if stream == "ours" else ""
        pods = [msgspec.convert(body, wire.Pod) for body in found]
        make.relist_pods(cluster, pods, scheduler=scheduler)

    def _see(self, kind: str, body: Json, stream: str) -> list[str]:
        if stream == "nodes":
            if kind == "DELETED":
                self.cluster.drop_node(body["metadata"]["name"])
            else:
                self.cluster.see_node(msgspec.convert(body, wire.Node))
            return []
        if kind == "DELETED":
            self.cluster.drop_pod(body["metadata"]["uid"])
        else:
            self.cluster.see_pod(msgspec.convert(body, wire.Pod))
        is_over = kind == "DELETED" or body["status"]["phase"] == "Succeeded"
        return [body["metadata"]["uid"]] if is_over else []
