"""A pod that comes for a lost one waits for a place that suits the others, though nobody but its workload says where it goes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from scheduler.api import kinds
from scheduler.api.door import events
from scheduler.api.door.workload_decisions import EvictWorkload
from scheduler.engine.questions.waiting import WhatWaits
from tests.unit.small_failures import Small, list_nodes, make_started
from tests.unit.test_queues_domains import HOSTS
from tests.unit.test_queues_places import FOUR_NODES, make_node

Json = dict[str, Any]
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
# Two of the three pods are on the second node, and the rack has no other node.
_NODES = [make_node("n0", "r0"), make_node("n1", "r0", 8), *FOUR_NODES[2:]]


def _lose_one() -> tuple[Small, Json]:
    """One of the two pods of a node that is not ready is gone, and another one comes in its place."""
    gang = make_started("n0", "n1", "n1", request={"required": "rack"})
    domains = {"levels": [HOSTS], "domains": [{"values": ["n0"], "count": 1}, {"values": ["n1"], "count": 2}]}  # fmt: skip
    gang[0]["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"] = domains
    small = Small(*gang, nodes=_NODES)
    node = copy.deepcopy(_NODES[1])
    node["spec"] = {"taints": [_NOT_READY]}
    small.see_node(node)
    small.drop_pod("uid-gang-2")
    pod = copy.deepcopy(gang[3])
    pod["metadata"] |= {"name": "new", "uid": "new"}
    del pod["spec"]["nodeName"]
    pod["status"] = {}
    return small, pod


def _find_node(small: Small) -> str | None:
    return small.engine._cluster.pods["new"].node or None


@pytest.mark.parametrize("is_late", [True, False])
def test_it_waits_for_a_node_near_the_others(*, is_late: bool) -> None:
    small, pod = _lose_one()
    if is_late:
        assert small.decide() == []
    small.see_pod(pod)
    assert small.decide() == []
    assert _find_node(small) is None
    (waiting,) = small.engine.ask(WhatWaits())
    assert "no free place in the domain of its other pods" in waiting.held
    small.see_node(make_node("n4", "r0"))
    (decision,) = small.decide()
    assert list_nodes(decision) == {"n0": 1, "n1": 1, "n4": 1}
    assert _find_node(small) == "n4"


def test_it_goes_back_to_the_node_that_is_ready_again() -> None:
    small, pod = _lose_one()
    small.see_pod(pod)
    small.decide()
    small.see_node(_NODES[1])
    assert small.decide() == []
    assert _find_node(small) == "n1"


def test_it_goes_elsewhere_with_its_whole_workload() -> None:
    """The other pod on that node is gone, too: nobody runs there any more."""
    small, pod = _lose_one()
    small.see_pod(pod)
    small.decide()
    small.drop_pod("uid-gang-1")
    evicted = small.decide()[0]
    assert isinstance(evicted, EvictWorkload)
    assert evicted.reason == "NodeFailures"


@pytest.mark.parametrize("what", ["held", "deleted"])
def test_it_goes_where_it_may_when_nobody_looks_for_its_place_any_more(what: str) -> None:
    """Another program manages the queues, or the workload is gone."""
    small, pod = _lose_one()
    small.see_pod(pod)
    small.decide()
    gone = events.Gone(kinds.WORKLOADS.name, "team/gang")
    small.engine.handle(events.QueuesHeld(True) if what == "held" else gone, small.time)
    small.decide()
    assert _find_node(small) == "n2"


def _start_with_a_seat(*more: Json) -> tuple[Small, Json]:
    """The third pod has come with a gate, and has the place of its stand-in on the second node."""
    gang = make_started("n0", "n1", "n1", request={"required": "rack"})
    domains = {"levels": [HOSTS], "domains": [{"values": ["n0"], "count": 1}, {"values": ["n1"], "count": 2}]}  # fmt: skip
    gang[0]["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"] = domains
    third = gang.pop(3)
    del third["spec"]["nodeName"]
    third["spec"]["schedulingGates"] = [{"name": "x"}]
    third["status"] = {}
    small = Small(*gang, nodes=[*_NODES, *more])
    small.see_pod(third)
    small.decide()
    return small, third


def test_one_whose_place_was_on_a_node_that_failed_waits_for_another_near_the_others() -> None:
    small, third = _start_with_a_seat()
    node = copy.deepcopy(_NODES[1])
    node["spec"] = {"taints": [_NOT_READY]}
    small.see_node(node)
    assert small.decide() == []
    del third["spec"]["schedulingGates"]
    small.see_pod(third)
    assert small.decide() == []
    assert not small.engine._cluster.pods["uid-gang-2"].node
    (waiting,) = small.engine.ask(WhatWaits())
    assert "no free place in the domain of its other pods" in waiting.held


def test_a_place_of_one_that_has_no_node_yet_is_free_for_its_own_workload() -> None:
    """The first pod is lost. The places of the others are intact, and the rack has a free node."""
    small, _ = _start_with_a_seat(make_node("n4", "r0"))
    small.drop_node("n0")
    small.drop_pod("uid-gang-0")
    (decision,) = small.decide()
    assert list_nodes(decision) == {"n1": 2, "n4": 1}
