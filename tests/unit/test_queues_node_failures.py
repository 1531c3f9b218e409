"""Nodes of a workload fail: the pods that it has lost get other nodes that suit the rest, or it starts elsewhere as a whole."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from scheduler.api.door import events
from scheduler.api.door.workload_decisions import Admit, EvictWorkload, SetDomains
from tests.model.queue_stories import allow_rounds
from tests.unit.small_failures import Small, list_nodes, lose, make_domains, make_started
from tests.unit.test_queues_domains import HOSTS, make_gang
from tests.unit.test_queues_places import (
    FOUR_NODES,
    RACKS,
    make_node,
)

Json = dict[str, Any]
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


_FIVE_NODES = [*FOUR_NODES, make_node("n4", "r0")]


@pytest.mark.parametrize("request_", [{"required": "rack"}, {"preferred": "rack"}])
def test_a_lost_pod_gets_another_node_near_the_others(request_: Json) -> None:
    small = Small(*make_started("n0", "n1", request=request_), nodes=_FIVE_NODES)
    (decision,) = lose(small, "n1", "uid-gang-1")
    assert list_nodes(decision) == {"n0": 1, "n4": 1}
    # It is done.
    assert small.decide() == []


def test_a_domain_that_is_only_wished_for_may_be_left() -> None:
    small = Small(*make_started("n0", "n1", request={"preferred": "rack"}))
    (decision,) = lose(small, "n1", "uid-gang-1")
    assert list_nodes(decision) in ({"n0": 1, "n2": 1}, {"n0": 1, "n3": 1})


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


def test_one_that_is_finished_has_no_nodes() -> None:
    gang = make_started("n0", "n1", request={"required": "rack"})
    gang[0]["status"]["conditions"] = [{"type": "Finished", "status": "True", "reason": "Succeeded"}]  # fmt: skip
    small = Small(*gang)
    assert lose(small, "n1", "uid-gang-1") == []


@pytest.mark.parametrize("nodes", [FOUR_NODES, _FIVE_NODES])
def test_what_the_api_server_refuses_is_decided_again(nodes: list[Json]) -> None:
    small = Small(*make_started("n0", "n1", request={"required": "rack"}), nodes=nodes)
    small.drop_node("n1")
    small.drop_pod("uid-gang-1")
    (first,) = small.decide_once()
    assert isinstance(first, EvictWorkload if nodes is FOUR_NODES else SetDomains)
    assert small.decide_once() == []
    small.refuse(first)
    assert small.decide_once() == [first]


def test_one_that_was_to_go_is_looked_at_if_it_may_stay() -> None:
    small = Small(*make_started("n0", "n1", request={"required": "rack"}), nodes=_FIVE_NODES)
    small.engine._queues.tenants.send_away("team/gang")
    small.drop_node("n1")
    small.drop_pod("uid-gang-1")
    assert small.decide_once() == []
    small.engine.handle(events.PreemptFailed("team/gang", "no"), small.time)
    (decision,) = small.decide_once()
    assert list_nodes(decision) == {"n0": 1, "n4": 1}


def test_a_node_that_comes_back_with_its_pods_has_them() -> None:
    """Nothing is kept for them elsewhere any more."""
    small = Small(*make_started("n0", "n1", request={"required": "rack"}), nodes=_FIVE_NODES)
    small.drop_node("n1")
    (decision,) = small.decide()
    assert list_nodes(decision) == {"n0": 1, "n4": 1}
    small.see_node(FOUR_NODES[1])
    (decision,) = small.decide()
    assert list_nodes(decision) == {"n0": 1, "n1": 1}
    assert not len(small.engine._cluster.stand_ins)


def test_a_node_that_comes_back_evicts_nobody() -> None:
    """Another pod is missing by then, as any pod may be, and somebody else has put his pod where a place was kept."""
    nodes = [make_node(f"n{i}", "r0") for i in range(4)]
    gang = make_started("n0", "n1", "n2", request={"required": "rack"})
    small = Small(*gang, nodes=nodes)
    small.drop_node("n1")
    (decision,) = small.decide()
    assert list_nodes(decision) == {"n0": 1, "n2": 1, "n3": 1}
    small.drop_pod("uid-gang-2")
    for name in ("n2", "n3"):
        other = make_started(name)[1]
        other["metadata"] |= {"name": name, "uid": name, "annotations": {}}
        other["spec"]["schedulerName"] = "other"
        small.see_pod(other)
    small.see_node(nodes[1])
    assert not any(isinstance(one, EvictWorkload) for one in small.decide())


def test_nodes_on_which_pods_are_count_whatever_the_workload_says() -> None:
    gang = make_gang(2, make_domains("n0", "n4"), ("n0", "n1"))
    gang[0]["spec"]["podSets"][0]["topologyRequest"] = {"required": "rack"}
    small = Small(*gang, nodes=_FIVE_NODES)
    node = copy.deepcopy(FOUR_NODES[1])
    node["spec"] = {"taints": [_NOT_READY]}
    small.see_node(node)
    # What is written was not so.
    (decision,) = small.decide()
    assert isinstance(decision, SetDomains)
    assert (list_nodes(decision), decision.failed) == ({"n0": 1, "n1": 1}, ())
    small.drop_pod("uid-gang-1")
    (decision,) = small.decide()
    assert isinstance(decision, SetDomains)
    assert (list_nodes(decision), decision.failed) == ({"n0": 1, "n4": 1}, ("n1",))
    assert [one.node for one in small.engine._cluster.stand_ins.list_of("team/gang")] == ["n4"]


def test_a_slice_of_which_a_pod_has_succeeded_evicts_nobody() -> None:
    racks = {"podSetSliceRequiredTopology": "rack", "podSetSliceSize": 2}
    nodes = [make_node(f"n{i}", f"r{i // 4}") for i in range(8)]
    gang = make_started("n0", "n1", "n4", "n5", request=racks)
    small = Small(*gang, nodes=nodes)
    gang[2]["status"] = {"phase": "Succeeded"}
    small.see_pod(gang[2])
    small.decide()
    assert not any(isinstance(one, EvictWorkload) for one in lose(small, "n5", "uid-gang-3"))


_BLOCK_LEVELS = [{"nodeLabel": one} for one in ("block", "rack", HOSTS)]
_BLOCKS = {**RACKS, "spec": {"levels": _BLOCK_LEVELS}}


def test_a_lost_slice_is_not_torn_apart() -> None:
    """The rest of the block has two nodes, in two racks. So the workload starts in another block."""
    racks = ["r0", "r0", "r1", "r1", "r2", "r3", "r4", "r4", "r5", "r5"]
    nodes = [make_node(f"n{i}", rack) for i, rack in enumerate(racks)]
    for i, node in enumerate(nodes):
        node["metadata"]["labels"]["block"] = "b0" if i < 6 else "b1"
    request = {"required": "block", "podSetSliceRequiredTopology": "rack", "podSetSliceSize": 2}
    gang = make_started("n0", "n1", "n2", "n3", request=request)
    small = Small(*gang, nodes=nodes, topology=_BLOCKS)
    small.drop_node("n2")
    small.drop_node("n3")
    evicted, admitted = small.decide()
    assert isinstance(evicted, EvictWorkload)
    assert evicted.message.endswith("n2, n3")
    assert isinstance(admitted, Admit)
    assert admitted.sets[0].domains is not None
    assert {values[0] for values, _ in admitted.sets[0].domains.domains} == {"n6", "n7", "n8", "n9"}


def test_a_pod_is_lost_though_another_one_stays_on_the_node() -> None:
    """What stays there has its place; the lost one cannot come back there."""
    nodes = [make_node("n0", "r0"), make_node("n1", "r0", 8), *_FIVE_NODES[2:]]
    gang = make_started("n0", "n1", "n1", request={"required": "rack"})
    domains = {"levels": [HOSTS], "domains": [{"values": ["n0"], "count": 1}, {"values": ["n1"], "count": 2}]}  # fmt: skip
    gang[0]["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"] = domains
    small = Small(*gang, nodes=nodes)
    node = copy.deepcopy(nodes[1])
    node["spec"] = {"taints": [_NOT_READY]}
    small.see_node(node)
    small.drop_pod("uid-gang-2")
    (decision,) = small.decide()
    assert list_nodes(decision) == {"n0": 1, "n1": 1, "n4": 1}


def test_only_the_pods_of_a_node_have_to_tolerate_its_taints() -> None:
    gang = make_started("n0", "n1")
    spec, status = gang[0]["spec"], gang[0]["status"]["admission"]
    lead = copy.deepcopy(spec["podSets"][0]) | {"name": "lead", "count": 1}
    lead["template"]["spec"]["tolerations"] = [{"key": "spot", "operator": "Exists"}]
    spec["podSets"][0]["count"] = 1
    spec["podSets"].append(lead)
    given = status["podSetAssignments"][0]
    given |= {"count": 1, "resourceUsage": {"nvidia.com/gpu": "4"}}
    of_lead = copy.deepcopy(given) | {"name": "lead", "topologyAssignment": make_domains("n1")}
    status["podSetAssignments"] = [given | {"topologyAssignment": make_domains("n0")}, of_lead]
    gang[2]["metadata"]["labels"] = {"kueue.x-k8s.io/podset": "lead"}
    small = Small(*gang)
    node = copy.deepcopy(FOUR_NODES[1])
    node["spec"] = {"taints": [{"key": "spot", "effect": "NoSchedule"}]}
    small.see_node(node)
    small.drop_pod("uid-gang-1")
    assert small.decide() == []


def test_many_failures_are_dealt_with_one_after_another() -> None:
    gangs = []
    for i in range(3):
        workload, pod = make_started(f"n{i}")
        workload["metadata"] |= {"name": f"w{i}"}
        pod["metadata"] |= {"name": f"w{i}", "uid": f"uid-w{i}", "annotations": {"kueue.x-k8s.io/workload": f"w{i}"}}  # fmt: skip
        gangs += [workload, pod]
    small = Small(*gangs, nodes=[make_node(f"n{i}", "r0") for i in range(6)])
    for i in range(3):
        small.drop_node(f"n{i}")
    assert len(small.decide_once(allow_rounds(0))) == 1
    assert small.engine.find_due(small.time) <= small.time
    assert len(small.decide()) == 2
