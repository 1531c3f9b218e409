"""kube-scheduler with its gates for groups, on a real API server that holds one world at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.controlplane import objects, plane
from tests.differential import oracle
from tests.differential.groups.answers import Condition, GroupAnswer
from tests.differential.groups.worlds import NAMESPACE, OTHER_SCHEDULER, GroupWorld
from tests.differential.scheduler_log import Log
from tests.differential.worlds import NAMESPACES, SCHEDULER, classes

Json = dict[str, Any]

_GATES = ",".join(
    f"{gate}=true"
    for gate in (
        "GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup",
        "PodGroupPreemptionPolicy",
    )
)  # fmt: skip
_FLAGS = (
    f"--feature-gates={_GATES}",
    "--runtime-config=scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true",
    # Without their controllers nobody would take finalizers away, nor the taint of new nodes.
    "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,PodGroupProtection",
)
_GROUPS = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{NAMESPACE}/podgroups"
_COMPOSITES = f"/apis/scheduling.k8s.io/v1alpha3/namespaces/{NAMESPACE}/compositepodgroups"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
# The reason of a condition from before the group came.
_GATED = "SchedulingGated"
# A group that failed is to be tried once.
BACKOFF_SECONDS = 3600
_POLL_SECONDS = 0.04
# An answer is whole once it has been the same for so long; one in which a pod has none, for longer.
_STABLE_SECONDS, _SILENT_SECONDS = 0.2, 0.8


def make_file() -> Json:
    """The configuration that both sides read; what pods like decides on the node."""
    plugins = {
        "multiPoint": {
            "enabled": [{"name": "NodeAffinity", "weight": 50}],
            "disabled": [{"name": "NodeAffinity"}],
        },
    }
    return {
        "percentageOfNodesToScore": 100,
        "podInitialBackoffSeconds": BACKOFF_SECONDS,
        "podMaxBackoffSeconds": BACKOFF_SECONDS,
        "profiles": [
            {"schedulerName": name, "plugins": plugins} for name in (SCHEDULER, OTHER_SCHEDULER)
        ],
    }


class GroupOracle(oracle.Oracle):
    """A running kube-scheduler; ``start`` makes one."""

    spaced = (
        *oracle.Oracle.spaced,
        "/apis/scheduling.k8s.io/v1beta1/namespaces/{}/podgroups",
        "/apis/scheduling.k8s.io/v1alpha3/namespaces/{}/compositepodgroups",
    )

    async def ask_group(self, world: GroupWorld) -> tuple[list[Json], GroupAnswer]:
        """Let a world's group come; return all objects as they were when it did, and what became of it."""
        await self.load(world)
        await self.create(world.groups)
        return await self._let_come(world, world.incoming)

    async def ask_raised(self, world: GroupWorld) -> tuple[list[Json], GroupAnswer]:
        """Raise the minimum of a world's group, and let its late pods come; return as ``ask_group``."""
        path = f"{_GROUPS}/{world.groups[0]['metadata']['name']}"
        policy = {"gang": {"minCount": world.raised}}
        await self.call("PATCH", path, {"spec": {"schedulingPolicy": policy}})
        return await self._let_come(world, world.late)

    async def _let_come(
        self, world: GroupWorld, pods: Sequence[Json]
    ) -> tuple[list[Json], GroupAnswer]:
        # As long as one pod has a gate the whole group waits, and then all of it is tried at once.
        gated, *rest = pods
        await self.call("POST", objects.collection(gated), _with_gate(gated))
        for one in rest:
            await self.call("POST", objects.collection(one), one)
        await asyncio.sleep(_STABLE_SECONDS / 2)
        there = [
            one | {"spec": one["spec"] | {"schedulingGates": []}} if one["kind"] == "Pod" else one
            for one in await self.found(world)
            if one["kind"] not in {"PodGroup", "CompositePodGroup"}
        ]
        path = f"{objects.collection(gated)}/{gated['metadata']['name']}"
        await self.call("PATCH", path, {"spec": {"schedulingGates": []}})
        groups = [
            item | {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
            for path in (_GROUPS, _COMPOSITES)
            for found in [await self.call("GET", path)]
            for item in found["items"]
        ]
        waiting = [one["metadata"]["name"] for one in pods]
        return [*there, *map(_without_status, groups)], await self._wait(waiting)

    async def _wait(self, waiting: list[str]) -> GroupAnswer:
        """Read the answer once it does not change any more."""
        last, since = await self._read(waiting), time.monotonic()
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            answer, now = await self._read(waiting), time.monotonic()
            if answer != last:
                last, since = answer, now
            is_whole = len(answer.nodes) + len(answer.messages) == len(waiting)
            if now - since > (_STABLE_SECONDS if is_whole else _SILENT_SECONDS):
                return answer

    async def _read(self, waiting: list[str]) -> GroupAnswer:
        found = {one["metadata"]["name"]: one for one in (await self.call("GET", _PODS))["items"]}
        mine = {name: found[name] for name in waiting}
        victims = [
            name
            for name, one in found.items()
            if "deletionTimestamp" in one["metadata"] or _condition(one, "DisruptionTarget")
        ]
        pending = {name: one for name, one in mine.items() if "nodeName" not in one["spec"]}
        return GroupAnswer(
            {
                name: one["spec"]["nodeName"]
                for name, one in mine.items()
                if "nodeName" in one["spec"]
            },
            {
                name: said["message"]
                for name, one in pending.items()
                if (said := _condition(one, "PodScheduled")) and said["reason"] != _GATED
            },
            {
                name: node
                for name, one in pending.items()
                if (node := one["status"].get("nominatedNodeName"))
            },
            frozenset(victims),
            {
                one["metadata"]["name"]: Condition(
                    said["status"], said["reason"], said.get("message", "")
                )
                for one in (await self.call("GET", _GROUPS))["items"]
                if (said := _condition(one, "PodGroupInitiallyScheduled"))
            },
        )


def _with_gate(pod: Json) -> Json:
    return pod | {"spec": pod["spec"] | {"schedulingGates": [{"name": "example.com/others"}]}}


def _without_status(group: Json) -> Json:
    return {key: value for key, value in group.items() if key != "status"}


def _condition(found: Json, kind: str) -> Json:
    conditions: list[Json] = found.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == kind), {})


@asynccontextmanager
async def start() -> AsyncIterator[GroupOracle]:
    """A control plane of its own with kube-scheduler."""
    with plane.start(extra_apiserver_flags=_FLAGS) as running:
        gates = f"--feature-gates={_GATES},SchedulerPopFromBackoffQ=false"
        running.start_scheduler(config=make_file(), extra_flags=["-v=4", gates])
        log = Log(running.folder / "kube-scheduler.log")
        async with objects.connect(running) as session:
            found = GroupOracle(log, session)
            spaces = [objects.namespace(name, labels=of) for name, of in NAMESPACES.items()]
            await found.create([*spaces, *classes()])
            yield found
        log.close()
