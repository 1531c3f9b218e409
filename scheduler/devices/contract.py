"""The contract of device drivers: a driver holds everything that is particular to one kind of device.

A family is a resource by which containers request devices, such as ``nvidia.com/gpu``. The devices of a family on one
node are a pool, and a node has a pool of each family that it has. A pool has one driver; a family may have several, each
for other nodes. A driver of cards reports the devices one by one, and a kernel chooses among them (``kernels/devices``).
Other devices are counted like any other resource of the node. ``devices/table`` lists the drivers. The state keeps the
pools of all drivers in one table and knows no driver by name.

How later kinds of devices fit in:

- MIG, a geometry for each card: ``list_cards`` reports what each card can be cut into, with counters for what is cut out
  of it, and a chooser of its own picks a card and a part of it.
- Links between cards: ``list_cards`` reads them, and a chooser uses them.
- DRA: a family is a device class, ResourceSlices are read in the place of annotations, as pools of a node or as
  ``SharedPool``, and a step before the bind writes the answer into the claim's status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from scheduler.api import names, wire
from scheduler.api.cards import Card, Slots
from scheduler.api.plugin_parts import Part
from scheduler.api.pods.gpus import GpuAsk
from scheduler.api.reasons import CardRefusal
from scheduler.errors import BadInput

# The texts that a driver has read on a node. Equal texts mean equal devices.
Words = tuple[str, ...]
Texts = Mapping[str, str]


class Shown(NamedTuple):
    """How devices are shown in metrics under HAMi's names, where not as they are allocated.

    Attributes:
        type: the type that is shown for all of them; empty for their models.
        has_memory: whether their MiB are memory; otherwise 0 is shown.
        cores: the cores of each; 0 for those that it has.
    """

    type: str = ""
    has_memory: bool = True
    cores: int = 0


AS_ALLOCATED = Shown()


class NodeReading(NamedTuple):
    """What is known about a node when a driver decides whether it serves the node.

    Attributes:
        resource: the family.
        words: what the driver has read on the node.
        labels: the node's labels.
        offered: how many devices of the family the node offers as a plain resource.
        was_signed: the driver's plugin has written on the node, now or earlier under the same uid.
        any_signed: the driver's plugin has written on any node.
    """

    resource: str
    words: Words
    labels: Texts
    offered: int
    was_signed: bool
    any_signed: bool


class SharedPool(NamedTuple):
    """A pool of devices that belongs to no single node.

    Attributes:
        key: the name of its source.
        family: the resource by which pods request the devices.
        driver: the name of the driver.
        cards: the devices.
        is_reached: whether pods on a node may get the devices, by the node's name and labels.
        generation: the version of the source.
        complete: whether the source has said everything; until then no device of the pool is allocated.
    """

    key: str
    family: str
    driver: str
    cards: tuple[Card, ...]
    is_reached: Callable[[str, Texts], bool]
    generation: int = 0
    complete: bool = True


class Lock(NamedTuple):
    """The annotation of a node that says that its plugin is busy: the plugin serves one pod at a time.

    Attributes:
        key: the annotation.
        names_pod: it says which pod is served; else only since when the plugin is busy.
        seconds: the age from which it counts no more; None for the age that is set for all such locks.
    """

    key: str
    names_pod: bool = True
    seconds: float | None = None


HAMI_LOCK = Lock(names.HAMI_LOCK)


class PodMarks(NamedTuple):
    """What the bind writes on a pod together with the node."""

    annotations: dict[str, str]
    labels: dict[str, str]


class Driver(Protocol):
    """What drivers of cards and of whole devices have in common.

    Attributes:
        name: the name in messages and decisions.
        resources: the resources by which pods request its devices; ``*`` stands for any end.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - see above
    @property
    def resources(self) -> tuple[str, ...]: ...  # noqa: D102 - see above

    def serves(self, seen: NodeReading) -> bool:
        """Whether this driver allocates the node's devices of the family."""

    def read_requests(self, pod: wire.Pod) -> tuple[GpuAsk, ...]:
        """Read what a pod requests from each family of the driver; families of which it requests nothing are left out.

        Raises:
            BadInput: a figure that the driver's plugin could not serve.
        """


@runtime_checkable
class CountingDriver(Driver, Protocol):
    """A driver of devices that are only counted: each is a GPU or a part of one, and none has an id."""

    def read_part(self, resource: str, labels: Texts, offered: int) -> Part:
        """Read what one of the ``offered`` devices of a resource is on a node with these labels."""


class PartialClaim(BadInput):
    """A claim of which not all can be read; ``slots`` is what a pod holds at most by the rest."""

    def __init__(self, error: BadInput, slots: Slots) -> None:
        super().__init__(error.field, error.problem)
        self.slots = slots


@runtime_checkable
class CardDriver(Driver, Protocol):
    """A driver of devices that are reported one by one, and allocated whole or in parts.

    Attributes:
        claim_field: the field of a pod that names the devices that the pod holds.
        notice: what people should know once such devices are in use, and which of the driver's settings are assumed.
        notes: the annotations of pods that say which devices they accept.
        inner_resources: resources that only the driver reads. In the driver's pools their amounts come from the
            cards, not from the node's capacity.
        parts: of those of them that ResourceQuotas may limit: the figure of a card, as ``schema.columns.MIB``, and how much
            of it is one unit.
        published: those of ``inner_resources`` that a node may offer for autoscalers. The kubelet counts what a node offers,
            so pods must not request more of them together than they hold, and no plugin may offer them itself.
        chooser: the number of the kernel that chooses among its devices, as ``schema.columns.WALK``.
        lock: the lock under which its plugin serves the pods of a node, one at a time; None if the plugin has none, and
            looks for the pod that it has to serve among all pods of the node.
        names_models: whether a decision says of each device which model it is.
        shown: how its devices are shown in metrics under HAMi's names.
        codes: the names of the reasons why a device is refused, as ``api.reasons.CARD_CODES``.
        none_told, not_told: why a pod cannot go to a node that reports no device, and to a node that has not
            reported its devices yet.
    """

    claim_field: str
    notice: tuple[str, str]
    notes: frozenset[str]
    inner_resources: frozenset[str]
    parts: Mapping[str, tuple[int, int]]
    published: frozenset[str]
    chooser: int
    lock: Lock | None
    names_models: bool
    shown: Shown
    codes: Mapping[CardRefusal, str]
    none_told: str
    not_told: str

    def read_most(self, pod: wire.Pod) -> tuple[GpuAsk, ...]:
        """Read the most that a pod may hold whose request cannot be read: it may run on a node all the same."""

    def read_node(self, node: wire.Node) -> Words:
        """Read what is written on a node about its devices."""

    def is_told(self, words: Words) -> bool:
        """Whether the node has reported its devices, even if it has none."""

    def is_signed(self, words: Words) -> bool:
        """Whether the driver's plugin has written on the node."""

    def list_cards(self, words: Words) -> tuple[Card, ...]:
        """List the devices, by index.

        Raises:
            BadInput: the words cannot be read.
        """

    def list_closed(self, words: Words) -> frozenset[str]:
        """List the ids of closed devices."""

    def read_claim(self, pod: wire.Pod, asking: Sequence[bool]) -> Slots:
        """Read the devices that a bound pod holds, one slot for each container.

        ``asking`` says which containers request devices.

        Raises:
            BadInput: the claim cannot be read.
        """

    def find_whole(self, device: str) -> str:
        """Find the id of the device that a claim names, or of the device whose partition the claim names."""

    def write_answer(
        self, node: str, slots: Slots, now: int, of_pod: tuple[str, ...] = ()
    ) -> PodMarks:
        """Write down a decision as marks for the pod; ``now`` is in seconds since 1970, ``of_pod`` from its ``GpuAsk``."""

    def is_answered(self, annotations: Texts, slots: Slots) -> bool:
        """Whether the annotations are those of a pod that was bound with these cards."""

    def is_served(self, annotations: Texts) -> bool:
        """Whether the plugin has served, or has failed to serve, the pod of these annotations."""

    def is_locked(self, annotations: Texts) -> bool:
        """Whether the plugin of the node of these annotations is busy with a pod."""

    def sign_node(self, node: wire.Node) -> wire.Node:
        """Return the node with the plugin's mark; the node was signed earlier."""

    def open_node(self, node: wire.Node) -> wire.Node:
        """Return the node with all its devices open."""


AnyDriver = CountingDriver | CardDriver
