"""Schedulers with a mistake, on an engine: the ledger of the soak finds what they do, and nothing of one without a mistake."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.devices import answers
from scheduler.embedded.agents import cards
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.questions.nodes import CardDrivers
from tests.operator.manifests import vgpu
from tests.soak.fleet import make_fleet
from tests.soak.ledger import Ledger

Json = dict[str, Any]
_NODES = {name: make_fleet().nodes[name] for name in ("share-1", "mig-0")}


def _start(**factors: int) -> Engine:
    """An engine that believes that cards of a node without MIG have so many times of a figure."""
    engine = Engine(Config())
    engine.handle(events.ListBegins("Node"), 0.0)
    for node in copy.deepcopy(list(_NODES.values())):
        notes = node["metadata"]["annotations"]
        told = json.loads(notes[cards.REGISTER])
        for one in told:
            one |= {key: one[key] * factor for key, factor in factors.items() if "mode" not in one or one["mode"] != "mig"}  # fmt: skip
        notes[cards.REGISTER] = json.dumps(told)
        node["status"]["allocatable"]["nvidia.com/gpu"] = "1000"
        engine.handle(events.Seen(msgspec.convert(node, wire.Node, strict=False)), 0.0)
    engine.handle(events.ListEnds("Node"), 0.0)
    for scheduler in (names.SCHEDULER, ""):
        engine.handle(events.ListBegins("Pod", scheduler), 0.0)
        engine.handle(events.ListEnds("Pod", scheduler), 0.0)
    return engine


def _place(engine: Engine, name: str, **more: Any) -> Json:
    """A pod as it is once the engine has placed it."""
    made = vgpu(name, **more)
    made["metadata"] |= {"uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
    made["status"] = {"phase": "Pending"}
    engine.handle(events.Seen(msgspec.convert(made, wire.Pod, strict=False)), 1.0)
    (bind,) = engine.decide(1.0, Unlimited()).binds
    engine.handle(events.BindDone(bind.uid), 1.0)
    marks = answers.write_answers(engine.ask(CardDrivers()), bind.node, bind.devices, 1)
    made["metadata"]["annotations"] |= marks.annotations
    made["spec"]["nodeName"] = bind.node
    return made


def _judge(*placed: Json) -> str:
    ledger = Ledger({})
    for node in _NODES.values():
        ledger.see_node(node, 0.0)
    for one in placed:
        ledger.see_pod(one, 1.0)
    return " | ".join(ledger.wrongs)


_SHARED, _CUT = ({"annotations": {"nvidia.com/vgpu-mode": mode}} for mode in ("hami-core", "mig"))


@pytest.mark.parametrize(
    ("figure", "asked"), [("devmem", {"mem": 8000}), ("devcore", {"mem": 1, "cores": 60}), ("count", {"mem": 1})]
)  # fmt: skip
def test_a_scheduler_that_counts_a_figure_wrong_is_found(figure: str, asked: Json) -> None:
    def fill(engine: Engine) -> list[Json]:
        n = {"devmem": 2, "devcore": 2, "count": 20}[figure]
        return [_place(engine, f"p{i}", **asked, **_SHARED) for i in range(n)]

    right = fill(_start())
    assert _judge(*right) == ""
    wrong = _start(**{figure: 2})
    more = [*fill(wrong), _place(wrong, "more", **asked, **_SHARED)]
    assert "(sharers, MiB, cores)" in _judge(*more)


@pytest.mark.parametrize("cores", [0, 100])
def test_a_scheduler_that_forgets_a_pod_is_found(cores: int) -> None:
    first, second = (_place(_start(), name, mem=15_000, cores=cores, **_SHARED) for name in "ab")
    assert "are held" in _judge(first, second)
    assert ("one pod's own" in _judge(first, second)) == (cores == 100)


def test_a_scheduler_that_forgets_an_instance_is_found() -> None:
    engine = _start()
    assert _judge(*(_place(engine, name, mem=19_000, **_CUT) for name in "abcd")) == ""
    first, second = (_place(_start(), name, mem=19_000, **_CUT) for name in "ab")
    assert "are on slot" in _judge(first, second)
