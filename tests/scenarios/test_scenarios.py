"""Cluster in, placement out: every document of the YAML files beside this one is a scenario.

claim: what a user may rely on
config: {...}         settings, as in the configuration file
nodes:                keywords of tests.make.node
  - {name: a, cpu: 4, gpus: 2, taints: [[key, value, NoSchedule]]}
  - {name: b, cards: 4}           with ``cards`` those of tests.make.hami_node: 4 T4s, b-GPU-0..3,
  - {name: c, cards: [{mib: 8}]}  or one by one, numbered c-GPU-0.. where uuid and index are not given
pods:                 keywords of tests.make.pod, in order of arrival
  - {name: p, cpu: 1, copies: 3}  ``copies`` are p-0, p-1, p-2; ``node: a`` runs there already,
                                  ``holds`` is what a running pod has in HAMi's annotation
objects: [...]        anything else, as kubectl prints it
expect:
  p: a                the node
  q: {node: b, cards: [b-GPU-3], message: ...}   any of these; node null is pending
  r: {victims: [p], nominated: a}   who has to go for it, by name and the most important first, and from where
  nodes: 2            how many nodes, and cards of all, the pods of the scenario came to
  cards: 2
  order: [q, p]       in which order they were decided
  groups:             what is said of groups by their names; ``victims`` are those of all members, by name
    g: {state: waits, members: 3, domain: {label: rack, values: [a]}, victims: [p]}
  error: text         strict, the input is refused so
steps:                in place of ``expect``: what happens one after the other, see ``in_time``
  - after: 5          seconds since the step before, 60 unless said
    nodes, pods, objects: [...]   that come, or are changed: whole, as above
    gone: {Pod: [p], Node: [a]}
    leaving: [p]      is being deleted, and is still there
    holds: [p]        whose bind is under way until it is said to be over: by ``binds: [p]`` or ``fails: [p]``
    expect: {p: a, q: {node: null, victims: [r], nominated: b, message: ...}}
    first: [q, p]     those that got a node in the step, in their order
    rest: [r]         was not looked at again, as nothing in the step could help it
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from scheduler import config
from scheduler.api import names, wire
from scheduler.simulate import InputProblem, schedule
from tests import make
from tests.scenarios import in_time

Json = dict[str, Any]
HERE = Path(__file__).parent
OBJECTS = {"nodes", "pods", "objects"}
WORDS = {"claim", "config", "expect", "steps"} | OBJECTS


def scenarios() -> Iterator[Any]:
    for path in sorted(HERE.glob("*.yaml")):
        for scenario in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            yield pytest.param(scenario, id=f"{path.stem}: {scenario['claim']}")


def node(figures: Json) -> wire.Node:
    cards = figures.get("cards")
    if cards is None:
        return make.node(**figures)
    if isinstance(cards, list):
        numbered = [
            {"uuid": f"{figures['name']}-GPU-{i}", "index": i} | card
            for i, card in enumerate(cards)
        ]
        figures = figures | {"cards": [make.card(**card) for card in numbered]}
    return make.hami_node(**figures)


def pods(figures: Json) -> Iterator[wire.Pod]:
    copies, holds = figures.get("copies"), figures.get("holds")
    figures = {k: v for k, v in figures.items() if k not in {"copies", "holds"}}
    for key in ("containers", "init_containers"):
        if key in figures:
            figures[key] = [make.container(**one) for one in figures[key]]
    if holds:
        held = {names.HAMI_NODE: figures["node"], names.HAMI_ALLOCATED: holds}
        figures["annotations"] = figures.get("annotations", {}) | held
    for i in range(copies or 1):
        name = f"{figures['name']}-{i}" if copies else figures["name"]
        yield make.pod(**figures | {"name": name})


def objects_of(given: Json) -> list[Json]:
    built = [node(one) for one in given.get("nodes", ())]
    running = [pod for one in given.get("pods", ()) for pod in pods(one)]
    objects = [msgspec.to_builtins(thing) | {"kind": "Node"} for thing in built]
    objects += [msgspec.to_builtins(thing) | {"kind": "Pod"} for thing in running]
    return objects + list(given.get("objects", ()))


@pytest.mark.parametrize("scenario", list(scenarios()))
def test_scenario(scenario: Json) -> None:
    assert scenario.keys() <= WORDS
    assert ("steps" in scenario) != ("expect" in scenario)
    settings = config.parse_config(scenario.get("config", {}))
    if "steps" in scenario:
        _goes_through(in_time.Town(settings, objects_of(scenario)), scenario["steps"])
        return
    expect, objects = scenario["expect"], objects_of(scenario)
    if error := expect.get("error"):
        with pytest.raises(InputProblem) as caught:
            schedule(objects, config=settings, strict=True)
        assert str(caught.value) == error
        return
    result = schedule(objects, config=settings)
    placed = {pod["name"]: pod for pod in result["pods"]}
    if "nodes" in expect:
        assert len({pod["node"] for pod in placed.values() if pod["node"]}) == expect["nodes"]
    if "cards" in expect:
        devices = {card["id"] for pod in placed.values() for card in pod["devices"]}
        assert len(devices) == expect["cards"]
    if "order" in expect:
        assert list(placed) == expect["order"]
    for name, wanted in expect.get("groups", {}).items():
        (group,) = [one for one in result["groups"] if one["name"] == name]
        victims = {
            victim["name"]
            for pod in result["pods"]
            if pod["group"] == f"{group['kind']} {group['namespace']}/{name}"
            for victim in pod["victims"]
        }
        found = group | {"victims": sorted(victims)}
        assert {key: found[key] for key in wanted} == wanted, name
    for name in expect.keys() - {"nodes", "cards", "order", "groups"}:
        _holds(placed[name], expect[name])


def _goes_through(town: in_time.Town, steps: list[Json]) -> None:
    for i, step in enumerate(steps):
        assert step.keys() <= in_time.WORDS | OBJECTS
        town.step(step, objects_of(step))
        for name, expected in step.get("expect", {}).items():
            wanted = expected if isinstance(expected, dict) else {"node": expected}
            found = town.found(name)
            assert {key: found[key] for key in wanted} == wanted, f"step {i}: {name}"
        if "first" in step:
            assert town.names(town.binds) == step["first"], f"step {i}"
        for name in step.get("rest", ()):
            assert not town.was_looked_at(name), f"step {i}: {name}"


def _holds(pod: Json, wanted: Json | str | None) -> None:
    if not isinstance(wanted, dict):
        wanted = {"node": wanted}
    assert wanted.keys() <= {
        "node",
        "cards",
        "message",
        "annotations",
        "victims",
        "nominated",
        "group",
    }
    found: Json = {
        "node": pod["node"],
        "message": pod["message"],
        "annotations": pod["annotations"],
    }
    found["cards"] = [card["id"] for card in pod["devices"]]
    found["victims"] = [victim["name"] for victim in pod["victims"]]
    found["nominated"], found["group"] = pod["nominated"], pod["group"]
    assert {key: found[key] for key in wanted} == wanted
