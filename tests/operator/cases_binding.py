"""Pods that can be placed are, on the right node, and everybody is told."""

from __future__ import annotations

import asyncio
from collections import Counter

from scheduler.embedded.agents import nodes
from tests.operator.manifests import container, pod, vgpu
from tests.operator.world import PODS, World

_GPU_NODE = {"nvidia.com/gpu": "2"}
# A pod that failed once may be tried again after this long; until then order is that of backoffs.
BACKOFF_SECONDS = 1.2


async def plain_pods_are_bound(world: World) -> None:
    await world.create(*(nodes.make_plain_node(f"n{i}", cpu="4") for i in range(3)))
    names = [f"p{i}" for i in range(12)]
    await world.create(*(pod(name, requests={"cpu": "1"}) for name in names))
    assert Counter(await world.bound(*names)) == {"n0": 4, "n1": 4, "n2": 4}


async def a_bound_pod_has_its_event_and_condition(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"), pod("p"))
    await world.bound("p")
    (event,) = await world.wait_until(lambda: world.events("Scheduled", "p"))
    assert event["note"] == "Successfully assigned default/p to n0"
    assert (event["type"], event["action"]) == ("Normal", "Binding")
    assert event["reportingController"] == "evenkeel"
    assert event["reportingInstance"]
    found = await world.pod("p")
    assert event["regarding"]["uid"] == found["metadata"]["uid"]
    (scheduled,) = (c for c in found["status"]["conditions"] if c["type"] == "PodScheduled")
    assert scheduled["status"] == "True"
    assert not await world.events("FailedScheduling", "p")


async def a_bound_pod_has_nothing_of_hami_on_a_plain_node(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"), pod("p"))
    await world.bound("p")
    found = (await world.pod("p"))["metadata"]
    assert not [key for key in found.get("annotations", {}) if "hami.io" in key]
    assert "hami.io/vgpu-node" not in found.get("labels", {})


async def taints_affinity_and_selectors_are_kept(world: World) -> None:
    taint = {"key": "team", "value": "red", "effect": "NoSchedule"}
    await world.create(
        nodes.make_plain_node("tainted", taints=[taint]),
        nodes.make_plain_node("cordoned") | {"spec": {"unschedulable": True}},
        nodes.make_plain_node("old", labels={"disk": "hdd", "year": "2019"}),
        nodes.make_plain_node("new", labels={"disk": "ssd", "year": "2024"}),
    )
    year = {"key": "year", "operator": "Gt", "values": ["2020"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [year]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    field = {"key": "metadata.name", "operator": "In", "values": ["old"]}
    by_name = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    by_field = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": by_name}}
    toleration = {"key": "team", "operator": "Exists", "effect": "NoSchedule"}
    await world.create(
        pod("selects", nodeSelector={"disk": "hdd"}),
        pod("prefers-new", affinity=affinity),
        pod("by-field", affinity=by_field),
        pod(
            "tolerates",
            tolerations=[toleration],
            nodeSelector={"kubernetes.io/hostname": "tainted"},
        ),
        pod("does-not", nodeSelector={"kubernetes.io/hostname": "tainted"}),
        pod("nor-cordoned", nodeSelector={"kubernetes.io/hostname": "cordoned"}),
    )
    placed = await world.bound("selects", "prefers-new", "by-field", "tolerates")
    assert placed == ["old", "new", "old", "tainted"]
    # One and the same for both: a node has the reason of the first filter that refuses it.
    text = (
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector."
    )
    await world.refused("does-not", text)
    await world.refused("nor-cordoned", text)


async def host_ports_are_taken_once(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"), nodes.make_plain_node("n1"))
    ports = [{"containerPort": 80, "hostPort": 8080}]
    both = [container(ports=ports)]
    await world.create(*(pod(f"p{i}", containers=both, hostNetwork=False) for i in range(3)))
    first = await world.wait_until(
        world.pods, lambda pods: sum("nodeName" in p["spec"] for p in pods) == 2
    )
    (left,) = (p["metadata"]["name"] for p in first if "nodeName" not in p["spec"])
    text = "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."
    await world.refused(left, text)
    gone = next(p["metadata"]["name"] for p in first if "nodeName" in p["spec"])
    await world.delete(f"{PODS}/{gone}")
    await world.bound(left)


async def pods_of_other_schedulers_are_left_alone_and_counted(world: World) -> None:
    await world.create(nodes.make_plain_node("n0", cpu="4"))
    await world.create(
        pod("theirs-bound", requests={"cpu": "3"}, schedulerName="other", nodeName="n0"),
        pod("theirs-waiting", schedulerName="other"),
        pod(
            "bare-bound", requests={"cpu": "500m"}, nodeName="n0", schedulerName="default-scheduler"
        ),
    )
    await world.settle()
    await world.heard_of("theirs-bound", "bare-bound")
    await world.create(pod("too-big", requests={"cpu": "1"}), pod("fits", requests={"cpu": "500m"}))
    assert await world.bound("fits") == ["n0"]
    await world.refused("too-big", "0/1 nodes are available: 1 Insufficient cpu.")
    await world.delete(f"{PODS}/theirs-bound")
    await world.bound("too-big")
    assert "nodeName" not in (await world.pod("theirs-waiting"))["spec"]
    assert not await world.events("FailedScheduling", "theirs-waiting")


async def finished_pods_hold_nothing(world: World) -> None:
    await world.create(nodes.make_plain_node("n0", cpu="1"), pod("first", requests={"cpu": "1"}))
    await world.bound("first")
    await world.create(pod("second", requests={"cpu": "1"}))
    await world.refused("second", "Insufficient cpu")
    await world.call("PATCH", f"{PODS}/first/status", {"status": {"phase": "Succeeded"}})
    assert await world.bound("second") == ["n0"]


async def a_group_goes_on_when_some_of_its_pods_have_succeeded(world: World) -> None:
    notes = {
        "gang.scheduling.koordinator.sh/name": "g",
        "gang.scheduling.koordinator.sh/min-available": "3",
    }
    await world.create(nodes.make_plain_node("n0"))
    await world.create(*(pod(f"p{i}", annotations=notes) for i in range(3)))
    await world.bound("p0", "p1", "p2")
    for name in ("p0", "p1"):
        await world.call("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Succeeded"}})
    await world.delete(f"{PODS}/p2")
    await world.create(pod("again", annotations=notes))
    assert await world.bound("again") == ["n0"]


async def cpu_only_pods_stay_off_gpu_nodes_while_others_fit(world: World) -> None:
    await world.create(
        nodes.make_gpu_node("gpu", cpu="64"),
        nodes.make_plain_node("gpu-plain", cpu="64", resources=_GPU_NODE),
        nodes.make_plain_node("cpu", cpu="4"),
    )
    names = [f"p{i}" for i in range(4)]
    await world.create(*(pod(name, requests={"cpu": "1"}) for name in names))
    assert set(await world.bound(*names)) == {"cpu"}
    await world.create(pod("one-more", requests={"cpu": "1"}))
    assert await world.bound("one-more") != ["cpu"]


async def whole_gpus_of_plain_nodes_are_an_extended_resource(world: World) -> None:
    await world.create(
        nodes.make_plain_node("g0", resources=_GPU_NODE),
        nodes.make_plain_node("g1", resources=_GPU_NODE),
    )
    whole = [pod(f"p{i}", limits={"nvidia.com/gpu": 1}) for i in range(5)]
    await world.create(*whole[:4])
    assert Counter(await world.bound("p0", "p1", "p2", "p3")) == {"g0": 2, "g1": 2}
    await world.create(whole[4], vgpu("shares", mem=1024))
    await world.refused("p4", "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")
    await world.refused("shares", "0/2 nodes are available:")
    for found in await world.pods():
        assert "hami.io/vgpu-node" not in found["metadata"].get("annotations", {})


async def higher_priority_goes_first(world: World) -> None:
    for name, value in (("low", 10), ("high", 1000)):
        await world.call(
            "POST",
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
            },
        )
    await world.create(
        *(pod(f"low{i}", requests={"cpu": "1"}, priorityClassName="low") for i in range(4)),
        *(pod(f"high{i}", requests={"cpu": "1"}, priorityClassName="high") for i in range(4)),
    )
    await asyncio.gather(*(world.refused(f"high{i}") for i in range(4)))
    await asyncio.sleep(BACKOFF_SECONDS)
    await world.create(nodes.make_plain_node("n0", cpu="4"))
    assert await world.bound(*(f"high{i}" for i in range(4))) == ["n0"] * 4
    await world.settle()
    bound = {p["metadata"]["name"] for p in await world.pods() if "nodeName" in p["spec"]}
    assert bound == {f"high{i}" for i in range(4)}


async def a_node_deleted_and_made_again_keeps_what_its_pods_hold(world: World) -> None:
    await world.create(nodes.make_plain_node("n0", cpu="4"), pod("p", requests={"cpu": "3"}))
    await world.bound("p")
    await world.delete("/api/v1/nodes/n0")
    await world.create(pod("homeless", requests={"cpu": "2"}))
    await world.refused("homeless", "no nodes available to schedule pods")
    await world.create(nodes.make_plain_node("n0", cpu="4"))
    await world.create(pod("big", requests={"cpu": "2"}), pod("small", requests={"cpu": "1"}))
    await world.refused("big", "0/1 nodes are available: 1 Insufficient cpu.")
    assert await world.bound("small") == ["n0"]
    await world.delete(f"{PODS}/big")
    await world.delete(f"{PODS}/p")
    assert await world.bound("homeless") == ["n0"]


ALL = (
    plain_pods_are_bound,
    a_bound_pod_has_its_event_and_condition,
    a_bound_pod_has_nothing_of_hami_on_a_plain_node,
    taints_affinity_and_selectors_are_kept,
    host_ports_are_taken_once,
    pods_of_other_schedulers_are_left_alone_and_counted,
    finished_pods_hold_nothing,
    a_group_goes_on_when_some_of_its_pods_have_succeeded,
    cpu_only_pods_stay_off_gpu_nodes_while_others_fit,
    whole_gpus_of_plain_nodes_are_an_extended_resource,
    higher_priority_goes_first,
    a_node_deleted_and_made_again_keeps_what_its_pods_hold,
)
