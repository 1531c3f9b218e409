"""What a driver is: all that is particular to one kind of device.

A driver reads a node's devices and what bound pods hold of them, and writes what was decided. What a pod asks is
read with the pod (``api/gpus``), and what is chosen is chosen by a kernel (``kernels/devices``). The state
keeps the devices of all drivers in one table and knows none of them by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from scheduler.api import wire
from scheduler.api.cards import Card, Slots

# What a driver has read on a node, as it was written there. Equal words tell of equal devices.
Words = tuple[str, ...]
Texts = Mapping[str, str]


class Seen(NamedTuple):
    """What is known of a node when it is asked whose it is.

    Attributes:
        words: what the driver has read there.
        labels: the node's.
        offered: how many devices the node offers as a plain resource.
        was_signed: the driver's plugin has written on the node, now or earlier under the same uid.
        any_signed: it has done so on any node.
    """

    words: Words
    labels: Texts
    offered: int
    was_signed: bool
    any_signed: bool


class Answer(NamedTuple):
    """What is written on a pod together with its node."""

    annotations: dict[str, str]
    labels: dict[str, str]


class Driver(Protocol):
    """One kind of device.

    Attributes:
        name: what people call it.
        claim_field: the field by which a pod says what it holds.
        notice: what people should know once its devices are in use, and in other words what is taken for granted.
        inner_resources: resources that only the driver's own parts read. On a node of the driver's the cards
            say what there is of them, not the node's capacity.
    """

    name: str
    claim_field: str
    notice: tuple[str, str]
    inner_resources: frozenset[str]

    def read_node(self, node: wire.Node) -> Words:
        """What is written on a node about its devices."""

    def is_told(self, words: Words) -> bool:
        """Whether the node's devices are told, be they none."""

    def is_signed(self, words: Words) -> bool:
        """Whether the driver's plugin has written on the node."""

    def serves(self, seen: Seen) -> bool:
        """Whether the node's devices are the driver's, to give away one by one."""

    def cards(self, words: Words) -> tuple[Card, ...]:
        """The devices, by index.

        Raises:
            BadInput: nobody can read the words.
        """

    def closed(self, words: Words) -> frozenset[str]:
        """Ids of devices that somebody has closed."""

    def read_claim(self, pod: wire.Pod, asking: Sequence[bool]) -> Slots:
        """What a pod with a node says that it holds: a slot for each container, of which these ask any.

        Raises:
            BadInput: nobody can read it.
        """

    def whole_of(self, device: str) -> str:
        """The id of the device that a claim names, or of which it names a partition."""

    def answer(self, node: str, slots: Slots, now: int) -> Answer:
        """What a decision becomes on the pod; ``now`` is in seconds since 1970."""

    def is_answered(self, annotations: Texts, slots: Slots) -> bool:
        """Whether these are the annotations of a pod that was bound with these cards."""

    def is_served(self, annotations: Texts) -> bool:
        """Whether the plugin has served, or has failed to serve, the pod of these annotations."""

    def is_locked(self, annotations: Texts) -> bool:
        """Whether the plugin of the node of these annotations is busy with a pod."""

    def signed(self, node: wire.Node) -> wire.Node:
        """The node as if the plugin had written on it, for one that was signed earlier."""
