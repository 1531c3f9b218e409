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


def _hold_often(world: World, binds: list[Bind]) -> None:
    for bind in binds:
        world.hold(replace(bind, uid=world.add_twin(bind.uid)))


def test_the_second_ledger_misses_who_is_forgotten() -> None:
    world = World(4)
    world.on_pod_comes()
    world.engine = Engine(Config())
    with pytest.raises(LostError):
        world.verify()
