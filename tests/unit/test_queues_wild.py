"""Workloads and queues that nobody expects: each waits by itself, with a reason, and nothing goes on without end."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

import pytest
from typer.testing import CliRunner

from scheduler import cli
from scheduler.api import wire
from scheduler.api.kube_plugins import KubePlugins
from scheduler.api.placement import Mode, Placement
from scheduler.api.queues import configuration
from scheduler.config import Config
from scheduler.documents import writing
from scheduler.simulate import stalling
from scheduler.simulate.run import schedule
from scheduler.state.stand_ins import StandIns
from tests.unit.small_failures import Small
from tests.unit.test_queues_domains import HOSTS
from tests.unit.test_queues_places import (
    make_flavor,
    make_node,
    make_queue,
    make_running,
    make_workload,
)

Json = dict[str, Any]
WORLD = [make_node("n0", "r0"), make_flavor("gpus", "gpu"), *make_queue("a", {"gpus": 4})]


def run(*objects: Json) -> dict[str, Json]:
    result = schedule([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}, *objects])  # fmt: skip
    assert stalling.WARNING not in result["warnings"]
    return {row["name"]: row for row in result["workloads"]}


def make_modest(name: str, n_pods: int = 1, **more: Any) -> Json:
    """Make a workload whose pods request nothing that has a quota."""
    found = make_workload(name, "a", n_pods, 1)
    template = found["spec"]["podSets"][0]["template"]["spec"]
    template["containers"] = [{"name": "main"}]
    template.update(more)
    return found


def test_one_that_needs_no_quota_and_fits_on_no_node_waits() -> None:
    """It has no flavor, so no other flavor can be tried for it."""
    rows = run(*WORLD, make_modest("nowhere", nodeSelector={"no": "where"}), make_modest("fits"))
    assert rows["nowhere"]["state"] == "waits"
    assert rows["nowhere"]["reason"] == "TopologyPlacementFailed"
    assert rows["fits"]["state"] == "admitted"


@pytest.mark.parametrize("n_pods", [111, 2**31 - 1])
def test_one_with_more_pods_than_all_nodes_may_have_waits(n_pods: int) -> None:
    """Not so many stand-ins are made: they would take all time and memory."""
    rows = run(*WORLD, make_modest("huge", n_pods), make_workload("fits", "a", 1, 4))
    assert rows["huge"]["reason"] == "TopologyPlacementFailed"
    assert rows["fits"]["state"] == "admitted"


def test_a_queue_in_which_usage_counts_brings_a_simulation_to_no_end_of_its_own() -> None:
    """What is used is added up every five minutes, and a simulation is a moment."""
    scope = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    by_usage = make_queue("b", {"gpus": 4}, admissionScope=scope)
    rows = run(*WORLD, *by_usage, make_workload("fits", "b", 1, 4), make_workload("waits", "b", 1, 4, second=1))  # fmt: skip
    assert [rows[name]["state"] for name in ("fits", "waits")] == ["admitted", "waits"]


def test_one_whose_pod_sets_were_renamed_after_it_got_quota_stops_nobody() -> None:
    renamed, *_ = make_running("renamed", "a", "n0", "gpus", 0, gpus=1)
    renamed["spec"]["podSets"][0]["name"] = "other"
    rows = run(*WORLD, renamed, make_workload("fits", "a", 1, 1, second=1))
    assert rows["fits"]["state"] == "admitted"


@pytest.mark.parametrize("priority", [2**31, -(2**31) - 1, 2**63, 10**30])
def test_a_priority_that_no_api_server_takes_is_a_mistake_of_this_workload(priority: int) -> None:
    objects = [*WORLD, make_workload("bad", "a", 1, 1, priority=priority), make_workload("fits", "a", 1, 1)]  # fmt: skip
    result = CliRunner().invoke(
        cli.app, ["simulate", "-f", "-", "-o", "json"], input=writing.dump_all(objects)
    )
    assert result.exit_code == 3, result.output
    answer = json.loads(result.stdout)
    assert [one["object"] for one in answer["mistakes"]] == ["Workload team/bad"]
    assert {row["name"]: row["state"] for row in answer["workloads"]}["fits"] == "admitted"


def test_domains_with_more_pods_than_there_can_be_are_not_read() -> None:
    given, *_ = make_running("given", "a", "n0", "gpus", 0, gpus=1)
    (assigned,) = given["status"]["admission"]["podSetAssignments"]
    slices = [
        {
            "domainCount": 1,
            "valuesPerLevel": [{"universal": "r0"}],
            "podCounts": {"universal": 10**52},
        }
    ]
    assigned["topologyAssignment"] = {"levels": ["rack"], "slices": slices}
    rows = run(*WORLD, given, make_workload("fits", "a", 1, 1, second=1))
    assert rows["fits"]["state"] == "admitted"


@pytest.mark.parametrize("name", [[], {}, ["x"], None])
def test_a_preemption_gate_whose_name_is_no_text_is_closed(name: Any) -> None:
    gated = make_workload("gated", "a", 1, 1)
    gated["spec"]["preemptionGates"] = [{"name": name}]
    gated["status"] = {"preemptionGates": [{"name": "x", "position": "Open"}, {"name": []}]}
    assert run(*WORLD, gated)["gated"]["state"] == "admitted"


def make_endless(*names: str) -> list[Json]:
    """Make a queue whose quota is as much as there can be, and workloads that request that much twice."""
    flavor = make_flavor("gpus", "gpu")
    queue, door = make_queue("a", {"gpus": 1})
    (group,) = queue["spec"]["resourceGroups"]
    group["coveredResources"] = ["cpu"]
    group["flavors"][0]["resources"] = [{"name": "cpu", "nominalQuota": "9E"}]
    works = []
    for i, name in enumerate(names):
        work = make_workload(name, "a", 2, 1, second=i, scheduler="other")
        asked = {"cpu": "9E"}
        work["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"] = {"requests": asked}  # fmt: skip
        work["spec"]["podSets"].append(work["spec"]["podSets"][0] | {"name": "more"})
        works.append(work)
    return [flavor, queue, door, *works]


@pytest.mark.parametrize("sharing", [{}, {"fairSharing": {}}])
def test_amounts_beyond_all_numbers_are_as_much_as_there_can_be(sharing: Json) -> None:
    """Several pods, and several pod sets, together request more than a 64-bit number can say."""
    first, second, modest = "first", "second", make_workload("modest", "b", 1, 1)
    config = Config(queues=configuration.read_settings(sharing))
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    objects = [namespace, make_node("n0", "r0"), *make_endless(first, second), *make_queue("b", {"gpus": 4}), modest]  # fmt: skip
    rows = {row["name"]: row for row in schedule(objects, config=config)["workloads"]}
    assert rows[first]["state"] == rows["modest"]["state"] == "admitted"
    assert rows[second]["reason"] == "WaitingForQuota"
    result = CliRunner().invoke(
        cli.app, ["queue", "why", f"team/{second}", "-f", "-"], input=writing.dump_all(objects)
    )
    assert result.exit_code == 0, result.output


def make_many(name: str, queue: str, n_pods: int, milli: int) -> Json:
    """Make a workload of many pods that request CPU alone."""
    work = make_workload(name, queue, n_pods, 1, second=9)
    asked = {"requests": {"cpu": f"{milli}m"}}
    work["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"] = asked
    return work


def make_cpu_queue(name: str, cores: int) -> list[Json]:
    queue, door = make_queue(name, {"gpus": 1})
    (group,) = queue["spec"]["resourceGroups"]
    group["coveredResources"] = ["cpu"]
    group["flavors"][0]["resources"] = [{"name": "cpu", "nominalQuota": cores}]
    return [queue, door]


@pytest.mark.parametrize(
    ("milli", "has_room", "n_made"), [(100, True, 301), (200, False, 2)], ids=["fits", "too much"]
)
def test_pods_that_cannot_have_room_are_not_tried_one_by_one(
    milli: int, has_room: bool, n_made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three nodes of 16 cores have room for 300 pods of 100m each, and not of 200m."""
    made: list[wire.Pod] = []
    add = StandIns.add

    def note(self: StandIns, workload: str, pod_set: str, pods: Sequence[wire.Pod]) -> Any:
        made.extend(pods)
        return add(self, workload, pod_set, pods)

    monkeypatch.setattr(StandIns, "add", note)
    nodes = [make_node(f"n{i}", "r0") for i in range(3)]
    flavor = make_flavor("gpus", "gpu")
    rows = run(*nodes, flavor, *make_cpu_queue("a", 100), make_many("many", "a", 300, milli))
    assert (rows["many"]["state"] == "admitted") == has_room
    assert len(made) <= 2 * n_made


def test_room_of_those_who_leave_counts_for_many_pods() -> None:
    """Quota is reclaimed from a pod of 15 cores; without it, 300 pods of 150m fit, and no sooner."""
    nodes = [make_node(f"n{i}", "r0") for i in range(3)]
    for one in nodes:
        one["status"]["allocatable"]["cpu"] = "17"
    borrower, pod = make_running("borrower", "b", "n0", "gpus", 0)
    template = borrower["spec"]["podSets"][0]["template"]
    for spec in (template["spec"], pod["spec"]):
        spec["containers"][0]["resources"] = {"requests": {"cpu": "15"}}
    (assigned,) = borrower["status"]["admission"]["podSetAssignments"]
    assigned |= {"flavors": {"cpu": "gpus"}, "resourceUsage": {"cpu": "15"}}
    rows = run(
        *nodes,
        make_flavor("gpus", "gpu"),
        *make_cpu_queue("a", 51),
        *make_cpu_queue("b", 0),
        borrower,
        pod,
        make_many("many", "a", 300, 150),
    )
    assert rows["borrower"]["preempted"]
    assert rows["many"]["state"] == "admitted"


@pytest.mark.parametrize("n_pods", [256, 257])
def test_what_the_filter_of_resources_ignores_counts_for_no_number_of_pods(n_pods: int) -> None:
    """No node has enough of a resource that NodeResourcesFit does not look at."""
    name = "example.com/net"
    plugins = KubePlugins(ignored=frozenset({name}))
    config = Config(placement=Placement(mode=Mode.KUBE_SCHEDULER, plugins=plugins))
    nodes = [make_node(f"n{i}", "r0", gpus=90) for i in range(3)]
    for one in nodes:
        one["status"]["allocatable"][name] = "2"
    queue, door = make_queue("a", {"gpus": 1000})
    quota = {"name": name, "nominalQuota": 10**6}
    queue["spec"]["resourceGroups"].append(
        {"coveredResources": [name], "flavors": [{"name": "any", "resources": [quota]}]}
    )
    work = make_workload("many", "a", n_pods, 1)
    asked = work["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]
    asked["requests"] = asked["limits"] = {"nvidia.com/gpu": "1", name: "1"}
    anywhere = make_flavor("any", "gpu")
    world = [*nodes, make_flavor("gpus", "gpu"), anywhere, queue, door, work]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    (row,) = schedule([namespace, *world], config=config)["workloads"]
    assert row["state"] == "admitted"


def test_a_pod_set_that_may_go_nowhere_leaves_no_stand_ins_of_another() -> None:
    """Else the places of these would count for the workload once it is mended, whatever it requests then."""
    work = make_workload("two", "a", 3, 1)
    other = copy.deepcopy(work["spec"]["podSets"][0]) | {"name": "other", "count": 1}
    wrong = {"required": HOSTS, "podSetSliceRequiredTopology": "rack", "podSetSliceSize": 1}
    work["spec"]["podSets"].append(other | {"topologyRequest": wrong})
    small = Small(work)
    assert small.decide() == []
    assert len(small.engine._cluster.stand_ins) == 0
