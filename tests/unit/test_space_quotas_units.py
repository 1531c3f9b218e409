"""The units of quotas of vendors' devices are those by which pods request them."""

from __future__ import annotations

from tests import make
from tests.unit.test_space_quotas import Spaces, quota
from tests.unit.test_vendor_parts import (
    GIB,
    MEMORY,
    PROFILES,
    SIZE,
    ask_share,
    make_enflame,
    make_metax,
)

CORE, DEVICE = "aws.amazon.com/neuroncore", "aws.amazon.com/neuron"


def test_memory_of_metax_is_in_gib() -> None:
    world = Spaces()
    world.see(make_metax("", ""), quota("q", "default", None, **{f"limits.{MEMORY}": 64}))
    world.see(ask_share("a", 60, 10), ask_share("b", 8, 10))
    assert world.decide() == {"a": "n1"}
    assert world.used() == {MEMORY: 60}
    assert "vmemory=8, used: limits.metax-tech.com/vmemory=60" in world.why("b")


def test_cores_of_neuron_are_their_number_and_not_their_bits() -> None:
    world = Spaces()
    world.see(make.node(name="n", cpu=64, allocatable={CORE: 16, DEVICE: 8}))
    world.see(quota("q", "default", None, **{f"limits.{CORE}": 5}))
    world.see(*(make.pod(name=f"p{i}", cpu=1, requests={CORE: 1}) for i in range(3)))
    world.see(make.pod(name="two", cpu=1, requests={DEVICE: 1}))
    assert sorted(world.decide()) == ["p0", "p1", "p2", "two"]
    assert world.used() == {CORE: 5}
    world.see(make.pod(name="more", cpu=1, requests={CORE: 1}))
    assert world.decide() == {}


def test_partitions_of_enflame_count_one_each_and_their_memory_in_mib() -> None:
    world = Spaces()
    limits = {f"limits.{SIZE}": 2, f"limits.{GIB}": 100_000}
    world.see(make_enflame("n", 4, PROFILES), quota("q", "default", None, **limits))
    world.see(*(make.pod(name=f"p{i}", cpu=1, requests={SIZE: 6}) for i in range(3)))
    assert sorted(world.decide()) == ["p0", "p1"]
    assert world.used() == {SIZE: 2, GIB: 2 * 48 * 1024}
