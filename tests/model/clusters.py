"""Nodes drawn from a seed, as raw objects: the same seed, the same cluster. Pods: see ``workloads``.

A new field, or a new family of devices, is added here, and every property test meets it.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from scheduler.api import hami_mig, names, wire
from scheduler.devices.mig_models import CUT_MODELS
from tests import make

Json = dict[str, Any]
ZONES = ("a", "b", "c")
TIERS = tuple("0123456789")
TAINT = ("only", "gpu", "NoSchedule")
TOLERATION = {"key": "only", "operator": "Exists"}


@dataclass(frozen=True, kw_only=True)
class Model:
    """A kind of card."""

    mib: int
    model: str = make.T4
    cores: int = 100
    sharers: int = 10


MODELS = (
    Model(mib=15360),
    Model(mib=24576, model="NVIDIA A10G"),
    Model(mib=81920, model="NVIDIA-A100-SXM4-80GB", sharers=3),
    Model(mib=32768, model="NVIDIA-V100", cores=200),
    Model(mib=16280, model="NVIDIA-Tesla P100", sharers=2),
)


# By weight, of what every cluster may have.
HEALTHY = {"none": 10, "whole": 15, "hami": 75}


@dataclass(frozen=True, kw_only=True)
class Kit:
    """What may be in a cluster; every chance is of one node.

    Attributes:
        families: which devices a node has, by weight, of those in ``FAMILIES``.
        cpu, memory, pods: what it may have of each.
        counts: how many cards or whole GPUs it may have.
        models: kinds of card.
        mixed: chance that its cards are of several kinds.
        odd: cards may be sick, cordoned or in MIG mode, pods have wishes and policies.
        gaps: cards do not have the lowest indices, and another node of the name has others.
        closed: chance that it is cordoned.
        taints: chance that it has the taint that keeps off all but who tolerates it.
        soft: chance of a taint that pods would rather not, and of one more after each.
        tiers: it has a label ``tier``, the high ones seldom.
        measured: chance that it has IOPS and network bandwidth to give.
        beside: chance that it has devices of another vendor, whatever else it has; where any may,
            some of the pods that ``workloads.drawn`` makes ask for them.
        late: chance that it has a resource that no other may have had.
        marked: chance that it has the label by which HAMi's nodes are known, or one that is not that.
        uids: under how many uids one name may come.
        cut: chance of each card that it is in MIG mode and says what it can be cut into.
        even: pods ask such percents of memory only as are whole MiB of every card.
    """

    families: Mapping[str, float] = field(default_factory=lambda: HEALTHY)
    cpu: Sequence[str] = ("8", "16", "32", "96")
    memory: Sequence[str] = ("32Gi", "128Gi")
    pods: Sequence[int] = (110,)
    counts: Sequence[int] = (1, 2, 4, 8)
    models: Sequence[Model] = MODELS
    mixed: float = 0.3
    odd: bool = True
    gaps: bool = False
    closed: float = 0.08
    taints: float = 0.15
    soft: float = 0.0
    tiers: bool = False
    measured: float = 0.0
    beside: float = 0.0
    late: float = 0.0
    marked: float = 0.0
    uids: int = 1
    cut: float = 0.0
    even: bool = True


# How the placing kernel and all that surrounds it are tried: small nodes that differ in everything.
SMALL = Kit(
    cpu=[f"{n}m" for n in range(500, 4000, 100)],
    memory=[f"{n}Mi" for n in range(1000, 9000, 500)],
    pods=range(3, 12),
    counts=(1, 2, 3, 4),
    mixed=1.0,
    closed=0.05,
    taints=0.1,
    soft=0.4,
    tiers=True,
    measured=0.6,
    beside=0.3,
)


# What a card that is cut by MIG says of itself.
_CUT: Json = {
    "mode": "mig",
    "devmem": CUT_MODELS["A100-80GB"].mib,
    "devcore": 100,
    "count": 7,
    "migProfiles": msgspec.to_builtins(hami_mig.list_profiles(CUT_MODELS["A100-80GB"].parts)),
}

Given = tuple[dict[str, str | int], dict[str, str]]
"""What a family puts into a node: allocatable resources and annotations."""


def _whole(rng: random.Random, _name: str, kit: Kit) -> Given:
    return {names.GPU: rng.choice(kit.counts)}, {}


def _hami(rng: random.Random, name: str, kit: Kit) -> Given:
    n = rng.choice(kit.counts)
    same = None if rng.random() < kit.mixed else rng.choice(kit.models)
    found, cordoned = [], []
    for i in rng.sample(range(n + 1), n) if kit.gaps else range(n):
        one, chance = same or rng.choice(kit.models), rng.random() if kit.odd else 0.5
        found.append(
            make.card(
                uuid=f"{name}-GPU-{i}", index=i, mib=one.mib, model=one.model, cores=one.cores,
                sharers=one.sharers, numa=rng.randrange(2), mode="mig" if chance < 0.05 else "hami-core",
                healthy=not 0.05 < chance < 0.12,
            )
        )  # fmt: skip
        if kit.cut and rng.random() < kit.cut:
            found[-1] |= _CUT
        if chance > 0.95:
            cordoned.append(f"{name}-GPU-{i}")
    slots, notes = make.hami_register(found, cordoned)
    return {names.GPU: slots}, notes


def _in_text(rng: random.Random, name: str, kit: Kit) -> Given:
    """HAMi's register as older plugins write it."""
    cards = range(rng.choice(kit.counts))
    text = "".join(f"{name}-GPU-{i},10,15360,100,T4,0,true,{i},hami-core:" for i in cards)
    return {}, {names.HAMI_REGISTER: text or ":"}


def _broken_register(rng: random.Random, name: str, kit: Kit) -> Given:
    return _whole(rng, name, kit)[0], {names.HAMI_REGISTER: "[oops"}


def _broken_amount(rng: random.Random, name: str, kit: Kit) -> Given:
    return _whole(rng, name, kit)[0] | {"example.com/late-0": "two"}, {}


FAMILIES: dict[str, Callable[[random.Random, str, Kit], Given]] = {
    "none": lambda _rng, _name, _kit: ({}, {}),
    "whole": _whole,
    "hami": _hami,
    # More than a machine has: they may be the shares of a plugin that has not said so yet.
    "shares": lambda _rng, _name, _kit: ({names.GPU: 20}, {}),
    "hami in text": _in_text,
    "broken register": _broken_register,
    "broken amount": _broken_amount,
}


def node(rng: random.Random, name: str, kit: Kit) -> Json:
    """A node with what the kit lets it have."""
    [family] = rng.choices(list(kit.families), list(kit.families.values()))
    resources, notes = FAMILIES[family](rng, name, kit)
    if rng.random() < kit.measured:
        resources |= {names.IOPS: rng.randrange(50, 300), names.NETWORK: 1000}
    if kit.beside and rng.random() < kit.beside:
        resources |= {names.AMD_GPU: rng.choice(kit.counts)}
    if rng.random() < kit.late:
        resources.setdefault(f"example.com/late-{rng.randrange(6)}", rng.randrange(5))
    # Few nodes are at the top of either preference, so the highest comes and goes.
    taints = [(f"soft-{i}", "", "PreferNoSchedule") for i in range(_in_a_row(rng, kit.soft))]
    if rng.random() < kit.taints:
        taints.append(TAINT)
    labels = {"zone": rng.choice(ZONES)}
    if rng.random() < kit.marked:
        labels["gpu"] = rng.choice(["on", "off"])
    if kit.tiers:
        labels["tier"] = TIERS[min(_in_a_row(rng, 0.6), len(TIERS) - 1)]
    return make.raw(
        make.node(
            name=name,
            uid=f"{name}-{rng.randrange(kit.uids)}",
            cpu=rng.choice(kit.cpu),
            memory=rng.choice(kit.memory),
            pods=rng.choice(kit.pods),
            allocatable=resources,
            annotations=notes,
            labels=labels,
            taints=taints,
            unschedulable=rng.random() < kit.closed,
        )
    )


def nodes(rng: random.Random, n: int, kit: Kit) -> list[Json]:
    """Nodes in no particular order of names."""
    return [node(rng, f"node-{i:03}", kit) for i in rng.sample(range(n), n)]


def wired(bodies: Iterable[Json]) -> list[wire.Node]:
    """Nodes as they are decoded from the wire."""
    return [msgspec.convert(body, wire.Node) for body in bodies]


def _in_a_row(rng: random.Random, chance: float) -> int:
    n = 0
    while rng.random() < chance:
        n += 1
    return n
