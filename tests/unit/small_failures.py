"""A small cluster whose nodes fail, with a workload in a queue; what is decided comes true."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import msgspec

from scheduler.api import kinds, wire
from scheduler.api.door import events
from scheduler.api.door.workload_decisions import QuotaDecision, SetDomains
from scheduler.config import Config
from scheduler.engine.allowance import Allowance, Unlimited
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.queues import Queues
from scheduler.simulate.situation import make_engine, prepare
from tests.unit.test_queues_domains import HOSTS, make_gang
from tests.unit.test_queues_places import (
    FOUR_NODES,
    RACKS,
    make_flavor,
    make_queue,
)

Json = dict[str, Any]


def make_domains(*nodes: str) -> Json:
    return {"levels": [HOSTS], "domains": [{"values": [node], "count": 1} for node in nodes]}


def make_started(*nodes: str, request: Json | None = None) -> list[Json]:
    """A workload with a pod of four cards on each of some nodes."""
    workload, *pods = make_gang(len(nodes), make_domains(*nodes), nodes)
    if request is not None:
        workload["spec"]["podSets"][0]["topologyRequest"] = request
    return [workload, *pods]


class Small:
    """A cluster with queues; what is decided comes true."""

    def __init__(
        self, *objects: Json, nodes: Iterable[Json] = FOUR_NODES, topology: Json = RACKS
    ) -> None:
        queue = make_queue("a", {"gpus": 100})
        world = [*nodes, topology, make_flavor("gpus", "gpu", "racks"), *queue, *objects]
        inventory = prepare(copy.deepcopy(world), Changes(), strict=True).inventory
        self.engine = make_engine(inventory, Config(), only_ours=False)
        self.queues = Queues(self.engine, inventory.queueing, inventory.pods)
        self.time = 1e9
        self.decide()

    def decide_once(self, allowance: Allowance | None = None) -> list[QuotaDecision]:
        """Decide; nothing of it comes true."""
        self.time += 1.0
        return list(self.engine.decide(self.time, allowance or Unlimited()).quotas)

    def refuse(self, decision: QuotaDecision) -> None:
        """The API server refuses what was decided."""
        keeps_quota = isinstance(decision, SetDomains)
        self.engine.handle(events.PreemptFailed(decision.key, "no", keeps_quota), self.time)

    def decide(self) -> list[QuotaDecision]:
        """Decide until nothing comes of it."""
        found: list[QuotaDecision] = []
        while True:
            self.time += 1.0
            outcome = self.engine.decide(self.time, Unlimited())
            for bind in outcome.binds:
                self.engine.handle(events.BindDone(bind.uid), self.time)
            for one in outcome.quotas:
                self.queues.carry_out(one, self.time)
            if not (outcome.quotas or outcome.binds):
                return found
            found += outcome.quotas

    def drop_node(self, name: str) -> None:
        self.engine.handle(events.Gone(kinds.NODES.name, name), self.time)

    def drop_pod(self, uid: str) -> None:
        self.engine.handle(events.Gone(kinds.PODS.name, uid), self.time)

    def see_node(self, node: Json) -> None:
        self.engine.handle(events.Seen(msgspec.convert(node, wire.Node)), self.time)

    def see_pod(self, pod: Json) -> None:
        self.engine.handle(events.Seen(msgspec.convert(pod, wire.Pod)), self.time)


def lose(small: Small, name: str, *uids: str) -> list[QuotaDecision]:
    """A node is gone, and its pods with it."""
    small.drop_node(name)
    for uid in uids:
        small.drop_pod(uid)
    return small.decide()


def list_nodes(decision: QuotaDecision) -> dict[str, int]:
    """On which nodes a workload has how many pods by now."""
    assert isinstance(decision, SetDomains)
    ((_, domains),) = decision.sets
    assert domains.levels == (HOSTS,)
    return {values[0]: n for values, n in domains.domains}
