"""Issues of Kueue in which quota, preemption and place are not one decision: each of them ends well here.

kueue#14543, two that evict each other for ever, is in test_queues_no_loops.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api.door import events
from scheduler.api.door.workload_decisions import Preempt
from scheduler.api.queues import configuration
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.simulate.run import schedule
from scheduler.tenancy.candidates import Candidates
from scheduler.tenancy.victims import Reclaiming
from tests import make
from tests.unit import test_queue_outlooks
from tests.unit.test_queue_command import ask, queue
from tests.unit.test_queues_places import RACKS, make_flavor, make_node, make_queue, make_workload

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
Request = Mapping[str, str]


def make_two(name: str, cpu: int, gpu: int, **more: Any) -> list[Json]:
    """Make a queue with quota of CPU and GPUs."""
    made = make_queue(name, {"gpus": gpu}, **more)
    group = made[0]["spec"]["resourceGroups"][0]
    group["coveredResources"] = ["cpu", GPU]
    group["flavors"][0]["resources"] = [
        {"name": "cpu", "nominalQuota": cpu},
        {"name": GPU, "nominalQuota": gpu},
    ]
    return made


def make_nodes(n: int, cpu: int = 8, gpu: int = 8, pods: int = 110) -> list[Json]:
    nodes = [make_node(f"n{i}", "r0", gpu) for i in range(n)]
    for one in nodes:
        one["status"]["allocatable"] |= {"cpu": f"{cpu}", "pods": f"{pods}"}
    return nodes


def make_asker(name: str, queue: str, n_pods: int, request: Request, **more: Any) -> Json:
    """Make a workload whose pods ask for something."""
    made = make_workload(name, queue, n_pods, 1, **more)
    template = made["spec"]["podSets"][0]["template"]
    template["spec"]["containers"][0]["resources"] = {"requests": request, "limits": request}
    return made


def make_holder(
    name: str, queue: str, nodes: Sequence[str], request: Request, **more: Any
) -> list[Json]:
    """Make a workload that has quota, and its pods, one on each of some nodes."""
    made = make_asker(name, queue, len(nodes), request, **more)
    used = {resource: int(amount) * len(nodes) for resource, amount in request.items()}
    assigned = {
        "name": "main",
        "count": len(nodes),
        "flavors": dict.fromkeys(request, "gpus"),
        "resourceUsage": {resource: f"{amount}" for resource, amount in used.items()},
    }
    since = f"2026-01-01T01:00:{more.get('second', 0):02}Z"
    made["status"] = {
        "admission": {"clusterQueue": queue, "podSetAssignments": [assigned]},
        "conditions": [
            {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": since}
            for kind in ("QuotaReserved", "Admitted")
        ],
    }
    template = made["spec"]["podSets"][0]["template"]
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{i}",
                "namespace": "team",
                "uid": f"uid-{name}-{i}",
                "annotations": {"kueue.x-k8s.io/workload": name},
            },
            "spec": {**template["spec"], "nodeName": node},
            "status": {"phase": "Running"},
        }
        for i, node in enumerate(nodes)
    ]
    return [made, *pods]


def run(objects: Sequence[Json], *, is_fair: bool = False) -> dict[str, Json]:
    config = Config(queues=configuration.read_settings({"fairSharing": {}} if is_fair else {}))
    result = schedule(objects, config=config, strict=True)
    assert result["warnings"] == []
    return {row["name"]: row for row in result["workloads"]}


def list_gone(rows: Mapping[str, Json]) -> set[str]:
    return {name for name, row in rows.items() if row["preempted"]}


def make_fragments(quota: int = 16, *, of_cpu: int = -10) -> list[Json]:
    """Two nodes: of each one workload holds most CPU, and another all GPUs. A third one wants CPU and GPUs of one node."""
    return [
        *make_nodes(2),
        make_flavor("gpus", "gpu"),
        *make_two("a", quota, quota),
        *make_holder("low-cpu", "a", ["n0", "n1"], {"cpu": "5"}, priority=of_cpu),
        *make_holder("low-gpu", "a", ["n0", "n1"], {GPU: "8"}, priority=-10, second=1),
        make_asker("high", "a", 1, {"cpu": "5", GPU: "8"}, second=9),
    ]


BY = pytest.mark.parametrize("is_fair", [False, True], ids=["by the tree", "by shares"])


@BY
@pytest.mark.parametrize("quota", [16, 100], ids=["GPUs are short", "there is quota"])
def test_those_go_who_hold_the_place_and_nothing_of_what_is_short(
    quota: int, is_fair: bool
) -> None:
    """kueue#10497; as in Kueue's case "preempt in multiple flavors" of TestScheduleForTASPreemption."""
    rows = run(make_fragments(quota), is_fair=is_fair)
    assert rows["high"]["state"] == "admitted"
    assert list_gone(rows) == {"low-cpu", "low-gpu"}


@BY
@pytest.mark.parametrize("quota", [8, 100], ids=["GPUs are short", "there is quota"])
def test_those_go_who_hold_the_place_and_nothing_of_what_is_asked(
    quota: int, is_fair: bool
) -> None:
    """kueue#10497: a node takes two pods, and one of those there uses CPU only, which the other workload does not want."""
    world = [
        *make_nodes(1, pods=2),
        make_flavor("gpus", "gpu"),
        *make_two("a", 100, quota),
        *make_holder("low-gpu", "a", ["n0"], {GPU: "8"}, priority=-10),
        *make_holder("low-cpu", "a", ["n0"], {"cpu": "1"}, priority=-10, second=1),
        make_asker("high", "a", 2, {GPU: "4"}, second=9),
    ]
    rows = run(world, is_fair=is_fair)
    assert rows["high"]["state"] == "admitted"
    assert list_gone(rows) == {"low-cpu", "low-gpu"}


@pytest.mark.parametrize(
    ("is_plain", "most"), [(True, 1), (False, 2)], ids=["one resource", "another one, too"]
)
def test_candidates_are_listed_once_for_each_search(
    monkeypatch: pytest.MonkeyPatch, *, is_plain: bool, most: int
) -> None:
    """Those who use other resources are listed only where there is another resource."""
    listed: list[int] = []
    find, list_all = Reclaiming.find_victims, Candidates.list_by_position

    def find_counted(one: Reclaiming, *given: Any) -> Any:
        listed.append(0)
        return find(one, *given)

    def list_counted(one: Candidates, *given: Any) -> Any:
        listed[-1] += 1
        return list_all(one, *given)

    monkeypatch.setattr(Reclaiming, "find_victims", find_counted)
    monkeypatch.setattr(Candidates, "list_by_position", list_counted)
    plain = [
        *make_nodes(1),
        make_flavor("gpus", "gpu"),
        *make_queue("a", {"gpus": 18}),
        *make_holder("fixed", "a", ["n0"], {GPU: "4"}, priority=9),
        *make_holder("low", "a", ["n0"], {GPU: "4"}, priority=-9),
        make_asker("high", "a", 2, {GPU: "7"}, second=9),
    ]
    rows = run(plain if is_plain else make_fragments(of_cpu=0))
    assert rows["high"]["state"] == "waits"
    assert max(listed) == most


def test_nobody_goes_for_quota_that_has_no_place_and_the_place_is_what_is_missing() -> None:
    world = make_fragments(of_cpu=0)
    rows = run(world)
    assert list_gone(rows) == set()
    assert rows["high"]["state"] == "waits"
    assert rows["high"]["reason"] == "TopologyPlacementFailed"
    found = ask("why", "team/high", objects=world)
    assert found["reason"] == "TopologyPlacementFailed"
    assert [need.partition(":")[0] for need in found["needs"]] == [
        "a place for all its pods at once"
    ]
    assert "others could give quota back" in found["needs"][0]
    said = " ".join(queue("why", "team/high", objects=world).split())
    assert "which makes no place for all its pods" in said
    assert "not enough:" not in said


def test_one_whose_place_is_held_is_tried_again_when_a_node_comes() -> None:
    engine = test_queue_outlooks.make(*make_fragments(of_cpu=0))
    assert not [one for one in engine.decide(100.0, Unlimited()).quotas if isinstance(one, Preempt)]
    labels = {"kubernetes.io/hostname": "n2", "pool": "gpu"}
    engine.handle(events.Seen(make.node(name="n2", cpu="8", gpus=8, labels=labels)), 200.0)
    # It was GPUs' quota that was short, and this one holds it.
    gone = [one.key for one in engine.decide(200.0, Unlimited()).quotas if isinstance(one, Preempt)]
    assert gone == ["team/low-gpu"]


class Holds(NamedTuple):
    """A workload of one pod that runs: its node, its CPU and GPUs, and its priority."""

    node: int
    cpu: int
    gpu: int
    priority: int

    @property
    def request(self) -> Request:
        asked = {"cpu": self.cpu, GPU: self.gpu}
        return {resource: f"{amount}" for resource, amount in asked.items() if amount}


HOLDS = st.builds(
    Holds, st.integers(0, 2), st.integers(0, 4), st.integers(0, 4), st.integers(-2, 0)
)


@given(
    st.lists(HOLDS.filter(lambda one: bool(one.request)), max_size=6),
    st.tuples(st.integers(1, 4), st.integers(0, 4)),
    st.tuples(st.integers(4, 12), st.integers(4, 12)),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_those_who_may_go_make_quota_and_a_place_and_none_of_them_in_vain(
    running: list[Holds], wants: tuple[int, int], quota: tuple[int, int], is_fair: bool
) -> None:
    kept: list[Holds] = []

    def fits(others: Sequence[Holds]) -> bool:
        """Whether there is quota and a node for the asker beside others."""
        used = [sum(one.cpu for one in others), sum(one.gpu for one in others)]
        has_quota = all(a + b <= most for a, b, most in zip(used, wants, quota, strict=True))
        return has_quota and any(
            sum(one.cpu for one in others if one.node == node) + wants[0] <= 4
            and sum(one.gpu for one in others if one.node == node) + wants[1] <= 4
            for node in range(3)
        )

    for one in running:
        there = [other for other in kept if other.node == one.node]
        if sum(other.cpu for other in there) + one.cpu > 4:
            continue
        if sum(other.gpu for other in there) + one.gpu > 4:
            continue
        kept.append(one)
    world = [
        *make_nodes(3, cpu=4, gpu=4),
        make_flavor("gpus", "gpu"),
        *make_two("a", *quota),
        make_asker("asker", "a", 1, Holds(0, *wants, 0).request, second=30),
    ]
    for i, one in enumerate(kept):
        world += make_holder(
            f"b{i}", "a", [f"n{one.node}"], one.request, priority=one.priority, second=i
        )
    rows = run(world, is_fair=is_fair)
    gone = {int(name[1:]) for name in list_gone(rows)}
    assert all(kept[i].priority < 0 for i in gone)
    could = fits([one for one in kept if one.priority >= 0])
    assert (rows["asker"]["state"] == "admitted") == could
    assert could or not gone
    for i in gone:
        assert not fits([one for k, one in enumerate(kept) if k == i or k not in gone])


def test_pods_that_wait_for_no_gate_give_way_like_those_of_jobs() -> None:
    """kueue#10929: a Deployment's pods on all nodes of a rack, each with a Workload of its own that the pod owns."""
    world = [
        *make_nodes(2, gpu=4),
        RACKS,
        make_flavor("gpus", "gpu", "racks"),
        *make_two("a", 16, 8),
    ]
    for i in range(2):
        workload, pod = make_holder(f"serve-{i}", "a", [f"n{i}"], {GPU: "4"}, priority=-1, second=i)
        del pod["metadata"]["annotations"]
        pod["metadata"]["labels"] = {
            "kueue.x-k8s.io/queue-name": "a",
            "kueue.x-k8s.io/managed": "true",
        }
        meta = pod["metadata"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        workload["metadata"]["ownerReferences"] = [owner | {"controller": True}]
        world += [workload, pod]
    rows = run([*world, make_asker("gang", "a", 2, {GPU: "4"}, second=9, required="rack")])
    assert rows["gang"]["state"] == "admitted"
    assert list_gone(rows) == {"serve-0", "serve-1"}


@pytest.mark.parametrize(("priority", "state"), [(-1, "admitted"), (0, "waits")])
def test_pods_of_victims_are_not_counted_where_pods_are_spread(priority: int, state: str) -> None:
    """kueue#16021: by the spread the asker's pod is banned from rack r0 as long as those of the victim are there."""
    nodes = [make_node("n0", "r0", 8), make_node("n1", "r1", 8)]
    rule = {
        "maxSkew": 1,
        "topologyKey": "rack",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "serve"}},
    }
    asker = make_asker("asker", "a", 1, {GPU: "4"}, second=9)
    template = asker["spec"]["podSets"][0]["template"]
    template["metadata"] = {"labels": {"app": "serve"}}
    template["spec"]["topologySpreadConstraints"] = [rule]
    victim = make_holder("victim", "a", ["n0"], {GPU: "4"}, priority=priority)
    for pod in victim[1:]:
        pod["metadata"]["labels"] = {"app": "serve"}
    rows = run(
        [
            *nodes,
            make_flavor("gpus", "gpu"),
            *make_two("a", 100, 100),
            *victim,
            # The other rack is full, and nobody there may be asked to go.
            *make_holder("other", "a", ["n1"], {GPU: "8"}, priority=5, second=1),
            asker,
        ]
    )
    assert rows["asker"]["state"] == state
    assert list_gone(rows) == ({"victim"} if state == "admitted" else set())


def test_a_rack_is_made_free_by_moving_one_whose_queue_stays_within_its_quota() -> None:
    """kueue#12478: the racks are used half by a queue that stays within its quota, and a gang needs one rack."""
    preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
    world = [
        *(make_node(f"n{i}", f"r{i // 2}", 4) for i in range(4)),
        RACKS,
        make_flavor("gpus", "gpu", "racks"),
        *make_two("a", 16, 8, preemption=preemption),
        *make_two("b", 16, 8, preemption=preemption),
        *make_holder("b0", "b", ["n0"], {GPU: "4"}),
        *make_holder("b1", "b", ["n2"], {GPU: "4"}, second=1),
        make_asker("gang", "a", 2, {GPU: "4"}, second=9, required="rack"),
    ]
    kept = run(world)
    assert kept["gang"]["state"] == "waits"
    assert list_gone(kept) == set()
    result = schedule(world, config=Config(queues=configuration.read_settings({"moves": True})))
    rows = {row["name"]: row for row in result["workloads"]}
    assert [row["preempted"]["reason"] for row in rows.values() if row["preempted"]] == [
        "InCohortRelocation"
    ]
    assert {row["state"] for row in rows.values()} == {"admitted", "running"}


def test_two_do_not_evict_each_other_where_one_keeps_more_than_it_was_judged_by() -> None:
    """kueue#14543: without ``low`` queue a has the smaller share and takes from b; ``low`` stays, and b takes it back."""
    world = [*make_nodes(1), make_flavor("gpus", "gpu")]
    for name, quota in (("a", 0), ("b", 0), ("c", 100)):
        world += make_queue(name, {"gpus": quota})
    held = (("low", "a", "10", -1), ("large", "b", "60", 0))
    for i, (name, of, n, priority) in enumerate(held):
        world += make_holder(name, of, ["n0"], {GPU: n}, second=i, priority=priority)[:1]
    for one in world:
        if one["kind"] == "Workload":
            one["spec"]["podSets"][0]["template"]["spec"]["schedulerName"] = "other"
    world.append(make_workload("asker", "a", 1, 55, second=9, scheduler="other"))
    rows = run(world, is_fair=True)
    assert list_gone(rows) == {"large"}
    assert {name: row["state"] for name, row in rows.items()} == {
        "low": "running",
        "asker": "admitted",
        "large": "waits",
    }
