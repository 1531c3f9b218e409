"""Nodes of a workload fail: the pods that it has lost get other nodes that suit the rest, or it starts elsewhere as a whole."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from scheduler.api import kinds, wire
from scheduler.api.door import events
from scheduler.api.door.workload_decisions import Admit, EvictWorkload, QuotaDecision, SetDomains
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.queues import Queues
from scheduler.simulate.situation import make_engine, prepare
from tests.unit.test_queues_domains import HOSTS, make_gang
from tests.unit.test_queues_places import (
    FOUR_NODES,
    RACKS,
    make_flavor,
    make_node,
    make_queue,
    make_workload,
)

Json = dict[str, Any]
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


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

    def __init__(self, *objects: Json, nodes: Iterable[Json] = FOUR_NODES) -> None:
        queue = make_queue("a", {"gpus": 100})
        world = [*nodes, RACKS, make_flavor("gpus", "gpu", "racks"), *queue, *objects]
        inventory = prepare(copy.deepcopy(world), Changes(), strict=True).inventory
        self.engine = make_engine(inventory, Config(), only_ours=False)
        self.queues = Queues(self.engine, inventory.queueing, inventory.pods)
        self.time = 1e9
        self.decide()

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


_FIVE_NODES = [*FOUR_NODES, make_node("n4", "r0")]


@pytest.mark.parametrize("request_", [{"required": "rack"}, {"preferred": "rack"}, None])
def test_a_lost_pod_gets_another_node_near_the_others(request_: Json | None) -> None:
    small = Small(*make_started("n0", "n1", request=request_), nodes=_FIVE_NODES)
    (decision,) = lose(small, "n1", "uid-gang-1")
    nodes = list_nodes(decision)
    assert nodes.pop("n0") == 1
    assert len(nodes) == 1
    assert request_ != {"required": "rack"} or nodes == {"n4": 1}
    # It is done.
    assert small.decide() == []


def test_nobody_else_gets_the_place_that_was_found() -> None:
    small = Small(*make_started("n0", "n1", request={"required": "rack"}), nodes=_FIVE_NODES)
    lose(small, "n1", "uid-gang-1")
    other = make_started("n4")[1]
    other["metadata"] |= {"name": "other", "uid": "other", "annotations": {}, "ownerReferences": []}
    del other["spec"]["nodeName"]
    other["spec"]["nodeSelector"] = {HOSTS: "n4"}
    other["status"] = {}
    small.see_pod(other)
    small.decide()
    assert "other" not in _list_bound(small)


def _list_bound(small: Small) -> list[str]:
    pods = small.engine._cluster.pods
    return [uid for uid, pod in pods.items() if pod.node]


def test_without_another_node_in_its_domain_it_starts_elsewhere() -> None:
    small = Small(*make_started("n0", "n1", request={"required": "rack"}))
    evicted, admitted = lose(small, "n1", "uid-gang-1")
    assert isinstance(evicted, EvictWorkload)
    assert evicted.reason == "NodeFailures"
    assert evicted.message == (
        "Workload was evicted as there was no replacement for unhealthy node(s): n1"
    )
    assert isinstance(admitted, Admit)
    ((values, n), (others, m)) = admitted.sets[0].domains.domains if admitted.sets[0].domains else ()  # fmt: skip
    assert {values[0], others[0]} == {"n2", "n3"}
    assert n == m == 1


def test_several_nodes_are_replaced_at_once() -> None:
    nodes = [make_node(f"n{i}", "r0") for i in range(6)]
    small = Small(*make_started("n0", "n1", "n2", request={"required": "rack"}), nodes=nodes)
    small.drop_node("n1")
    small.drop_node("n2")
    (decision,) = small.decide()
    assert list_nodes(decision) == {"n0": 1, "n3": 1, "n4": 1}


def test_one_that_has_lost_all_of_its_nodes_may_go_to_another_domain() -> None:
    small = Small(*make_started("n0", "n1", request={"required": "rack"}))
    small.drop_node("n0")
    small.drop_node("n1")
    (decision,) = small.decide()
    assert list_nodes(decision) == {"n2": 1, "n3": 1}


def test_a_node_that_is_not_ready_has_failed_once_its_pods_go() -> None:
    gang = make_started("n0", "n1", request={"required": "rack"})
    small = Small(*gang, nodes=_FIVE_NODES)
    node = copy.deepcopy(FOUR_NODES[1])
    node["spec"] = {"taints": [_NOT_READY]}
    small.see_node(node)
    assert small.decide() == []
    # Its kubelet cannot say that it has ended.
    gang[2]["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    small.see_pod(gang[2])
    (decision,) = small.decide()
    assert list_nodes(decision) == {"n0": 1, "n4": 1}


@pytest.mark.parametrize("effect", ["NoSchedule", "PreferNoSchedule"])
def test_a_node_with_a_taint_that_keeps_no_pod_away_is_whole(effect: str) -> None:
    gang = make_started("n0", "n1", request={"required": "rack"})
    spec = gang[0]["spec"]["podSets"][0]["template"]["spec"]
    if effect == "NoSchedule":
        spec["tolerations"] = [{"key": "spot", "operator": "Exists"}]
    small = Small(*gang)
    node = copy.deepcopy(FOUR_NODES[1])
    node["spec"] = {"taints": [{"key": "spot", "effect": effect}]}
    small.see_node(node)
    small.drop_pod("uid-gang-1")
    assert small.decide() == []


def test_pods_that_have_succeeded_are_not_replaced() -> None:
    gang = make_started("n0", "n1", request={"required": "rack"})
    small = Small(*gang)
    gang[2]["status"] = {"phase": "Succeeded"}
    small.see_pod(gang[2])
    small.drop_node("n1")
    assert small.decide() == []


def test_a_lost_pod_stays_with_its_slice() -> None:
    """Two pods each share a rack; any rack has room for both slices."""
    racks = {"podSetSliceRequiredTopology": "rack", "podSetSliceSize": 2}
    nodes = [make_node(f"n{i}", f"r{i // 4}") for i in range(12)]
    small = Small(*make_started("n0", "n1", "n4", "n5", request=racks), nodes=nodes)
    (decision,) = lose(small, "n5", "uid-gang-3")
    found = list_nodes(decision)
    assert set(found) - {"n0", "n1", "n4"} <= {"n6", "n7"}
    assert sum(found.values()) == 4


def test_a_pod_that_came_before_its_place_was_found_goes_there() -> None:
    """Nobody else says that it has to be in the rack of the others."""
    gang = make_started("n0", "n1", request={"required": "rack"})
    nodes = [*FOUR_NODES, make_node("n4", "r0")]
    pod = copy.deepcopy(gang[2])
    pod["metadata"] |= {"name": "gang-new", "uid": "uid-gang-new"}
    del pod["spec"]["nodeName"]
    pod["status"] = {}
    # Its node was gone before anybody watched.
    small = Small(*gang[:2], pod, nodes=[one for one in nodes if one["metadata"]["name"] != "n1"])
    bound = small.engine._cluster.pods["uid-gang-new"]
    assert bound.node == "n4"


def test_a_workload_whose_quota_others_need_no_more_is_left_alone() -> None:
    """One that was evicted, or has ended, has no nodes."""
    gang = make_started("n0", "n1", request={"required": "rack"})
    gang[0]["status"]["conditions"] = [{"type": "Finished", "status": "True", "reason": "Succeeded"}]  # fmt: skip
    small = Small(*gang, make_workload("other", "a", 1, 1))
    assert not any(isinstance(one, EvictWorkload) for one in lose(small, "n1", "uid-gang-1"))
