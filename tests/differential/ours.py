"""The engine's answer on the same objects."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from scheduler import config
from scheduler.api.door import events
from scheduler.api.door.decisions import Free
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.simulate import run
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.claims import WrittenClaims
from scheduler.simulate.situation import find_time, make_engine, prepare
from tests.differential import allocations
from tests.differential.answers import Answer
from tests.differential.features import profiles

Json = dict[str, Any]


def file(seed: int) -> Json:
    """The configuration file of a run, of which kube-scheduler has the same."""
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return kind | profiles.file(seed)


@cache
def settings(seed: int) -> Config:
    """What it says."""
    return config.parse_config(file(seed))


class _NeverFreed(WrittenClaims):
    """Claims that keep their devices: of a pod for which they lose them the first answer counts."""

    def free(self, freed: Free) -> events.Event:
        return events.Seen(self._by_uid[freed.uid])


def answer(objects: Sequence[Json], pod: Json, settings: Config) -> Answer:
    """Where the pod goes among the objects, and what every node says of it."""
    situation = prepare([*objects, pod], Changes(), strict=False)
    simulation = run._Simulation(situation, run.Question(config=settings, with_nodes=True))
    simulation._claims = _NeverFreed(situation.inventory.claiming)
    result = simulation.run(lambda _done, _total: None)
    (row,) = [one for one in result["pods"] if one["name"] == pod["metadata"]["name"]]
    nodes = {name: node for name, node in row.get("nodes", {}).items() if node["feasible"]}
    scores = {
        name: {plugin: points for plugin, points in node["weighted"].items() if points}
        for name, node in nodes.items()
    }
    return Answer(
        row["node"],
        frozenset(nodes),
        scores,
        row["unschedulable"] or "",
        row.get("nominated"),
        frozenset(f"{one['namespace']}/{one['name']}" for one in row["victims"]),
    )


def allocate(objects: Sequence[Json], pod: Json, node: str, settings: Config) -> dict[str, Json]:
    """What the pod's claims have once it is on this node, where it fits."""
    # A node that was promised to a pod comes before all others.
    pod = pod | {"status": pod.get("status", {}) | {"nominatedNodeName": node}}
    situation = prepare([*objects, pod], Changes(), strict=False)
    engine = make_engine(situation.inventory, settings)
    now, uid = find_time(situation.inventory), pod["metadata"]["uid"]
    while True:
        outcome = engine.decide(now, Unlimited(pods=1))
        for bind in outcome.binds:
            if bind.uid == uid:
                assert bind.node == node
                return {
                    one.key[1]: allocations.normal(
                        msgspec.json.decode(one.allocation)
                        if one.is_new
                        else _find_allocation(objects, *one.key)
                    )
                    for one in bind.allotted
                }


def _find_allocation(objects: Sequence[Json], space: str, name: str) -> Json:
    (found,) = (
        one["status"]["allocation"]
        for one in objects
        if one["kind"] == "ResourceClaim"
        and (one["metadata"]["namespace"], one["metadata"]["name"]) == (space, name)
    )
    return dict(found)
