"""The roles of the manifests are what the operator uses: nothing is refused to it, and nothing is left over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scheduler.embedded.agents import nodes
from tests.controlplane.auditlog import AuditLog
from tests.operator import (
    cases_extended_resources,
    cases_locks,
    cases_preemption,
    cases_resource_claims,
    cases_volumes,
    crds,
    devices,
    installed,
    servers,
)
from tests.operator.manifests import pod, policy, vgpu
from tests.operator.world import POLICIES, Refused, World, enter

Json = dict[str, Any]
Right = tuple[str, str, str]

OURS = f"system:serviceaccount:{installed.NAMESPACE}:evenkeel"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_ROLES = (
    f"{_RBAC}/clusterroles/evenkeel",
    f"{_RBAC}/namespaces/{installed.NAMESPACE}/roles/evenkeel",
)
# Anyone may ask what he may do.
_ANYONES = {("create", "authorization.k8s.io", "selfsubjectaccessreviews")}
# Whoever writes which devices a claim has is asked for this one by the API server, which logs the write alone.
_ASKED_BY_THE_SERVER = {("patch", "resource.k8s.io", "resourceclaims/binding")}
_ALL: Json = {"level": "Metadata", "users": [OURS], "omitStages": ["RequestReceived"]}


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    return AuditLog(tmp_path, [_ALL])


@pytest.fixture
def server(log: AuditLog) -> Iterator[servers.Server]:
    with servers.real(extra_apiserver_flags=(*log.flags, *crds.FLAGS)) as running:
        yield running


async def test_every_right_is_used_and_no_other_is_missed(
    server: servers.Server, log: AuditLog
) -> None:
    async with enter(server) as world:
        await _do_everything(world)
    granted = {right for path in _ROLES for right in _rights(await _role(server, path))}
    entries = [one for one in log.entries() if "objectRef" in one]
    assert [one for one in entries if one["responseStatus"]["code"] == 403] == []
    used = {_used(one) for one in entries} - _ANYONES
    assert used - granted == set()
    assert granted - used == _ASKED_BY_THE_SERVER
    await _check_that_bindings_are_asked_for(server)


async def _check_that_bindings_are_asked_for(server: servers.Server) -> None:
    """Without the right, a write of a claim's devices is refused, although the status may be written."""
    assert server.plane is not None
    request, token = server.plane.request, installed.token(server.plane)
    request("POST", devices.CLAIMS, devices.claim("asked"))
    role = await _role(server, _ROLES[0])
    rules = [one for one in role["rules"] if "resourceclaims/binding" not in one["resources"]]
    rules.append({"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/status"], "verbs": ["patch"]})  # fmt: skip
    request("PATCH", _ROLES[0], {"rules": rules})
    body = {"status": {"allocation": devices.allocation("n0", "gpu-0")}}
    # The API server may hear of the role a little later, so devices that were written are taken away again.
    async with asyncio.timeout(20.0):
        while True:
            answer = request("PATCH", f"{devices.CLAIMS}/asked/status", body, token=token)
            if answer.status == 422:
                break
            request("PATCH", f"{devices.CLAIMS}/asked/status", {"status": {"allocation": None}})
            await asyncio.sleep(0.1)
    assert "resourceclaims/binding" in answer.body["message"]


async def _do_everything(world: World) -> None:
    """All that an operator does to a cluster; whoever gives it one more right adds here what it is for."""
    await _serve_groups(world)
    await world.start_operator(name="a")
    await world.start_operator(name="b")  # stands by, and watches the lease
    await world.create(nodes.make_plain_node("plain"), nodes.make_gpu_node("cards"))
    await world.create(policy("all", nodePolicy="binpack"))
    async with world.agents(nodes={"cards"}):
        large = pod("large", requests={"cpu": "1000"})
        await world.create(pod("plain", requests={"cpu": "1"}), vgpu("gpu"), large)
        await world.running("gpu")
    await world.told("plain", "gpu")
    await world.refused("large")

    # A group that was placed has a condition.
    spec: Json = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    await world.call("POST", _GROUPS, {"metadata": {"name": "gang"}, "spec": spec})
    await world.create(pod("member", schedulingGroup={"podGroupName": "gang"}))
    await world.bound("member")

    async def conditions() -> Any:
        return (await world.call("GET", f"{_GROUPS}/gang")).get("status", {}).get("conditions")

    await world.wait_until(conditions)
    await _hold_groups_of_others(world)
    await world.create(*(pod(name, requests={"cpu": "20"}) for name in ("low-a", "low-b")))
    await world.bound("low-a", "low-b")
    high = {"metadata": {"name": "high"}, "value": 100}
    await world.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", high)
    spec |= {"priorityClassName": "high"}
    made = {"metadata": {"name": "urgent"}, "spec": spec}
    await world.wait_until(partial(_try_to_create, world, made))
    urgent: Json = {"schedulingGroup": {"podGroupName": "urgent"}, "priorityClassName": "high"}
    await world.create(pod("urgent", requests={"cpu": "20"}, **urgent))
    await world.bound("urgent")

    async def judged() -> int:
        found = await world.call("GET", f"{POLICIES}/all")
        generation: int = found.get("status", {}).get("observedGeneration", 0)
        return generation

    await world.wait_until(judged)
    # What is in force already keeps the time since when it is, which is read.
    await world.call("PATCH", f"{POLICIES}/all", {"spec": {"nodePolicy": "spread"}})
    await world.wait_until(judged, lambda generation: generation == 2)
    # Of a lock it reads the pod that holds it.
    await world.clear()
    await cases_locks.a_lock_whose_pod_is_done_is_taken_over(world)
    await world.clear()
    await cases_preemption.a_pod_waits_for_those_that_make_room_and_takes_their_place(world)
    # A claim is told its node, and a volume is given to a claim.
    await world.clear()
    await cases_volumes.a_claim_is_provisioned_on_the_node_of_its_pod(world)
    await world.clear()
    await cases_volumes.a_free_volume_is_given_to_the_claim_and_the_pod_goes_where_it_is(world)
    # A claim gets devices, and a claim that is to lose them again is read first.
    await world.clear()
    await cases_resource_claims.a_pod_is_bound_after_its_claim_has_its_devices_and_names_the_pod(
        world
    )
    await world.clear()
    await cases_resource_claims.a_pod_that_is_deleted_while_its_devices_get_ready_leaves_nothing_reserved(
        world
    )
    # A claim is made for extended resources, and deleted where the bind comes to nothing.
    await world.clear()
    await cases_extended_resources.a_pod_that_goes_while_its_devices_get_ready_takes_its_claim_with_it(
        world
    )


async def _hold_groups_of_others(world: World) -> None:
    """Let groups of KAI and Volcano wait: their objects have a status then."""
    for group, spec_of_other, note in (
        ("scheduling.run.ai/v2alpha2", {"minMember": 1}, "pod-group-name"),
        ("scheduling.volcano.sh/v1beta1", {"minMember": 1}, "scheduling.k8s.io/group-name"),
    ):
        name = group.split(".")[1]
        path = f"/apis/{group}/namespaces/default/podgroups"
        kind = {"apiVersion": group, "kind": "PodGroup"}
        made = {**kind, "metadata": {"name": name}, "spec": spec_of_other}
        await world.call("POST", path, made)
        member = pod(f"of-{name}", requests={"cpu": "1000"})
        member["metadata"]["annotations"] = {note: name}
        await world.create(member)

        async def status(path: str = f"{path}/{name}") -> Any:
            return (await world.call("GET", path)).get("status")

        await world.wait_until(status)


async def _serve_groups(world: World) -> None:
    """Install the kinds of other systems that say which pods are groups."""
    for kind in crds.list_group_kinds():
        await world.call("POST", _CRDS, crds.make_crd(kind))
    for kind in crds.list_group_kinds():
        await world.wait_until(partial(_is_served, world, kind.path))


async def _try_to_create(world: World, group: Json) -> bool:
    """Create a group, once the API server's admission has heard of its priority class."""
    try:
        await world.call("POST", _GROUPS, group)
    except Refused as error:
        if "no PriorityClass" not in str(error):
            raise
        return False
    return True


async def _is_served(world: World, path: str) -> bool:
    try:
        await world.call("GET", path)
    except Refused:
        return False
    return True


async def _role(server: servers.Server, path: str) -> Json:
    assert server.plane is not None
    found: Json = server.plane.request("GET", path).body
    return found


def _rights(role: Json) -> Iterable[Right]:
    for rule in role["rules"]:
        for resource in rule["resources"]:
            for group in rule["apiGroups"]:
                for verb in rule["verbs"]:
                    yield verb, group, resource


def _used(entry: Json) -> Right:
    what = entry["objectRef"]
    resource = "/".join(filter(None, (what["resource"], what.get("subresource", ""))))
    return entry["verb"], what.get("apiGroup", ""), resource
