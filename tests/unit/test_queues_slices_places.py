"""A slice that replaces another one needs quota and a place only for the pods that come in addition."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scheduler.api import kueue, names, wire
from scheduler.api.door import events
from scheduler.api.door.workload_decisions import Admit, ReplaceSlice
from scheduler.api.queues import configuration
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.queues import Queues
from scheduler.simulate.run import schedule
from scheduler.simulate.situation import make_engine, prepare
from tests.unit.test_queue_command import ask
from tests.unit.test_queues_places import (
    RACKS,
    make_flavor,
    make_node,
    make_queue,
    make_running,
    make_workload,
)

Json = dict[str, Any]
NODES = [make_node("n0", "r0"), make_node("n1", "r0")]
FLAVOR = make_flavor("gpus", "gpu")
SETTINGS = configuration.read_settings({"kueue": True})


def make_pod(node: str, gpus: int = 2) -> Json:
    """A pod of the chain."""
    _, pod = make_running("old", "a", node, "gpus", 0, gpus=gpus)
    pod["metadata"]["annotations"][names.KUEUE_CHAIN] = "old"
    return pod


def make_slice(workload: Json, replaces: str = "") -> Json:
    """Say that a workload is a slice."""
    texts = {names.KUEUE_ELASTIC: "true", names.KUEUE_CHAIN: "old"}
    if replaces:
        texts[names.KUEUE_REPLACES] = f"team/{replaces}"
    workload["metadata"]["annotations"] = texts
    return workload


def make_old(n: int = 2) -> list[Json]:
    """A slice with pods of two cards each, which fill the first nodes."""
    workload, _ = make_running("old", "a", "n0", "gpus", 2, gpus=2)
    make_slice(workload)
    pod = make_pod("n0")
    pods = [pod]
    for i in range(1, n):
        meta = {**pod["metadata"], "name": f"old-pod-{i}", "uid": f"uid-old-{i}"}
        spec = {**pod["spec"], "nodeName": f"n{i // 2}"}
        pods.append({**pod, "metadata": meta, "spec": spec})
    workload["spec"]["podSets"][0]["count"] = n
    assigned = workload["status"]["admission"]["podSetAssignments"][0]
    assigned |= {"count": n, "resourceUsage": {"nvidia.com/gpu": f"{2 * n}"}}
    return [workload, *pods]


def make_new(n: int, replaces: str = "old") -> Json:
    return make_slice(make_workload("new", "a", n, 2, second=9), replaces)


def run(*objects: Json) -> dict[str, Json]:
    return {row["name"]: row for row in schedule(objects, strict=True)["workloads"]}


@pytest.mark.parametrize("quota", [8, 100])
def test_it_gets_quota_and_a_place_for_what_is_new(quota: int) -> None:
    """Two nodes of four cards take four pods, of which two are there."""
    rows = run(*NODES, FLAVOR, *make_queue("a", {"gpus": quota}), *make_old(), make_new(4))
    assert rows["new"]["state"] == "admitted"
    assert rows["new"]["uses"] == [{"flavor": "gpus", "resource": "nvidia.com/gpu", "amount": "8"}]
    assert rows["old"]["state"] == "held"
    assert not rows["old"]["uses"]


def test_without_quota_for_what_is_new_the_old_one_stays() -> None:
    rows = run(*NODES, FLAVOR, *make_queue("a", {"gpus": 6}), *make_old(), make_new(4))
    assert (rows["old"]["state"], rows["new"]["state"]) == ("running", "waits")
    assert rows["new"]["reason"] == "ExceedsMaxQuota"


def test_without_a_place_for_what_is_new_the_old_one_stays() -> None:
    rows = run(*NODES, FLAVOR, *make_queue("a", {"gpus": 100}), *make_old(), make_new(5))
    assert (rows["old"]["state"], rows["new"]["state"]) == ("running", "waits")
    assert rows["new"]["reason"] == "TopologyPlacementFailed"


def test_a_workload_that_replaces_nothing_needs_all() -> None:
    queue = make_queue("a", {"gpus": 100})
    assert run(*NODES, FLAVOR, *queue, *make_old(), make_new(4, "other"))["new"]["state"] == "waits"
    assert run(*NODES, FLAVOR, *queue, make_new(4))["new"]["state"] == "admitted"


def test_it_gets_no_other_flavor() -> None:
    nodes = [make_node("n0", "r0"), make_node("n1", "r0", pool="new")]
    flavors = [make_flavor("gpus", "gpu"), make_flavor("newer", "new")]
    queue = make_queue("a", {"gpus": 4, "newer": 4})
    rows = run(*nodes, *flavors, *queue, *make_old(), make_new(3))
    assert (rows["old"]["state"], rows["new"]["state"]) == ("running", "waits")
    said = "could not assign newer flavor since the original workload is assigned: gpus"
    assert said in rows["new"]["message"]


def test_less_important_ones_go_for_what_is_new_and_the_old_one_never_does() -> None:
    other, pod = make_running("other", "a", "n1", "gpus", 0, gpus=4)
    pod["spec"]["nodeName"] = "n1"
    old = make_old()
    new = make_new(4)
    for one in (old[0], new):
        one["spec"]["priority"] = 5
    other["spec"]["priority"] = 0
    rows = run(*NODES, FLAVOR, *make_queue("a", {"gpus": 8}), *old, other, pod, new)
    assert rows["new"]["state"] == "admitted"
    assert rows["old"]["state"] == "held"
    assert rows["other"]["state"] == "waits"


@pytest.mark.parametrize("kind", ["required", "preferred"])
def test_pods_that_have_to_be_near_each_other_are_refused(kind: str) -> None:
    new = make_new(2, "")
    new["spec"]["podSets"][0]["topologyRequest"] = {kind: "rack"}
    racks = make_flavor("gpus", "gpu", "racks")
    rows = run(*NODES, RACKS, racks, *make_queue("a", {"gpus": 100}), new)
    assert rows["new"]["reason"] == "NotSupported"
    assert names.KUEUE_ELASTIC in rows["new"]["message"]


def make_world(*objects: Json, config: Config | None = None) -> tuple[Engine, Queues]:
    """An engine with two nodes of four cards and quota for all of them, and workloads; and who carries its decisions out."""
    everything = [*NODES, FLAVOR, *make_queue("a", {"gpus": 8}), *objects]
    inventory = prepare(everything, Changes(), strict=True).inventory
    engine = make_engine(inventory, config or Config(), only_ours=False)
    return engine, Queues(engine, inventory.queueing, inventory.pods)


def decide(engine: Engine, kind: type[Any]) -> list[Any]:
    return [one for one in engine.decide(0.0, Unlimited()).quotas if isinstance(one, kind)]


def list_seats(engine: Engine, key: str) -> list[str]:
    return sorted(pod.node or "" for pod in engine._cluster.stand_ins.list_of(key))


def test_the_old_one_is_finished_once_the_new_one_is_known_to_have_its_quota() -> None:
    engine, _ = make_world(*make_old(), make_new(4))
    (admit,) = decide(engine, Admit)
    assert admit.key == "team/new"
    assert not decide(engine, ReplaceSlice)
    assert list_seats(engine, "team/new") == ["n1", "n1"]
    tenants = engine._queues.tenants
    assert tenants.directory.forest.list_held("a").keys() == {"team/new"}
    work = tenants.works["team/old"]
    assert work.replaced_by is tenants.works["team/new"]


def test_if_its_quota_cannot_be_written_the_old_one_has_what_it_had() -> None:
    engine, _ = make_world(*make_old(), make_new(4))
    assert decide(engine, Admit)
    engine.handle(events.AdmitFailed("team/new", "no"), 0.0)
    held = engine._queues.tenants.directory.forest.list_held("a")
    assert dict(held["team/old"]) == {("gpus", "nvidia.com/gpu"): 4}
    assert held.keys() == {"team/old"}
    assert not list_seats(engine, "team/new")
    # And it is tried again.
    assert [one.key for one in decide(engine, Admit)] == ["team/new"]
    assert list_seats(engine, "team/new") == ["n1", "n1"]


def test_places_of_pods_that_have_not_come_are_handed_over() -> None:
    engine, queues = make_world(make_slice(make_workload("old", "a", 2, 2)))
    (admit,) = decide(engine, Admit)
    queues.carry_out(admit, 0.0)
    assert list_seats(engine, "team/old") == ["n0", "n0"]
    engine.handle(events.Seen(msgspec.convert(make_new(3), kueue.Workload)), 0.0)
    assert [one.key for one in decide(engine, Admit)] == ["team/new"]
    assert list_seats(engine, "team/new") == ["n0", "n0", "n1"]
    assert not list_seats(engine, "team/old")


def test_a_pod_that_is_seen_again_and_again_takes_one_place() -> None:
    """It waits with a gate, and its status changes."""
    engine, queues = make_world(make_slice(make_workload("old", "a", 2, 2)))
    (admit,) = decide(engine, Admit)
    queues.carry_out(admit, 0.0)
    pod = make_pod("")
    pod["status"] = {"phase": "Pending"}
    pod["spec"]["schedulingGates"] = [{"name": names.KUEUE_ELASTIC}]
    for _ in range(3):
        engine.handle(events.Seen(msgspec.convert(pod, wire.Pod)), 0.0)
        assert len(list_seats(engine, "team/old")) == 1


@pytest.mark.parametrize("is_gone", [True, False])
@pytest.mark.parametrize("n", [1, 3])
def test_no_more_pods_are_placed_than_have_quota_whoever_has_taken_their_gate(
    n: int, is_gone: bool
) -> None:
    """Its user may take the gate from them. Once one of the others is gone or has ended, the next one has its turn."""
    engine, _ = make_world(*make_old(), config=Config(queues=SETTINGS))
    engine.decide(0.0, Unlimited())
    for i in range(n):
        pod = make_pod("", 1)
        pod["metadata"] |= {"name": f"excess-{i}", "uid": f"uid-excess-{i}"}
        pod["status"] = {"phase": "Pending"}
        engine.handle(events.Seen(msgspec.convert(pod, wire.Pod)), 0.0)
    assert not engine.decide(1.0, Unlimited()).binds
    ended = {**make_old()[2], "status": {"phase": "Succeeded"}}
    change: events.Event = events.Seen(msgspec.convert(ended, wire.Pod))
    engine.handle(events.Gone("Pod", "uid-old-1") if is_gone else change, 2.0)
    assert len(engine.decide(2.0, Unlimited()).binds) == 1
    assert not engine.decide(3.0, Unlimited()).binds


def test_a_pod_with_a_gate_waits_for_what_the_next_slice_waits_for() -> None:
    everything = [*NODES, FLAVOR, *make_queue("a", {"gpus": 6}), *make_old(), make_new(4)]
    pod = make_pod("")
    pod["metadata"] |= {"name": "gated", "uid": "uid-gated"}
    pod["spec"]["schedulingGates"] = [{"name": names.KUEUE_ELASTIC}]
    pod["status"] = {"phase": "Pending"}
    rows = schedule([*everything, pod], strict=True)["pods"]
    (row,) = (one for one in rows if one["name"] == "gated")
    assert row["node"] is None
    assert row["message"].startswith("held by quota of queue a (ExceedsMaxQuota)")
    assert not [one for one in rows if one["name"].startswith("old") and not one["node"]]


def test_a_job_is_asked_about_by_its_name_though_it_has_several_workloads() -> None:
    """The one that waits is meant; without one, the one with quota."""
    old, *pods = make_old()
    new = make_new(4)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    for one in (old, new):
        one["metadata"]["ownerReferences"] = [owner]
    world = [*NODES, FLAVOR, *make_queue("a", {"gpus": 6}), old, *pods]
    assert ask("why", "j", objects=[*world, new])["name"] == "new"
    assert ask("why", "j", objects=world)["name"] == "old"


def test_nobody_takes_the_quota_of_a_job_of_one_size_or_of_another_job() -> None:
    """Who may write Workloads could name any owner."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    queue = make_queue("a", {"gpus": 4})
    for kind in ("plain", "other"):
        old, *pods = make_old()
        old["metadata"]["ownerReferences"] = [owner]
        if kind == "plain":
            del old["metadata"]["annotations"]
        new = make_new(1)
        new["metadata"]["ownerReferences"] = [owner if kind == "plain" else owner | {"uid": "v"}]
        rows = run(*NODES, FLAVOR, *queue, old, *pods, new)
        assert (rows["old"]["state"], rows["new"]["state"]) == ("running", "waits"), kind


def test_a_slice_that_replaces_itself_is_as_any_other() -> None:
    engine, _ = make_world(make_slice(make_workload("old", "a", 2, 2), "old"))
    (admit,) = decide(engine, Admit)
    assert admit.key == "team/old"
    assert engine._queues.tenants.works["team/old"].replaced_by is None


def test_pods_of_one_set_cannot_be_fewer_with_slices() -> None:
    new = make_new(4, "")
    new["spec"]["podSets"][0]["minCount"] = 2
    rows = run(*NODES, FLAVOR, *make_queue("a", {"gpus": 100}), new)
    assert rows["new"]["reason"] == "NotSupported"
    assert names.KUEUE_LEAST in rows["new"]["message"]


def test_what_a_slice_lacks_is_what_it_asks_for_beyond_the_old_one() -> None:
    world = [*NODES, FLAVOR, *make_queue("a", {"gpus": 6}), *make_old(), make_new(4)]
    (flavor,) = ask("why", "new", objects=world)["flavors"]
    (one,) = flavor["resources"]
    assert (one["requested"], one["available"], one["missing"]) == ("4", "2", "2")


def test_nothing_is_remembered_of_pods_whose_workload_was_gone_before_them() -> None:
    engine, _ = make_world(*make_old(1), config=Config(queues=SETTINGS))
    pod = make_pod("", 1)
    pod["metadata"] |= {"name": "excess", "uid": "uid-excess"}
    pod["status"] = {"phase": "Pending"}
    engine.handle(events.Seen(msgspec.convert(pod, wire.Pod)), 0.0)
    gate = engine._queues._gate
    assert gate._let_in
    engine.handle(events.Gone("Workload", "team/old"), 1.0)
    for uid in ("uid-old", "uid-excess"):
        engine.handle(events.Gone("Pod", uid), 1.0)
    assert not gate._let_in
    assert not gate._chains
