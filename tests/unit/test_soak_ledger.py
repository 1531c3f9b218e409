"""The ledger of the soak on a control plane finds what a scheduler with a mistake would do; it knows nothing of an engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from scheduler.embedded.agents import cards, nodes
from tests.model.mig import A100
from tests.operator.manifests import container, pod
from tests.soak.fleet import make_fleet
from tests.soak.holdings import Device
from tests.soak.ledger import LATE_SECONDS, Ledger

Json = dict[str, Any]
_KEY = "hami.io/vgpu-devices-allocated"
_MIG = "hami.io/vgpu-mig-allocations"


def _make_ledger(**vendors: Json) -> Ledger:
    ledger = Ledger(vendors)
    ledger.see_node(nodes.make_gpu_node("g0", cards=2, split=3), 0.0)
    ledger.see_node(nodes.make_plain_node("n0", cpu="4", resources={"nvidia.com/gpu": "2"}), 0.0)
    return ledger


def _hold(name: str, *records: str, node: str = "g0", phase: str = "Pending", **notes: str) -> Json:
    """A pod with a container for each of the records."""
    text = "".join(f"{record}:;" for record in records)
    written = {_KEY: text, "hami.io/bind-phase": "allocating"} | notes
    made = pod(name, limits={"nvidia.com/gpu": 1}, annotations=written)
    made["metadata"]["uid"] = name
    made["spec"] |= {
        "nodeName": node,
        "containers": [container(f"c{i}", limits={"nvidia.com/gpu": 1}) for i in range(len(records))],
    }  # fmt: skip
    return {**made, "status": {"phase": phase}}


def _use(index: int, mib: int, cores: int, node: str = "g0") -> str:
    return f"{cards.make_card_id(node, index)},NVIDIA,{mib},{cores}"


def _find(ledger: Ledger, *pods: Json) -> str:
    for one in pods:
        ledger.see_pod(one, 100.0)
    return " | ".join(ledger.wrongs)


def test_what_fits_is_right() -> None:
    given = [_hold(f"p{i}", _use(0, 5120, 30)) for i in range(3)]
    assert _find(_make_ledger(), *given, _hold("own", _use(1, 15_360, 100))) == ""


@pytest.mark.parametrize(
    ("uses", "wrong"),
    [
        ([(8000, 10), (7361, 10)], r"has (3, 15360, 100)"),
        ([(100, 60), (100, 41)], "[2, 200, 101] are held"),
        ([(1, 0)] * 4, "[4, 4, 0] are held"),
        ([(100, 100), (100, 0)], "one pod's own"),
    ],
)
def test_a_card_is_given_too_often(uses: list[tuple[int, int]], wrong: str) -> None:
    given = [_hold(f"p{i}", _use(0, mib, cores)) for i, (mib, cores) in enumerate(uses)]
    assert wrong in _find(_make_ledger(), *given)


def test_a_pod_that_has_ended_or_is_gone_holds_nothing() -> None:
    ledger = _make_ledger()
    first, second = _hold("first", _use(0, 15_000, 0)), _hold("second", _use(0, 15_000, 0))
    assert _find(ledger, first, {**first, "status": {"phase": "Succeeded"}}, second) == ""
    ledger.drop_pod(second)
    assert _find(ledger, _hold("third", _use(0, 15_000, 0))) == ""


def test_containers_of_one_pod_are_added_and_those_that_run_before_are_not() -> None:
    both = _hold("both", _use(0, 8000, 0), _use(0, 8000, 0))
    assert "[2, 16000, 0] are held" in _find(_make_ledger(), both)
    first = _hold("first", _use(0, 8000, 0), _use(0, 8000, 0))
    first["spec"]["initContainers"] = [first["spec"]["containers"].pop()]
    assert _find(_make_ledger(), first) == ""


def test_a_container_that_runs_before_the_others_holds_nothing_once_it_is_done() -> None:
    first = _hold("first", _use(0, 8000, 100), _use(0, 4000, 0))
    first["spec"]["initContainers"] = [first["spec"]["containers"].pop()]
    second = _hold("second", _use(0, 9000, 10))
    assert "one pod's own" in _find(_make_ledger(), first, second)
    first["status"]["conditions"] = [{"type": "Initialized", "status": "True"}]
    assert _find(_make_ledger(), first, second) == ""


def _cut(name: str, profile: str, start: int, size: int) -> Json:
    mib, cores, *_ = A100[profile]
    one = {"gpuUUID": "GPU-cut-0-0", "profile": profile, "placement": {"start": start, "size": size}}  # fmt: skip
    text = json.dumps([{"containerIndex": 0, "deviceIndex": 0, **one}])
    return _hold(name, f"GPU-cut-0-0,NVIDIA,{mib},{cores}", node="mig-0", **{_MIG: text})


def test_instances_stand_on_each_other_or_on_no_place() -> None:
    def make() -> Ledger:
        ledger = _make_ledger()
        ledger.see_node(make_fleet().nodes["mig-0"], 0.0)
        return ledger

    assert _find(make(), _cut("a", "3g.20gb", 0, 4), _cut("b", "3g.20gb", 4, 4)) == ""
    assert "are on slot 4" in _find(make(), _cut("a", "3g.20gb", 4, 4), _cut("b", "1g.5gb", 4, 1))
    assert "which is no place" in _find(make(), _cut("a", "3g.20gb", 2, 4))


def test_a_pod_runs_that_was_not_served() -> None:
    """The lock was not heeded: the plugin served another pod."""
    assert "was not served" in _find(_make_ledger(), _hold("p", _use(0, 1, 0), phase="Running"))
    served = _hold("p", _use(0, 1, 0), phase="Running", **{"hami.io/bind-phase": "success"})
    assert _find(_make_ledger(), served) == ""


def test_a_pod_is_bound_twice_or_to_a_node_that_is_gone() -> None:
    ledger = _make_ledger()
    first = _hold("p", _use(0, 1, 0))
    moved = {**first, "spec": {**first["spec"], "nodeName": "n0"}}
    assert "is on n0, and was on g0" in _find(ledger, first, moved)
    ledger = _make_ledger()
    ledger.drop_node("g0", 100.0 - LATE_SECONDS)
    assert _find(ledger, _hold("p", _use(0, 1, 0))) == ""
    ledger.drop_node("g0", 99.0 - LATE_SECONDS)
    assert "was bound to g0, gone for 31 s" in _find(ledger, _hold("q", _use(0, 1, 0)))


def test_a_card_is_given_that_has_been_ill_for_long() -> None:
    hardware = cards.read_hardware(nodes.make_gpu_node("g0", cards=2, split=3))
    assert hardware is not None
    ill = nodes.add_cards(nodes.make_plain_node("g0"), nodes.mark_unhealthy(hardware, 1))
    ledger = _make_ledger()
    ledger.see_node(ill, 99.0 - LATE_SECONDS)
    assert "which is ill" in _find(ledger, _hold("p", _use(1, 1, 0)))
    ledger = _make_ledger()
    ledger.see_node(ill, 99.0)
    assert _find(ledger, _hold("p", _use(1, 1, 0)), _hold("q", _use(0, 1, 0))) == ""


def test_what_is_only_counted_is_given_too_often() -> None:
    def take(name: str, **requests: str) -> Json:
        made = pod(name, limits={"nvidia.com/gpu": 1}, requests=requests)
        made["metadata"]["uid"] = name
        made["spec"]["nodeName"] = "n0"
        return {**made, "status": {"phase": "Running"}}

    assert _find(_make_ledger(), take("a", cpu="2"), take("b", cpu="2")) == ""
    assert "offers 4 cpu" in _find(_make_ledger(), take("a", cpu="2"), take("b", cpu="2100m"))
    many = [take(name) for name in "abc"]
    assert "offers 2 nvidia.com/gpu, 3 are held" in _find(_make_ledger(), *many)


@pytest.mark.parametrize(
    ("device", "key", "uses", "wrong"),
    [
        (Device(1, 98_304, 100), "hami.io/kunlun-allocated", ["x,kunlun,98304,100"] * 2, "are held"),
        (Device(2, 0, 3), "hami.io/aws-neuron-devices-allocated", ["x,AWSNeuron,0,1", "x,AWSNeuron,0,3"], "given twice"),
        (Device(4, 65_520, 100, healthy=False), "hami.io/dcu-devices-allocated", ["x,DCU,1,1"], "is ill"),
    ],
)  # fmt: skip
def test_devices_of_vendors_are_judged_by_what_hami_reads(
    device: Device, key: str, uses: list[str], wrong: str
) -> None:
    def hold(name: str, use: str) -> Json:
        made = _hold(name, use, node="v0")
        made["metadata"]["annotations"] = {key: f"{use}:;"}
        return made

    ledger = _make_ledger(v0={"x": device})
    assert wrong in _find(ledger, *(hold(f"p{i}", use) for i, use in enumerate(uses)))


def test_two_cores_of_one_device_of_aws_are_two() -> None:
    ledger = _make_ledger(v0={"x": Device(2, 0, 3)})
    key = "hami.io/aws-neuron-devices-allocated"
    make: Callable[[str, int], Json] = lambda name, bits: _hold(  # noqa: E731
        name, node="v0", **{key: f"x,AWSNeuron,0,{bits}:;"}
    )
    assert _find(ledger, make("a", 1), make("b", 2)) == ""
