"""A live run places exactly as the simulator does: one core, two shells."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from scheduler.api import names
from scheduler.embedded.agents import cards, nodes
from scheduler.replay import objects, traces
from scheduler.replay import run as engine
from scheduler.replay.experiment import RunOptions, Trace, Workload
from tests.operator.manifests import pod
from tests.operator.world import PODS, World

Json = dict[str, Any]
_OPENB = Path(__file__).parents[2] / "bench" / "data" / "openb"
_NODES, _FIRST, _LEAVING, _LATER = 30, 300, 100, 100


def _story() -> tuple[Trace, Workload]:
    """300 pods of the trace on 30 nodes of all sizes; then 100 of them leave and 100 others come."""
    whole = traces.read_trace(_OPENB, "gpuspec33")
    rng = np.random.default_rng(7)
    picked = sorted(rng.choice(len(whole.nodes), _NODES, replace=False).tolist())
    trace = Trace("30 nodes of openb", tuple(whole.nodes[i] for i in picked), whole.pods)
    arrivals = _FIRST + _LATER
    lifetime = np.full(arrivals, math.inf)
    # All leave between the last of the first pods and the first of the others.
    lifetime[rng.choice(_FIRST, _LEAVING, replace=False)] = 0.5
    at = np.arange(arrivals, dtype=float)
    lifetime[lifetime < 1] = _FIRST - 0.5 - at[lifetime < 1]
    return trace, Workload(
        order=rng.permutation(_NODES),
        pod=rng.integers(len(trace.pods), size=arrivals),
        at=at,
        lifetime=lifetime,
    )


def _node(trace: Trace, index: int, place: int) -> Json:
    seen = objects.make_node(trace.nodes[index], place)
    registered = json.loads((seen.metadata.annotations or {})[names.HAMI_REGISTER])
    hardware = cards.Hardware(
        cards=tuple(
            cards.Card(
                id=card["id"],
                index=card.get("index", 0),
                count=card["count"],
                devmem=card["devmem"],
                type=card["type"],
            )
            for card in registered
        )
    )
    bare: Json = nodes.make_plain_node(seen.metadata.name)
    quantities = {key: str(n) for key, n in (seen.status.allocatable or {}).items()}
    bare["status"]["capacity"].update(quantities)
    bare["status"]["allocatable"].update(quantities)
    return nodes.add_cards(bare, hardware)


def _pod(trace: Trace, which: int, name: str) -> Json:
    spec, annotations = objects.make_spec(trace.pods[which], "evenkeel")
    limits = msgspec.to_builtins(spec.containers)[0]["resources"]["limits"]
    extended = {key: n for key, n in limits.items() if "/" in key}
    return pod(name, requests=limits, limits=extended, annotations=annotations)


async def a_live_run_places_exactly_as_the_simulator_does(world: World) -> None:
    trace, workload = _story()
    replayed = engine.run_experiment(trace, workload, RunOptions("keel", "seen", False, 0, False))
    await world.create(
        *(_node(trace, index, place) for place, index in enumerate(workload.order.tolist()))
    )
    # Without the lease of an earlier run, which would tell how fast pods left there.
    await world.start_operator(lease=False)
    seen: list[str] = []
    async with world.agents():
        for i, which in enumerate(workload.pod.tolist()):
            if i == _FIRST:
                for gone in np.flatnonzero(np.isfinite(workload.lifetime)).tolist():
                    if seen[gone]:
                        await world.delete(f"{PODS}/p{gone}")
            await world.create(_pod(trace, which, f"p{i}"))
            seen.append(await _decided(world, f"p{i}"))
            if not seen[-1]:
                await world.delete(f"{PODS}/p{i}")
    expected = [trace.nodes[n].name if n >= 0 else "" for n in replayed.node.tolist()]
    found = [name.partition("-")[2] for name in seen]
    differing = {
        i: pair for i, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1]
    }
    assert not differing, f"live and simulated, by arrival: {differing}"
    # The run must show something: the demand was learnt on the way, nodes filled up, and some pods fitted
    # nowhere.
    assert "" in expected
    assert len(set(expected)) > _NODES // 2


async def _decided(world: World, name: str) -> str:
    """The pod's node, empty when there is none for it."""
    while True:
        found = await world.pod(name)
        if node := found["spec"].get("nodeName"):
            return str(node)
        conditions = found["status"].get("conditions", [])
        # A bind that failed is tried again, and says so in the same condition with a reason of its own.
        if any(
            c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions
        ):
            return ""
        await asyncio.sleep(0.005)


ALONE = [a_live_run_places_exactly_as_the_simulator_does]
