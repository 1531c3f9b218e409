"""The table of the families of devices, with the drivers of each family.

If a pod requests devices of several families, its cards are chosen for the first of these families in the table. The
node must have enough of every family, and the node is charged for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from itertools import chain
from typing import NamedTuple

from scheduler.api import names, wire
from scheduler.api.pods.gpus import GpuAsk
from scheduler.config import Config
from scheduler.devices.contract import CardDriver, CountingDriver, Driver, Texts
from scheduler.devices.hami import HamiCards
from scheduler.devices.whole import FAMILIES as WHOLE
from scheduler.devices.whole import WholeDevices


class Family(NamedTuple):
    """A resource by which containers request devices; ``Nodes`` has a pool of every family, by its place in the table.

    Attributes:
        cards: the driver of the nodes that it serves, None if the family's devices are never reported one by one.
        whole: the driver of all other nodes.
    """

    resource: str
    cards: CardDriver | None
    whole: CountingDriver

    @property
    def reader(self) -> Driver:
        """The driver that reads requests: the driver of cards, if there is one, because it knows more resources."""
        return self.whole if self.cards is None else self.cards


class Families(tuple[Family, ...]):  # noqa: SLOT001 - a tuple has no slots of its own
    """The table of families.

    Attributes:
        marks: patterns of further resources by which nodes offer devices that no family counts; ``*`` for any end.
    """

    marks: tuple[str, ...] = ()

    def are_marked(self, labels: Texts, offered: Iterable[str]) -> bool:
        """Whether a node has devices by its labels or by what it offers, whether or not a family counts them."""
        if labels.get(names.GPU_PRESENT) == "true":
            return True
        return any(fnmatchcase(resource, mark) for resource in offered for mark in self.marks)


def make_families(
    label: str = names.HAMI_NODE_LABEL, marks: tuple[str, ...] = names.GPU_RESOURCES
) -> Families:
    """Make the table; ``label`` as ``HamiCards`` takes it."""
    cards: dict[str, CardDriver] = {names.GPU: HamiCards(label)}
    found = Families(
        Family(resource, cards.get(resource), WholeDevices(resource)) for resource in WHOLE
    )
    found.marks = marks
    return found


def read_families(config: Config) -> Families:
    """Make the table that the configuration describes."""
    return make_families(config.hami_node_label, config.gpu_resources)


# For callers without a cluster: what drivers read and write on pods does not depend on the label.
FAMILIES = make_families()
_CARDS = {family.cards.name: family.cards for family in FAMILIES if family.cards is not None}
# By resource that only cards have: the place of the family of these cards.
INNER_RESOURCES = {
    resource: place
    for place, family in enumerate(FAMILIES)
    for resource in (family.cards.inner_resources if family.cards is not None else ())
}
_PLACE_OF = {family.resource: place for place, family in enumerate(FAMILIES)}
_NAMES = frozenset(_PLACE_OF.keys() | INNER_RESOURCES.keys())


def find_place(family: str) -> int:
    """Find the place of a family in the table, -1 for none."""
    return _PLACE_OF.get(family, -1)


def is_of_devices(resource: str) -> bool:
    """Whether a resource requests devices of a family, or a part of them that only their driver reads."""
    return resource in _NAMES


def get_card_driver(driver: str) -> CardDriver:
    """Return the driver of cards that a decision names."""
    return _CARDS[driver]


def read_request(pod: wire.Pod) -> GpuAsk | None:
    """Read what a pod requests from the first family of which it requests devices.

    Raises:
        BadInput: a figure that the family's plugin could not serve.
    """
    if not any(map(_names_any, chain(pod.spec.containers, pod.spec.init_containers or ()))):
        return None
    asked = (family.reader.read_request(pod) for family in FAMILIES)
    return next((ask for ask in asked if ask is not None), None)


def _names_any(container: wire.Container) -> bool:
    """Whether a container names devices of any family, or parts of devices."""
    found = container.resources
    if found is None:
        return False
    return not (_NAMES.isdisjoint(found.requests or ()) and _NAMES.isdisjoint(found.limits or ()))


def is_served(annotations: Texts) -> bool:
    """Whether a plugin has served, or has failed to serve, the pod of these annotations."""
    return any(cards.is_served(annotations) for cards in _CARDS.values())


def is_locked(annotations: Texts) -> bool:
    """Whether a plugin of the node of these annotations is busy with a pod."""
    return any(cards.is_locked(annotations) for cards in _CARDS.values())


def sign_node(node: wire.Node, drivers: tuple[str, ...]) -> wire.Node:
    """Return the node with the marks of the plugins of these drivers."""
    for driver in drivers:
        node = _CARDS[driver].sign_node(node)
    return node
