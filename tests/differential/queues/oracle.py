"""Kueue on a real API server that holds one world at a time."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import msgspec

from tests.controlplane import objects, plane
from tests.differential.queues import jobs, slices
from tests.differential.queues.outcomes import Eviction, Outcome, StepOutcome
from tests.differential.queues.program import Program, Seen, start_plane
from tests.differential.queues.worlds import (
    API,
    NAMESPACE,
    ROUNDS_AFTER,
    Step,
    World,
    time_of,
    write_time,
)

Json = dict[str, Any]

WORKLOADS = f"/apis/{API}/namespaces/{NAMESPACE}/workloads"
# A step in which so many rounds evict somebody will not end by itself.
MOST_ROUNDS = 8
_STORED = "/registry/kueue.x-k8s.io/"
_POLL_SECONDS = 0.03
# All is quiet once nothing has changed for so long; for longer, if Kueue has workloads in its queues that should not be.
_STABLE_SECONDS, _UNSURE_SECONDS = 0.12, 2.0
_GIVE_UP_SECONDS = 60.0
_TOLD = ("QuotaReserved", "Admitted", "Evicted", "Preempted", "Requeued", "Finished")


class _State(NamedTuple):
    """What may change while the scheduler is at work."""

    workloads: dict[str, Json]
    seen: Seen

    @property
    def standing(self) -> dict[str, Json]:
        """What of it comes to rest; of one that is tried for ever Kueue tells now this reason and now that."""
        return {
            name: {
                "admission": one.get("status", {}).get("admission"),
                "active": one["spec"].get("active", True),
                **{kind: jobs.is_true(one, kind) for kind in _TOLD},
            }
            for name, one in self.workloads.items()
        }

    def changed_since(self, other: _State) -> bool:
        """Whether it is not the same as before."""
        return (self.standing, self.seen.pending, self.seen.parked) != (
            other.standing,
            other.seen.pending,
            other.seen.parked,
        )

    @property
    def n_waiting(self) -> int:
        """How many workloads must be in a queue."""
        return sum(
            one["spec"].get("active", True)
            and not jobs.is_true(one, "QuotaReserved")
            and not jobs.is_true(one, "Finished")
            for one in self.workloads.values()
        )


class Oracle:
    """A control plane on which Kueue is started anew for each world; ``start`` makes one."""

    def __init__(
        self, control: plane.ControlPlane, program: Program, session: aiohttp.ClientSession
    ) -> None:
        self._control, self._program, self._session = control, program, session

    async def ask(self, world: World, *, patiently: bool = False) -> Outcome:
        """What becomes of a world.

        Args:
            world: what is there, and what happens.
            patiently: wait twice as long for what may come yet.

        Raises:
            CallError: the API server refused an object.
            EndedError: Kueue has ended by itself.
            TimeoutError: Kueue did not come to rest.
        """
        await self._clear()
        for one in world.objects:
            await self._call("POST", objects.collection(one), one)
        try:
            await asyncio.to_thread(self._program.start, world.settings)
            await self._wait_for_queues()
            asked = _Asked(self, world, 2.0 if patiently else 1.0)
            return await asked.answer()
        finally:
            self._program.kill()

    async def _clear(self) -> None:
        """Nothing of the last world is left; with Kueue gone, nobody would take finalizers away."""
        for prefix in (_STORED, "/registry/events/"):
            self._control.empty_store(prefix)
        plurals = ("workloads", "localqueues", "clusterqueues", "cohorts", "resourceflavors")
        for plural in (*plurals, "workloadpriorityclasses"):
            while (await self._call("GET", f"/apis/{API}/{plural}"))["items"]:
                await asyncio.sleep(_POLL_SECONDS)

    async def _wait_for_queues(self) -> None:
        """Return once each queue says whether it is active: a workload that comes before is told that it has none."""
        while True:
            queues = [
                one
                for plural in ("clusterqueues", "localqueues")
                for one in (await self._call("GET", f"/apis/{API}/{plural}"))["items"]
            ]
            if all(jobs.find_condition(one, "Active") for one in queues):
                return
            await self._program.look()  # if it has ended, nobody will say anything
            await asyncio.sleep(_POLL_SECONDS)

    async def create(self, workload: Json) -> None:
        """Create it with the uid and the time of creation that it says, which the API server would choose itself."""
        made = await self._call("POST", f"{WORKLOADS}?dryRun=All", workload)
        wanted = workload["metadata"]
        made["metadata"] |= {key: wanted[key] for key in ("uid", "creationTimestamp")}
        key = f"{_STORED}workloads/{NAMESPACE}/{wanted['name']}"
        await asyncio.to_thread(self._control.put_into_store, key, made)

    async def patch(self, path: str, change: Json) -> None:
        """Merge a change into an object."""
        await self._call("PATCH", path, change)

    async def read(self) -> _State:
        """All workloads by name, and what the gate sees."""
        found = await self._call("GET", WORKLOADS)
        return _State(
            {one["metadata"]["name"]: one for one in found["items"]}, await self._program.look()
        )

    async def open_gate(self, now: int) -> None:
        """Begin a round."""
        await self._program.open_gate(now)

    async def close_gate(self) -> None:
        """End it."""
        await self._program.close_gate()

    async def _call(self, method: str, path: str, body: object = None) -> Json:
        return dict(msgspec.json.decode(await objects.call(self._session, method, path, body)))


class _Asked:
    """One world, while it is asked about."""

    def __init__(self, oracle: Oracle, world: World, patience: float) -> None:
        self._oracle, self._world, self._patience = oracle, world, patience
        self._names: dict[str, str] = {}
        self._now = 0
        self._cycles = _count_cycles(world)

    async def answer(self) -> Outcome:
        found: list[StepOutcome] = []
        for number, step in enumerate(self._world.steps):
            found.append(await self._take(number, step))
            if found[-1].is_endless:
                break
        return Outcome(found)

    async def _take(self, number: int, step: Step) -> StepOutcome:
        self._now = time_of(number, ROUNDS_AFTER)
        await self._apply(step)
        evictions = await self._settle(0)
        for round_ in range(1, MOST_ROUNDS + 1):
            self._now = time_of(number, ROUNDS_AFTER + round_)
            await self._oracle.open_gate(self._now)
            await self._wait(_is_idle)
            await self._oracle.close_gate()
            evicted = await self._settle(round_)
            evictions += evicted
            if not evicted:
                break
        state = await self._oracle.read()
        fates = {name: jobs.read_fate(one) for name, one in sorted(state.workloads.items())}
        return StepOutcome(fates, evictions, is_endless=bool(evicted))

    async def _apply(self, step: Step) -> None:
        there = (await self._oracle.read()).workloads
        self._names |= {one["metadata"]["uid"]: name for name, one in there.items()}
        self._names |= {one["metadata"]["uid"]: one["metadata"]["name"] for one in step.created}
        for name in step.finished:
            if jobs.is_running(there[name]):
                done = jobs.finish(there[name], write_time(self._now))
                await self._oracle.patch(f"{WORKLOADS}/{name}/status", done)
        for name in step.stopped:
            if not jobs.is_true((await self._oracle.read()).workloads[name], "Finished"):
                await self._oracle.patch(f"{WORKLOADS}/{name}", {"spec": {"active": False}})
        for name, counts in step.scaled:
            if not jobs.is_true(there[name], "Finished"):
                pod_sets = slices.scale(there[name]["spec"]["podSets"], counts)
                await self._oracle.patch(f"{WORKLOADS}/{name}", {"spec": {"podSets": pod_sets}})
        for one in step.changed:
            path = f"{objects.collection(one)}/{one['metadata']['name']}"
            await self._oracle.patch(path, {"spec": one["spec"]})
        for one in step.created:
            await self._oracle.create(one)

    async def _settle(self, round_: int) -> list[Eviction]:
        """Behind the closed gate let go whoever is evicted, until nobody is; return them all."""
        found: list[Eviction] = []
        while True:
            state = await self._wait(_is_known)
            evicted = [one for one in state.workloads.values() if jobs.must_let_go(one)]
            if not evicted:
                return sorted(found)
            for one in evicted:
                found.append(jobs.read_eviction(one, round_, self._names))
                path = f"{WORKLOADS}/{one['metadata']['name']}/status"
                await self._oracle.patch(path, jobs.let_go(one, write_time(self._now)))

    async def _wait(self, is_done: Callable[[_Rest], bool]) -> _State:
        """Return once nothing changes any more."""
        began = time.monotonic()
        state = await self._oracle.read()
        changed, looked, cycles = began, began, state.seen.cycles
        while True:
            last = state
            await asyncio.sleep(_POLL_SECONDS)
            state, now = await self._oracle.read(), time.monotonic()
            if state.changed_since(last):
                changed, cycles = now, state.seen.cycles
            if state.seen.cycles != last.seen.cycles:
                looked = now
            seconds = ((now - changed) / self._patience, (now - looked) / self._patience)
            n_cycles = (state.seen.cycles - cycles) / self._patience
            if is_done(_Rest(state, *seconds, n_cycles > self._cycles)):
                return state
            if now - began > _GIVE_UP_SECONDS:
                raise TimeoutError(f"world {self._world.seed} does not come to rest")


class _Rest(NamedTuple):
    """For how long nothing has changed.

    Attributes:
        state: what has not changed.
        seconds: since it was another.
        idle: seconds since the scheduler last looked for heads.
        is_done: it has looked so often since anything changed that each head was tried with each flavor.
    """

    state: _State
    seconds: float
    idle: float
    is_done: bool


def _is_known(rest: _Rest) -> bool:
    """Whether Kueue has seen all that happened: each workload without quota is in a queue."""
    n_pending = sum(rest.state.seen.pending.values())
    is_whole = n_pending == rest.state.n_waiting
    return rest.seconds > (_STABLE_SECONDS if is_whole else _UNSURE_SECONDS)


def _is_idle(rest: _Rest) -> bool:
    """Whether the scheduler has nothing to do, or does the same again and again.

    A head that waits for its victims, or for others in strict order, is tried for ever; meanwhile each other queue gets
    through what waits in it, and another is parked every few cycles.
    """
    return rest.seconds > _STABLE_SECONDS and (rest.idle > _STABLE_SECONDS or rest.is_done)


def _count_cycles(world: World) -> int:
    """How many cycles a head may need until it is parked: as long as it has flavors left to try, it stays.

    The flavors of each group of resources are gone through by themselves, and it is parked when all are through at once.
    """
    sizes = [
        [len(group["flavors"]) for group in one["spec"]["resourceGroups"]]
        for one in world.objects
        if one["kind"] == "ClusterQueue"
    ]
    return 2 + max(math.lcm(*of) for of in sizes)


@asynccontextmanager
async def start() -> AsyncIterator[Oracle]:
    """A control plane of its own, on which Kueue runs while a world is asked about."""
    with start_plane() as control:
        async with objects.connect(control) as session, aiohttp.ClientSession() as plain:
            yield Oracle(control, Program(control, plain), session)
