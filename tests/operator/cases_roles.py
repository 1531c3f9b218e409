"""The label that says which replica leads; every case starts its own operators."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from tests.operator.manifests import pod
from tests.operator.process import Operator
from tests.operator.servers import OPERATOR_NAMESPACE
from tests.operator.world import World

Json = dict[str, Any]
_KEY = "hami.io/scheduler-role"
_OWN = {"app.kubernetes.io/name": "evenkeel", "app.kubernetes.io/instance": "one"}
# What the operator's namespace demands of every pod.
_RESTRICTED_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
_RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_PODS = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods"


async def _start(world: World, name: str) -> Operator:
    path = world.server.folder / "roles.yaml"
    path.write_text(f"roleLabel: {_KEY}\n", encoding="utf-8")
    args = ("--config", str(path), "--lease-seconds", "5")
    return await world.start_operator(
        name=name, args=args, env={"POD_NAMESPACE": OPERATOR_NAMESPACE}
    )


async def _make_pods(world: World) -> None:
    """Make the pods of two replicas, and one of another installation that has the label of a leader."""
    stranger = {**_OWN, "app.kubernetes.io/instance": "two", _KEY: "leader"}
    for name, labels in (("a", _OWN), ("b", _OWN), ("stranger", stranger)):
        made = pod(name, namespace=OPERATOR_NAMESPACE, labels=labels, schedulerName="nobody")
        made["spec"]["securityContext"] = _RESTRICTED_POD
        made["spec"]["containers"][0]["securityContext"] = _RESTRICTED
        await world.create(made)


async def _roles(world: World) -> dict[str, str]:
    found = await world.listed(_PODS)
    return {
        one["metadata"]["name"]: one["metadata"]["labels"].get(_KEY, "")
        for one in found
        if one["metadata"]["labels"].get("app.kubernetes.io/instance") == "one"
    }


async def _have_roles(world: World, **wanted: str) -> None:
    await world.wait_until(functools.partial(_roles, world), lambda found: found == wanted, 30.0)


async def the_label_follows_the_leader_when_it_stops(world: World) -> None:
    await _make_pods(world)
    first = await _start(world, "a")
    await _have_roles(world, a="leader", b="")
    await _start(world, "b")
    await _have_roles(world, a="leader", b="follower")
    await asyncio.to_thread(first.stop)
    await _have_roles(world, a="follower", b="leader")
    (stranger,) = [
        one for one in await world.listed(_PODS) if one["metadata"]["name"] == "stranger"
    ]
    assert stranger["metadata"]["labels"][_KEY] == "leader"


async def a_killed_leader_loses_the_label_to_the_next(world: World) -> None:
    """Its own process cannot take it off; a Service would send half of the requests to it."""
    await _make_pods(world)
    first = await _start(world, "a")
    await _have_roles(world, a="leader", b="")
    await _start(world, "b")
    await _have_roles(world, a="leader", b="follower")
    await asyncio.to_thread(first.kill)
    await _have_roles(world, a="follower", b="leader")
    # A pod keeps its labels when its container starts anew.
    await _start(world, "a")
    await _have_roles(world, a="follower", b="leader")


async def without_the_setting_no_pod_has_the_label(world: World) -> None:
    await _make_pods(world)
    await world.leads(
        await world.start_operator(name="a", env={"POD_NAMESPACE": OPERATOR_NAMESPACE})
    )
    await asyncio.sleep(1.5)
    assert await _roles(world) == {"a": "", "b": ""}


ALL = (
    the_label_follows_the_leader_when_it_stops,
    a_killed_leader_loses_the_label_to_the_next,
    without_the_setting_no_pod_has_the_label,
)
