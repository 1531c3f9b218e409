"""What a driver is: all that is particular to one kind of device.

A family is a resource by which containers ask for devices. The devices of a family on one node are a pool, and a
node may have a pool of every family. A pool has one driver. Where a driver of cards ``serves`` the node, the
pool is a run of rows of the card table, and a kernel chooses among them (``kernels/devices``). Everywhere else
the devices are whole ones, a number that is counted like any resource of the node. ``devices/table`` says which
drivers a family has. The state keeps the pools of all drivers in one table and knows none of them by name.

How what is to come fits in:

- MIG, a geometry per card: ``cards`` tells each partition that may be carved as what its card is and which
  others it excludes; that is more columns of ``schema.Cards``, and a rule of the kernel that chooses.
- Links between cards: read by ``cards`` into a matrix by pool that the order of choice reads (``card_order``).
- Other vendors' cards by HAMi: a driver of cards for that vendor's family, with its own annotations.
- DRA: a family is a device class, ``cards`` reads ResourceSlices instead of annotations (``Node`` is what was
  read of a node, slices included), and ``answer`` goes into the claim's status by a step before the bind.
- A GPU and a NIC chosen together: both are pools of the node, whose columns lie side by side (``[F, N]``), so a
  kernel may look at two of them. A decision names one driver and its slots today, and would name those of two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from scheduler.api import wire
from scheduler.api.cards import Card, Slots
from scheduler.api.pods.gpus import GpuAsk

# What a driver has read on a node, as it was written there. Equal words tell of equal devices.
Words = tuple[str, ...]
Texts = Mapping[str, str]
Figures = tuple[int, int, int]


class Seen(NamedTuple):
    """What is known of a node when it is asked whose it is.

    Attributes:
        words: what the driver has read there.
        labels: the node's.
        offered: how many devices of the family the node offers as a plain resource.
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
    """What every driver is, of cards or of whole devices.

    Attributes:
        name: what people call it, and how a decision names it.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - see above

    def ask(self, pod: wire.Pod) -> GpuAsk | None:
        """What a pod asks of the family, None for nothing.

        Raises:
            BadInput: a figure that the driver's plugin could not serve.
        """


class CountingDriver(Driver, Protocol):
    """A driver of devices that are allocated whole, and that nobody tells apart."""

    def sum(self, offered: int) -> Figures:
        """Core percent, MiB and sharers of so many devices."""


class CardDriver(Driver, Protocol):
    """A driver of devices that are told one by one, and allocated whole or in parts.

    Attributes:
        claim_field: the field by which a pod says what it holds.
        notice: what people should know once its devices are in use, and in other words what is taken for granted.
        inner_resources: resources that only the driver's own parts read. In a pool of the driver's the cards
            say what there is of them, not the node's capacity.
        takes_turns: whether its plugin serves the pods of a node one at a time, under a lock.
        none_told, not_told: why a pod cannot go to a node of the driver's that has told of no device, and to one
            that has told nothing yet.
    """

    claim_field: str
    notice: tuple[str, str]
    inner_resources: frozenset[str]
    takes_turns: bool
    none_told: str
    not_told: str

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

    def opened(self, node: wire.Node) -> wire.Node:
        """The node as if nobody had closed any of its devices."""
