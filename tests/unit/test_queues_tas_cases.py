"""Workloads go where Kueue puts them: its cases of topology-aware placement, from the objects to what is written on Workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.api.door.workload_decisions import Admit
from scheduler.config import parse_config
from scheduler.engine.allowance import Unlimited
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.queues import Queues
from scheduler.simulate.situation import make_engine, prepare
from tests.unit.test_queues_domains import HOSTS
from tests.unit.test_queues_places import API, make_flavor, make_queue

Json = dict[str, Any]
_RESOURCES = {"cpu": "cpu", "memory": "memory", "gpu": "nvidia.com/gpu"}
_CASES: list[Json] = yaml.safe_load(
    (Path(__file__).parents[1] / "oracles/tas_cases.yaml").read_text(encoding="utf-8")
)


def _can_be_written(case: Json) -> bool:
    """Whether objects can say it: the gates for scores and against ``mixed`` are no settings, and not all leaders are allowed."""
    return not case.get("scores") and all(
        one.get("mixed", True)
        and not ("leader" in one and (one.get("slices") or one.get("unconstrained")))
        for one in case["asks"]
    )


@pytest.mark.parametrize(
    "case", [pytest.param(one, id=one["name"]) for one in _CASES if _can_be_written(one)]
)
def test_workloads_go_where_kueue_puts_them(case: Json) -> None:
    balances = any(one.get("balanced") for one in case["asks"])
    config = parse_config({"groups": {"kueueBalancedPlacement": balances}})
    inventory = prepare(list(_list_objects(case)), Changes(), strict=True).inventory
    engine = make_engine(inventory, config, only_ours=False)
    queues = Queues(engine, inventory.queueing, inventory.pods)
    found: dict[str, Json] = {}
    time = 0.0
    while decisions := [one for one in engine.decide(time, Unlimited()).quotas if isinstance(one, Admit)]:  # fmt: skip
        time += 1.0
        for one in decisions:
            found[one.key] = {
                given.name: dict(given.domains.domains)
                for given in one.sets
                if given.domains is not None
            }
            queues.carry_out(one, time)
    assert found == dict(_list_wanted(case))


def _list_wanted(case: Json) -> Iterator[tuple[str, Json]]:
    """Yield which workloads get quota, and where their pods go; of hosts only the names are written."""
    has_hosts = case["levels"][-1] == "host"

    def name(path: str) -> tuple[str, ...]:
        values = tuple(path.split("/"))
        return values[-1:] if has_hosts else values

    for i, ask in enumerate(case["asks"]):
        if "want" in ask:
            domains = {"workers": {name(path): n for path, n in ask["want"].items()}}
            if "leader" in ask:
                domains["leader"] = {name(ask["leader_at"]): 1}
            yield f"team/w{i}", domains


def _list_objects(case: Json) -> Iterator[Json]:
    for path, free in case["nodes"].items():
        yield _make_node(case["levels"], path, free)
    levels = [{"nodeLabel": _name_level(level)} for level in case["levels"]]
    yield {"apiVersion": API, "kind": "Topology", "metadata": {"name": "levels"}, "spec": {"levels": levels}}  # fmt: skip
    yield make_flavor("all", "all", "levels")
    queue, local = make_queue("a", {"all": 1000})
    offered = [{"name": name, "nominalQuota": 1000} for name in _RESOURCES.values()]
    queue["spec"]["resourceGroups"] = [
        {"coveredResources": [*_RESOURCES.values()], "flavors": [{"name": "all", "resources": offered}]}
    ]  # fmt: skip
    yield queue
    yield local
    for i, ask in enumerate(case["asks"]):
        yield _make_workload(i, ask)


def _name_level(level: str) -> str:
    return HOSTS if level == "host" else level


def _make_node(levels: list[str], path: str, free: Mapping[str, int]) -> Json:
    name = path.replace("/", "-").lower()
    labels = {HOSTS: name, "pool": "all"}
    labels |= dict(zip(map(_name_level, levels), path.split("/"), strict=False))
    offered = {_RESOURCES.get(one, one): str(n) for one, n in free.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": offered},
    }


def _make_workload(number: int, ask: Json) -> Json:
    """A workload whose turn comes after those with lower numbers."""
    request: Json = {
        mode: _name_level(ask[mode]) for mode in ("required", "preferred") if mode in ask
    }
    if ask.get("unconstrained"):
        request["unconstrained"] = True
    layers = [{"topology": _name_level(level), "size": n} for level, n in ask.get("slices", ())]
    if len(layers) == 1:
        request |= {"podSetSliceRequiredTopology": layers[0]["topology"], "podSetSliceSize": layers[0]["size"]}  # fmt: skip
    elif layers:
        request["podsetSliceRequiredTopologyConstraints"] = layers
    sets = [_make_set("workers", ask["count"], ask["pod"], request)]
    if "leader" in ask:
        request["podSetGroupName"] = "together"
        sets.append(_make_set("leader", 1, ask["leader"], request))
    return {
        "apiVersion": API,
        "kind": "Workload",
        "metadata": {
            "name": f"w{number}",
            "namespace": "team",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"queueName": "a", "priority": -number, "podSets": sets},
    }


def _make_set(name: str, count: int, asked: Mapping[str, int], request: Json) -> Json:
    amounts = {_RESOURCES[one]: str(n) for one, n in asked.items() if one in _RESOURCES}
    container = {"name": "main", "resources": {"requests": amounts, "limits": amounts}}
    template = {"spec": {"schedulerName": "evenkeel", "containers": [container]}}
    return {"name": name, "count": count, "template": template, "topologyRequest": request}
