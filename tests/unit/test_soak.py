"""Random things happen to a cluster with devices of every driver, and nothing is given away twice or forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.api.door.decisions import Bind
from scheduler.config import Config
from scheduler.devices.table import CARD_DRIVERS
from scheduler.engine.engine import Engine
from tests import slices
from tests.model.soak import LostError, World
from tests.model.vendor_fleet import read_fleet

pytestmark = pytest.mark.many
_EVENTS = slices.count_examples(20_000)


def test_nothing_is_given_away_twice_or_forgotten_whatever_the_driver() -> None:
    world = World(1)
    world.play(_EVENTS)
    bound = {name for name in CARD_DRIVERS if world.counts[f"bound by {name}"]}
    assert len(bound) > 12, bound
    counted = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb")
    assert all(world.counts[f"bound by {resource}"] for resource in counted)
    assert world.counts["bound"] > _EVENTS / 20


def test_there_are_nodes_and_pods_of_every_vendor() -> None:
    fleet = read_fleet()
    assert len(fleet.vendors) == 12
    assert len(fleet.nodes) > 20
    assert len(fleet.containers) == len(CARD_DRIVERS)


def test_the_second_ledger_sees_what_is_given_away_twice() -> None:
    """Two engines that know nothing of each other give the same devices."""
    world, other = World(2), World(2)
    for one in (world, other):
        while not any(bind.devices for bind in one.under_way.values()):
            one.on_pod_comes()
            one.on_decision()
    with pytest.raises(LostError):
        _hold_often(world, [*other.under_way.values()] * 64)


def test_the_second_ledger_sees_parts_that_are_given_away_twice() -> None:
    world = World(2)
    while not (found := [one for one in world.under_way.values() if one.node == "shared"]):
        world.on_pod_comes()
        world.on_decision()
    with pytest.raises(LostError, match=r"offers 16 nvidia.com/gpu.shared, 17 are held"):
        _hold_often(world, found * 17)


def test_the_second_ledger_sees_cards_that_are_ill_and_plugins_that_are_silent() -> None:
    world = World(2)
    while not (
        found := [one for one in world.under_way.values() if one.devices and one.node[0] == "h"]
    ):
        world.on_pod_comes()
        world.on_decision()
    world._silent.add(found[0].node)
    with pytest.raises(LostError, match="is silent"):
        world.hold(found[0])
    world._silent.clear()
    for node in [one for one in world._nodes.values() if one.metadata.name == found[0].node]:
        notes = {
            key: text.replace('"health":true', '"health":false')
            for key, text in (node.metadata.annotations or {}).items()
        }
        world._replace(node, notes)
    with pytest.raises(LostError, match="is ill"):
        world.hold(found[0])


def _hold_often(world: World, binds: list[Bind]) -> None:
    for bind in binds:
        world.hold(replace(bind, uid=world.add_twin(bind.uid)))


def test_the_second_ledger_misses_who_is_forgotten() -> None:
    world = World(4)
    world.on_pod_comes()
    world.engine = Engine(Config())
    with pytest.raises(LostError):
        world.verify()
