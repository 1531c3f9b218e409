"""What nodes offer of parts of cards, for autoscalers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
import structlog

from scheduler.api import hami, names, wire
from scheduler.api.cards import CardUse
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.engine import Engine
from scheduler.engine.questions.nodes import OfferedParts
from scheduler.errors import ApiError
from scheduler.kube import offers
from scheduler.kube.offers import PartOffers
from tests import make
from tests.model.mig import make_card

Json = dict[str, Any]
_MIB = make.T4_MIB
_NONE: Mapping[str, int] = {}
_ALL = {
    names.GPU_MEMORY: str(2 * _MIB),
    names.GPU_CORES: "200",
    names.GPU_MEMORY_PERCENT: "200",
    names.GPU_PRIORITY: "200",
}


class _Api:
    def __init__(self) -> None:
        self.written: list[tuple[str, str, Json]] = []
        self.refuses = 0

    async def send(self, verb: str, path: str, body: Json, *, content_type: str) -> None:
        assert content_type == "application/merge-patch+json"
        if self.refuses:
            self.refuses -= 1
            raise ApiError(500, "InternalError", "no")
        self.written.append((verb, path, body))


def _make_node(name: str = "n", cards: int = 2, offered: Mapping[str, int] = _NONE) -> wire.Node:
    node = make.hami_node(name=name, cards=cards)
    assert node.status.allocatable is not None
    node.status.allocatable |= {f"nvidia.com/{key}": str(n) for key, n in offered.items()}
    return node


def _make_holder(node: str = "n") -> wire.Pod:
    claim = {names.HAMI_NODE: node, names.HAMI_ALLOCATED: hami.encode_devices([[CardUse(f"{node}-GPU-0", 10, 0)]])}  # fmt: skip
    return make.pod(name="p", node=node, gpu=1, gpumem=10, annotations=claim)


class _World:
    def __init__(self, config: Config | None = None) -> None:
        self.api, self.engine, self.leads = _Api(), Engine(config or Config()), True
        self.offers = PartOffers(self.api, self.engine, lambda: self.leads)  # type: ignore[arg-type]

    def see(self, *found: wire.Node | wire.Pod) -> None:
        for one in found:
            event = events.Seen(one)
            self.engine.handle(event, 0.0)
            self.offers.hear(event)

    async def settle(self, seconds: float = 0.05) -> list[tuple[str, str, Json]]:
        task = asyncio.create_task(self.offers.run())
        await asyncio.sleep(seconds)
        task.cancel()
        written, self.api.written = self.api.written, []
        return written


async def test_a_node_gets_what_its_cards_have_together() -> None:
    world = _World()
    world.see(_make_node(), make.node(name="plain", cpu=8), make.node(name="whole", gpus=8))
    (found,) = await world.settle()
    assert found == (
        "PATCH", "/api/v1/nodes/n/status", {"status": {"capacity": _ALL, "allocatable": _ALL}}
    )  # fmt: skip


async def test_only_what_is_not_there_is_written() -> None:
    world = _World()
    there = {"gpumem": 2 * _MIB, "gpucores": 200, "gpumem-percentage": 200, "priority": 200}
    world.see(_make_node(offered=there))
    assert await world.settle() == []
    # A plugin has registered a card more.
    world.see(_make_node(cards=3, offered=there))
    ((_, _, body),) = await world.settle()
    assert body["status"]["capacity"][names.GPU_CORES] == "300"


@pytest.mark.parametrize("is_occupied", [True, False])
async def test_nothing_becomes_less_while_pods_with_cards_are_there(is_occupied: bool) -> None:
    world = _World()
    more = {"gpumem": 9 * _MIB, "gpucores": 900, "gpumem-percentage": 200, "priority": 200}
    # The plugin is a pod of the node as well, as long as the node lives.
    world.see(make.pod(name="plugin", node="n"))
    if is_occupied:
        world.see(_make_holder())
    world.see(_make_node(offered=more))
    written = await world.settle()
    assert bool(written) == (not is_occupied)
    if written:
        assert written[0][2]["status"]["capacity"] == {key: _ALL[key] for key in (names.GPU_MEMORY, names.GPU_CORES)}  # fmt: skip


async def test_a_replica_that_does_not_lead_writes_nothing_until_it_does() -> None:
    world = _World()
    world.leads = False
    world.see(_make_node())
    assert await world.settle() == []
    world.leads = True
    world.offers.begin_term()
    assert len(await world.settle()) == 1


async def test_what_was_not_taken_is_written_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "_AGAIN_SECONDS", 0.01)
    world = _World()
    world.api.refuses = 1
    world.see(_make_node("a"), _make_node("b"))
    assert [path for _, path, _ in await world.settle(0.2)] == [
        "/api/v1/nodes/b/status", "/api/v1/nodes/a/status"
    ]  # fmt: skip


async def test_one_line_is_logged_for_each_cause_and_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As without the right to write on nodes."""
    waits: list[float] = []
    monkeypatch.setattr(offers, "_AGAIN_SECONDS", 0.02)
    monkeypatch.setattr(offers, "_AGAIN_SECONDS_MAX", 0.05)
    lengthen = offers._lengthen

    def note_wait(before: float) -> float:
        waits.append(lengthen(before))
        return waits[-1]

    world = _World()
    world.api.refuses = 9 * 4
    world.see(*(_make_node(f"n{i}") for i in range(9)))
    task = asyncio.create_task(world.offers.run())
    with structlog.testing.capture_logs() as logs:
        monkeypatch.setattr(offers, "_lengthen", note_wait)
        await asyncio.sleep(0.6)
        # A failure after a success is another cause.
        world.api.refuses = 1
        world.see(_make_node("late"))
        await asyncio.sleep(0.1)
    task.cancel()
    assert [one["nodes"] for one in logs] == [9, 9, 9, 9, 1]
    assert waits == [0.02, 0.04, 0.05, 0.05, 0.02]
    assert len(world.api.written) == 10


async def test_a_node_that_is_not_taken_delays_no_other() -> None:
    world = _World()
    world.api.refuses = 1
    world.see(_make_node("a"))
    task = asyncio.create_task(world.offers.run())
    await asyncio.sleep(0.02)
    world.see(_make_node("b"), _make_node("a"))
    await asyncio.sleep(0.02)
    task.cancel()
    # The first one was seen again, and waits all the same.
    assert [path for _, path, _ in world.api.written] == ["/api/v1/nodes/b/status"]


async def test_others_have_their_turn_between_two_nodes() -> None:
    """A new leader looks at all nodes, and most have what they should have."""
    world = _World()
    world.leads = False
    world.see(_make_node("a"), _make_node("b"))
    task = asyncio.create_task(world.offers.run())
    left = [len(world.offers._changed)]
    for _ in range(9):
        await asyncio.sleep(0)
        left.append(len(world.offers._changed))
    task.cancel()
    assert list(dict.fromkeys(left)) == [2, 1, 0]


def test_amounts_are_in_the_unit_of_requests_and_only_of_our_nodes() -> None:
    world = _World(Config(hami_scheduler_nodes="scheduler=hami"))
    theirs = make.hami_node(name="theirs", cards=2, labels={"scheduler": "hami"})
    world.see(theirs, _make_node())
    assert world.engine.ask(OfferedParts("theirs")).amounts == {}
    assert world.engine.ask(OfferedParts("nobody")) == ({}, False)
    assert world.engine.ask(OfferedParts("n")).amounts[names.GPU_MEMORY] == 2 * _MIB


def test_what_nodes_offer_of_parts_changes_no_decision() -> None:
    """The cards say what there is, whatever stands on the node."""
    cluster = make.cluster(nodes=[_make_node(offered={"gpumem": 1, "gpucores": 1})])
    record = cluster.see_pod(make.pod(name="p", gpu=2, gpumem=_MIB, gpucores=100))
    assert record is not None
    (bind,) = make.cycle(cluster=cluster).schedule([record]).binds
    assert bind.node == "n"


def _list_offered(node: wire.Node) -> set[str]:
    engine = Engine(Config())
    engine.handle(events.Seen(node), 0.0)
    return set(engine.ask(OfferedParts(node.metadata.name)).amounts)


def test_what_a_plugin_offers_itself_is_left_to_it() -> None:
    """A card more or less by rounding, and the kubelet and Evenkeel would write the node in turn."""
    for cards, memory, cores in (
        ("cambricon.com/vmlu", "cambricon.com/mlu.smlu.vmemory", "cambricon.com/mlu.smlu.vcore"),
        ("mthreads.com/vgpu", "mthreads.com/sgpu-memory", "mthreads.com/sgpu-core"),
        ("aws.amazon.com/neuron", "", "aws.amazon.com/neuroncore"),
    ):
        there = {cards: "3", cores: "250"} | ({memory: "1000"} if memory else {})
        assert _list_offered(make.node(name="n", allocatable=there)) == set()


def test_what_does_not_add_up_as_pods_hold_it_is_not_offered() -> None:
    card = {"uuid": "m", "totalDevCount": 16, "totalCompute": 100, "totalVRam": 65536, "healthy": True}  # fmt: skip
    notes = {"metax-tech.com/node-gpu-devices": json.dumps([card])}
    assert _list_offered(make.node(name="m", gpus=0, annotations=notes)) == set()
    cut = make.hami_node(name="n", cards=[make_card("g")])
    assert names.GPU_CORES not in _list_offered(cut)
    assert names.GPU_MEMORY in _list_offered(cut)


async def test_a_plugin_that_offers_a_resource_itself_is_left_alone_in_the_end() -> None:
    world, n_written = _World(), 0
    there = {"gpumem": 7, "gpucores": 200, "gpumem-percentage": 200, "priority": 200}
    for i in range(12):
        world.see(_make_node(offered=there), make.pod(name=f"other-{i}"))
        n_written += len(await world.settle(0.01))
    assert n_written == 5
    # Other figures of the cards are tried again, and so is a node that the kubelet has cleared.
    world.see(_make_node(cards=3, offered=there))
    assert len(await world.settle(0.01)) == 1
    world.see(_make_node(cards=3, offered=there | {"gpumem": 0}))
    assert len(await world.settle(0.01)) == 1


async def test_a_write_that_failed_was_replaced_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "_AGAIN_SECONDS", 0.001)
    world = _World()
    world.api.refuses = 6
    world.see(_make_node(offered={"gpumem": 7}))
    ((_, _, body),) = await world.settle(0.2)
    assert body["status"]["capacity"] == _ALL
