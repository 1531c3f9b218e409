"""KAI's queues beside the cases: mistakes, settings, shares of cards, budgets, and what is explained."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given as given_any
from hypothesis import strategies as st
from typer.testing import CliRunner

from scheduler import cli
from scheduler.api import kai, wire
from scheduler.api.queues import configuration
from scheduler.api.queues.kai import UNITS, UNLIMITED, read_queue, write_in_units
from scheduler.api.queues.settings import KaiSettings
from scheduler.errors import BadInput
from tests import make
from tests.prose import unwrapped
from tests.unit.kai_worlds import INFERENCE, Job, Queue, decide, make_objects

Json = dict[str, Any]


@given_any(st.integers(0, 2), st.integers(-(10**20), 10**20))
def test_amounts_are_written_exactly_as_plain_decimals(resource: int, amount: int) -> None:
    text = write_in_units(resource, amount)
    assert re.fullmatch(r"-?[0-9]+(\.[0-9]*[1-9])?", text)
    assert Fraction(text) * UNITS[resource] == amount


def test_it_is_explained_why_a_queue_holds_a_pod() -> None:
    queues = {"a": Queue(1, limit=1)}
    jobs = {"x": Job("a", on=["n1"]), "y": Job("a"), "z": Job("none"), "w": Job("")}
    items = make_objects({"n1": 4}, queues, jobs)
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})

    def explain(name: str, *more: str) -> str:
        arguments = ["explain", "pod", f"default/{name}", "-f", "-", *more]
        return CliRunner().invoke(cli.app, arguments, input=given).output

    texts = {
        "y": "OverLimit: queue a is limited to 1 of gpu: 1 are held, and 1 more are wanted",
        "z": "QueueDoesNotExist: there is no queue none",
    }
    for name, text in texts.items():
        printed = explain(name)
        assert f"Pod default/{name} is held back." in printed
        assert text in unwrapped(printed)
        assert "Tried now" not in printed
    found = json.loads(explain("w", "-o", "json"))
    assert (found["state"], found["queue"]["heldBy"]) == ("fits", None)


def test_priority_alone_takes_no_place_in_queues_and_pods_without_one_go_by_it() -> None:
    """A pod in no queue takes the place of pods of lower priority, in queues or not; a pod in a queue does not."""
    jobs = {"a0": Job("a", on=["n1"]), "free": Job("", on=["n2"])}
    queues = {"a": Queue(1), "b": Queue(0, weight=0)}
    found = decide(
        {"n1": 1, "n2": 1}, queues, {**jobs, "x": Job("b", priority=INFERENCE, stays=False)}
    )
    assert (found.gone, found.placed) == (set(), {})
    found = decide({"n1": 1, "n2": 1}, queues, {**jobs, "x": Job("", priority=INFERENCE)})
    assert len(found.gone) == 1


def test_the_class_of_a_pod_group_counts_in_its_queue_whatever_priority_its_pods_have() -> None:
    """KAI's pod grouper writes a class on each PodGroup, and nothing on the pods."""
    low = Job("a", n=2, on=["n1", "n1"], priority=0, of_class="train")
    high = Job("a", n=2, priority=0, of_class="build-preemptible")
    found = decide({"n1": 2}, {"a": Queue(2)}, {"low": low, "high": high})
    assert found.gone == {"low-0", "low-1"}
    assert not decide({"n1": 2}, {"a": Queue(2)}, {"low": low, "high": replace(low, on=[])}).gone
    # Where no queue is, the pods have only their own priority.
    groups = {"low": replace(low, queue=""), "high": replace(high, queue="")}
    found = decide({"n1": 2}, {}, groups)
    assert (found.gone, found.placed) == (set(), {})


def test_what_violates_a_budget_goes_only_where_nobody_else_can() -> None:
    labels = {"app": "kept"}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "kept", "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": 0},
    }
    jobs = {
        "old": Job("a", on=["n1"], age=99),
        "young": Job("a", on=["n1"], age=1, labels=labels),
        "x": Job("b"),
    }
    queues = {"a": Queue(1), "b": Queue(1)}
    assert decide({"n1": 2}, queues, jobs).gone == {"young"}
    assert decide({"n1": 2}, queues, jobs, [budget]).gone == {"old"}
    kept = {**jobs, "old": Job("a", on=["n1"], age=99, labels=labels)}
    assert decide({"n1": 2}, queues, kept, [budget]).gone == {"young"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"priority": "high"}, "spec.priority"),
        ({"resources": 3}, "spec.resources"),
        ({"resources": {"gpu": {"quota": -2}}}, "spec.resources.gpu.quota"),
        ({"resources": {"cpu": {"limit": "4"}}}, "spec.resources.cpu.limit"),
        ({"resources": {"cpu": {"limit": True}}}, "spec.resources.cpu.limit"),
        ({"resources": {"memory": {"quota": float("nan")}}}, "spec.resources.memory.quota"),
        ({"resources": {"memory": {"quota": float("inf")}}}, "spec.resources.memory.quota"),
        ({"resources": {"gpu": {"overQuotaWeight": -1}}}, "spec.resources.gpu.overQuotaWeight"),
        ({"parentQueue": 7}, "spec.parentQueue"),
        ({"reclaimMinRuntime": "soon"}, "spec.reclaimMinRuntime"),
        ({"preemptMinRuntime": 5}, "spec.preemptMinRuntime"),
    ],
)
def test_a_mistake_of_a_queue_names_the_field(spec: Json, field: str) -> None:
    with pytest.raises(BadInput) as error:
        read_queue(kai.Queue(metadata=wire.Meta(name="q"), spec=spec))
    assert str(error.value).startswith(f"{field}: ")


def test_what_is_not_written_of_a_queue_is_nothing() -> None:
    read = read_queue(kai.Queue(metadata=wire.Meta(name="q"), spec={}))
    assert (read.quota, read.limit, read.weights, read.priority) == (
        (0,) * 3,
        (0,) * 3,
        (0.0,) * 3,
        100,
    )
    spec = {"resources": {"gpu": {"quota": 1.5, "limit": -1}, "memory": {"quota": 2}}}
    read = read_queue(kai.Queue(metadata=wire.Meta(name="q"), spec=spec))
    assert read.quota == (0, 2_000_000, 1_500_000)
    assert read.limit == (0, 0, UNLIMITED)
    zero = {"reclaimMinRuntime": "0s", "preemptMinRuntime": "1m30s"}
    read = read_queue(kai.Queue(metadata=wire.Meta(name="q"), spec=zero))
    assert (read.reclaim_seconds, read.preempt_seconds) == (0.0, 90.0)


def test_shares_of_cards_count_as_the_part_that_they_hold() -> None:
    node = make.raw(make.hami_node(name="n1", cards=make.cards(count=2)))
    nodes = {"n1": {"apiVersion": "v1", "kind": "Node", **node}}
    jobs = {f"x{i}": Job("a", share=50) for i in range(4)}
    found = decide(nodes, {"a": Queue(1, limit=1.5)}, jobs)
    assert set(found.placed) == {"x0", "x1", "x2"}
    assert "limited to 1.5 of gpu: 1.5 are held, and 0.5 more are wanted" in found.messages["x3"]
    stays = {f"x{i}": Job("a", share=50, stays=True) for i in range(4)}
    assert set(decide(nodes, {"a": Queue(1)}, stays).placed) == {"x0", "x1"}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ("yes", "queues.kai"),
        ({"kvalue": 1}, "queues.kai"),
        ({"kValue": -1}, "queues.kai.kValue"),
        ({"saturationMultiplier": 0.5}, "queues.kai.saturationMultiplier"),
        ({"usageHalfLifeTime": "week"}, "queues.kai.usageHalfLifeTime"),
        ({"reclaimMinRuntimeMethod": "none"}, "queues.kai.reclaimMinRuntimeMethod"),
    ],
)
def test_a_mistake_of_the_settings_names_the_field(given: Any, field: str) -> None:
    with pytest.raises(BadInput) as error:
        configuration.read_settings({"kai": given})
    assert str(error.value).startswith(field)


def test_settings_of_queues() -> None:
    assert configuration.read_settings({}).kai is None
    assert configuration.read_settings({"kai": True}).kai == KaiSettings()
    read = configuration.read_settings({"kai": {"usage": True, "reclaimMinRuntimeMethod": "queue"}})
    assert read.kai == KaiSettings(half_life_seconds=168 * 3600.0, by_common=False)
