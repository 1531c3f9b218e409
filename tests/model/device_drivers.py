"""Drivers of devices that no plugin of today reports, to test what drivers are promised.

``NicCards``: network cards that are chosen from the NUMA node of the pod's GPUs. ``Fabric``: memory behind a switch, which
belongs to no node, and which pods on all nodes with the switch's label may get. ``Slices``: families that come with nodes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from scheduler.api import plugin_parts, wire
from scheduler.api.cards import Card, CardUse, Slots
from scheduler.api.plugin_parts import Part
from scheduler.api.pods import gpus
from scheduler.api.reasons import CARD_CODES, CardRefusal
from scheduler.devices.contract import (
    AS_ALLOCATED,
    Lock,
    NodeReading,
    PodMarks,
    SharedPool,
    Texts,
    Words,
)
from scheduler.schema import columns as c

NIC, NICS = "example.com/nic", "example.com/nics"
SLICES = "example.com/slice-*"
MEMORY, SWITCH = "example.com/fabric-memory", "example.com/switch"


class _Cards:
    """What both drivers have in common: the answer is a list of ids in an annotation."""

    name = resource = ""
    is_joint = False
    notice = ("a driver of tests", "nothing is assumed")
    notes: frozenset[str] = frozenset()
    inner_resources: frozenset[str] = frozenset()
    parts: Mapping[str, tuple[int, int]] = {}
    published: frozenset[str] = frozenset()
    chooser = c.WALK
    lock: Lock | None = None
    names_models = False
    shown = AS_ALLOCATED
    codes: Mapping[CardRefusal, str] = CARD_CODES
    none_told, not_told = "node(s) had no such device", "node(s) have not reported such devices"

    def __init__(self) -> None:
        self.resources = (self.resource,)
        self.answer = f"{self.resource}-ids"
        self.claim_field = f"metadata.annotations[{self.answer}]"

    def read_requests(self, pod: wire.Pod) -> tuple[gpus.GpuAsk, ...]:
        ask = gpus.read_whole_ask(pod, self.resource)
        return () if ask is None else (ask._replace(by_card=True, joint=self.is_joint),)

    def read_most(self, pod: wire.Pod) -> tuple[gpus.GpuAsk, ...]:
        return gpus.read_most(pod, self.resource)

    def read_node(self, node: wire.Node) -> Words:
        return ((node.metadata.annotations or {}).get(NICS, ""),)

    def is_told(self, words: Words) -> bool:
        return bool(words and words[0])

    def is_signed(self, words: Words) -> bool:
        return self.is_told(words)

    def serves(self, seen: NodeReading) -> bool:
        return self.is_told(seen.words)

    def list_cards(self, words: Words) -> tuple[Card, ...]:
        told = json.loads(words[0]) if self.is_told(words) else []
        return tuple(make_card(id_, i, numa) for i, (id_, numa) in enumerate(told))

    def list_closed(self, _words: Words) -> frozenset[str]:
        return frozenset()

    def read_claim(self, pod: wire.Pod, asking: Sequence[bool]) -> Slots:
        text = (pod.metadata.annotations or {}).get(self.answer, "[]")
        slots = tuple(tuple(CardUse(one, 1, 100) for one in slot) for slot in json.loads(text))
        return slots if len(slots) == len(asking) else tuple(() for _ in asking)

    def find_whole(self, device: str) -> str:
        return device

    def write_answer(
        self, _node: str, slots: Slots, _now: int, _of_pod: tuple[str, ...] = ()
    ) -> PodMarks:
        return PodMarks({self.answer: json.dumps([[use.uuid for use in one] for one in slots])}, {})

    def is_answered(self, annotations: Texts, _slots: Slots) -> bool:
        return self.answer in annotations

    def is_served(self, _annotations: Texts) -> bool:
        return False

    def is_locked(self, _annotations: Texts) -> bool:
        return False

    def sign_node(self, node: wire.Node) -> wire.Node:
        return node

    def open_node(self, node: wire.Node) -> wire.Node:
        return node


class NicCards(_Cards):
    """Network cards."""

    name, resource, is_joint = "nics", NIC, True


class Fabric(_Cards):
    """Memory behind a switch; its source is an object of its own, no node."""

    name, resource = "fabric", MEMORY
    # No node offers it.
    inner_resources = frozenset({MEMORY})

    def read_node(self, _node: wire.Node) -> Words:
        return ("",)


class Slices:
    """Parts of devices that nodes offer by their size: a resource for each size."""

    name = "slices"
    resources = (SLICES,)

    def serves(self, seen: NodeReading) -> bool:
        return seen.offered > 0

    def read_requests(self, pod: wire.Pod) -> tuple[gpus.GpuAsk, ...]:
        found = pod.spec.containers[0].resources
        named = sorted((found and found.requests) or {})
        prefix = SLICES.removesuffix("*")
        asks = (gpus.read_whole_ask(pod, one) for one in named if one.startswith(prefix))
        return tuple(ask for ask in asks if ask is not None)

    def read_part(self, _resource: str, _labels: Texts, _offered: int) -> Part:
        return plugin_parts.WHOLE


def make_card(id_: str, index: int, numa: int = 0) -> Card:
    return Card(id_, index, sharers=1, mib=1, cores=100, model="", numa=numa)


def make_fabric(
    n: int, *, key: str = "switch", generation: int = 0, complete: bool = True
) -> SharedPool:
    """A pool of ``n`` parts of memory, for the nodes with the label of the switch."""
    cards = tuple(make_card(f"{key}-{i}", i) for i in range(n))
    return SharedPool(
        key,
        MEMORY,
        "fabric",
        cards,
        lambda _, labels: labels.get(SWITCH) == key,
        generation,
        complete,
    )
