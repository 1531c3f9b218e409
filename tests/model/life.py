"""The life of a cluster: a server, a scheduler that hears of it late, and what may happen to both.

A public method that takes a source of chance and answers nothing is something that may happen. What differs
between lives (which nodes and pods there are, how wild it gets) is in the classes that tests derive.
"""

import inspect
import itertools
import random
from collections.abc import Sequence
from typing import Any, Self

from scheduler.api import names
from scheduler.api.cards import CardUse, Slots
from scheduler.config import Config
from scheduler.state.cluster import Cluster
from scheduler.state.pods import Life as PodLife
from scheduler.state.pods import PodRecord
from tests import make
from tests.model import clusters, workloads
from tests.model.server import Json, Server
from tests.model.streams import SOURCES, Streams


class Life:
    """A server, the cluster that follows it, a cycle, and binds whose results are not known yet.

    Attributes:
        in_flight: node and cards by uid of the pod, in the order of the decisions.
        onlookers: pods that wait, and that nobody decides about.
        n_bound: binds that the server took.
    """

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or Config()
        self.server = Server()
        self.cluster = self.new_cluster()
        self.cycle = make.cycle(cluster=self.cluster, config=self.config)
        self.streams = Streams(self.server, self.cluster)
        self.in_flight: dict[str, tuple[str, Slots]] = {}
        self.onlookers: set[str] = set()
        self.n_bound = 0
        # A seed may come twice, and a pod that is gone does not come back under its uid.
        self._numbers = itertools.count(1)

    def happen(self, name: str, seed: int) -> None:
        getattr(self, name)(random.Random(seed))

    # Pods.

    def pods_come(self, rng: random.Random) -> None:
        kind = rng.choice(list(workloads.PODS))
        for _ in range(rng.randrange(1, 5)):
            self.new_pod(kind)

    def pods_go(self, rng: random.Random) -> None:
        """Pods that run leave, or any that does not only look on."""
        bound = self.pods(bound=True)
        some = bound if bound and rng.random() < 0.7 else self.server.of_kind("pods")
        for pod in rng.sample(some, min(len(some), rng.randrange(1, 5))):
            if pod["metadata"]["uid"] not in self.onlookers:
                self.delete(pod)

    def pod_finishes(self, rng: random.Random) -> None:
        """It leaves the streams; one without a selector may show it first as it ended."""
        if pod := self.some_pod(rng):
            if rng.random() < 0.7:
                self.change(pod, status=pod["status"] | {"phase": "Succeeded"})
            self.delete(pod)

    # News.

    def something_is_delivered(self, rng: random.Random) -> None:
        stream = rng.choice([*SOURCES, "ours"])
        self._heard_gone(self.streams.deliver(stream, rng.choice((1, 4, 30))))

    def everything_is_delivered(self, rng: random.Random) -> None:
        del rng
        self.settle()

    def current_objects_are_repeated(self, rng: random.Random) -> None:
        stream = rng.choice(list(SOURCES))
        self._heard_gone(self.streams.deliver(stream))
        self.streams.repeat(stream, rng)

    def list_is_read_again(self, rng: random.Random) -> None:
        self.streams.relist(rng.choice(list(SOURCES)), rng)
        self._heard_gone(list(self.in_flight))

    # The scheduler.

    def scheduler_decides(self, rng: random.Random) -> None:
        waiting = [
            pod
            for pod in self.cluster.pods.values()
            if make.is_waiting(pod) and pod.uid not in self.onlookers
        ]
        if rng.random() < 0.3:
            rng.shuffle(waiting)  # else like pods follow each other
        for bind in self.cycle.schedule(waiting[: rng.randrange(1, 24)]).binds:
            self.in_flight[bind.uid] = bind.node, make.read_slots(bind.devices)

    def bind_is_answered(self, rng: random.Random) -> None:
        """Before the watch shows it or after, and not in the order in which binds were sent."""
        if uid := self.some_bind(rng):
            done = self.send(uid)
            if rng.random() < 0.5:
                self._heard_gone(self.streams.deliver("ours"))
            if not done:
                self.cluster.forget(uid)
            self.in_flight.pop(uid, None)

    def answer_of_a_bind_is_lost(self, rng: random.Random) -> None:
        uid = self.some_bind(rng)
        if uid and self.send(uid):
            del self.in_flight[uid]

    def bind_fails(self, rng: random.Random) -> None:
        if uid := self.some_bind(rng):
            self.cluster.forget(uid)
            del self.in_flight[uid]

    def old_failure_arrives(self, rng: random.Random) -> None:
        """A result for a pod that is bound, gone, or no longer assumed changes nothing."""
        pods = self.cluster.pods.items()
        bound = [uid for uid, pod in pods if pod.life == PodLife.BOUND]
        others = [uid for uid, pod in pods if pod.life == PodLife.PENDING]
        some = bound if bound and rng.random() < 0.7 else [*others, "never-seen"]
        self.cluster.forget(rng.choice(some))

    def scheduler_restarts(self, rng: random.Random) -> None:
        """Binds under way are lost with it; it knows only what the server shows."""
        self.cluster = self.new_cluster()
        self.cycle = make.cycle(cluster=self.cluster, config=self.config)
        self.streams.restart(self.cluster, rng)
        self.in_flight.clear()

    # Support.

    def new_cluster(self) -> Cluster:
        """What a scheduler that starts has in hand."""
        return Cluster()

    def settle(self) -> None:
        """Deliver everything."""
        self._heard_gone(self.streams.deliver_all())

    def new_pod(self, kind: str, *, scheduler_name: str = names.SCHEDULER, **more: Any) -> Json:
        """A pod of a kind comes; ``more`` goes over its figures."""
        name = f"{kind}-{next(self._numbers)}"
        figures = workloads.PODS[kind] | more
        body = make.raw(make.pod(name=name, scheduler_name=scheduler_name, **figures))
        self.server.create("pods", body)
        return body

    def change(self, pod: Json, **parts: Any) -> None:
        """Put other parts in the place of a pod's."""
        meta = pod["metadata"]
        self.server.change("pods", meta["namespace"], meta["name"], lambda body: body.update(parts))

    def delete(self, pod: Json) -> None:
        self.server.delete("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])

    def send(self, uid: str) -> bool:
        """A bind arrives at the server; whether it takes effect."""
        done = self.streams.bind(uid, *self.in_flight[uid])
        self.n_bound += done
        return done

    def pods(self, *, bound: bool) -> list[Json]:
        """Those that have a node, or those that have none."""
        pods = self.server.of_kind("pods")
        return [pod for pod in pods if bool(pod["spec"].get("nodeName")) == bound]

    def some_pod(self, rng: random.Random) -> Json | None:
        pods = self.server.of_kind("pods")
        return rng.choice(pods) if pods else None

    def some_bind(self, rng: random.Random) -> str:
        return rng.choice(list(self.in_flight)) if self.in_flight else ""

    def _heard_gone(self, uids: list[str]) -> None:
        for uid in uids:
            if uid not in self.cluster.pods:
                self.in_flight.pop(uid, None)


class Town(Life):
    """Nodes come, go and change, and strangers run on them.

    Attributes:
        names: of the nodes that there may be.
        kit: what they may have.
    """

    names: Sequence[str] = [f"node-{i:03}" for i in range(90)]
    kit = clusters.SMALL
    # What a test does that looks at the same cluster and cycle before and after.
    EVENTS = (
        "node_changes", "node_changes", "node_goes", "stranger_runs", "pods_go", "bind_fails",
        "bind_is_answered", "pods_come", "scheduler_decides", "pods_come", "scheduler_decides",
    )  # fmt: skip

    @classmethod
    def founded(cls, rng: random.Random, n: int, config: Config | None = None) -> Self:
        """A town of n nodes that are known."""
        town = cls(config)
        for name in rng.sample(cls.names[:n], n):
            town.server.create("nodes", clusters.node(rng, name, cls.kit))
        town.settle()
        return town

    def comes(self, kind: str) -> PodRecord:
        """A pod of a kind comes, and is heard of."""
        uid = self.new_pod(kind)["metadata"]["uid"]
        self.settle()
        return self.cluster.pods[uid]

    def looks_on(self, kind: str) -> PodRecord:
        """A pod of a kind comes and stays, and nobody decides about it."""
        pod = self.comes(kind)
        self.onlookers.add(pod.uid)
        return pod

    def something_happens(self, rng: random.Random) -> str:
        """One of the events, of which all is heard at once; its name."""
        name = rng.choice(self.EVENTS)
        getattr(self, name)(rng)
        self.settle()
        return name

    def node_changes(self, rng: random.Random) -> None:
        """It is another, or a new one."""
        self.server.put("nodes", clusters.node(rng, rng.choice(self.names), self.kit))

    def node_goes(self, rng: random.Random) -> None:
        self.server.delete("nodes", "", rng.choice(self.names))

    def stranger_runs(self, rng: random.Random) -> None:
        """On a node that may not be there, have the room or the cards."""
        body = self.new_pod(rng.choice(list(workloads.PODS)), scheduler_name="other")
        node = rng.choice([*self.names, "never-seen"])
        cards = slots(rng, body, rng.choice([node, node, "x"]))
        self.streams.bind(body["metadata"]["uid"], node, cards)


def slots(rng: random.Random, pod: Json, node_name: str) -> Slots:
    """Cards for some containers of a pod; the node may not have them."""
    containers = [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
    return tuple(
        tuple(
            CardUse(f"{node_name}-GPU-{i}", rng.choice([1000, 7500]), rng.choice([0, 30]))
            for i in rng.sample(range(5), rng.randrange(3))
        )
        for _ in containers
    )


def happenings(life: type[Life]) -> list[str]:
    """All that may happen in such a life."""
    found = []
    for name, method in inspect.getmembers(life, inspect.isfunction):
        said = inspect.signature(method)
        happens = list(said.parameters) == ["self", "rng"] and said.return_annotation is None
        found += [name] if happens and not name.startswith("_") else []
    return found
