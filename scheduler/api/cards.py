"""Devices in the form that all drivers share: a card, and the part of a card that a container holds."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

# The number of the template of parts and places that belong to none.
NO_TEMPLATE = -1
# A card has no more slots, and is cut by one of no more templates.
SLOTS_MAX, TEMPLATES_MAX = 8, 20


class Part(NamedTuple):
    """A part that can be cut out of a card: an instance of MIG at one place.

    Some cards are cut by templates: each names all the parts that the card has at once, and a card has only parts of one
    template as long as any of them is in use. A slot of such a card is a part's place in its template.

    Attributes:
        profile: the name of its kind; parts of one kind differ in their place only.
        mib, cores: what whoever gets the part has of the card.
        start, size: the first slot of the card that the part takes, and how many.
        slices: what the part is worth; a card as a whole is worth as much as its largest part.
        template: the number of its template.
    """

    profile: str
    mib: int
    cores: int
    start: int
    size: int
    slices: int = 1
    template: int = NO_TEMPLATE


class Card(msgspec.Struct, frozen=True, gc=False):
    """One device of a node that can be allocated by itself, whole or in parts.

    Attributes:
        id: unique on its node.
        index: its place on the node.
        sharers: how many containers may share it.
        mib, cores: its memory, and its compute in percent, as its driver allocates them.
        model, mode: words by which pods choose; either may be empty.
        numa: the number of its NUMA node.
        healthy: it may be allocated.
        group: equal for devices that belong together; empty where devices do not.
        is_carved: it is cut into partitions, and no part of it can be allocated as it is.
        links: how well it is linked with other devices, by their IDs; empty where nothing is known of that.
        parts: what can be cut out of it, those first that are to be tried first; empty if nothing is known of that.
        by_number: what its vendor adds to the score of the node for a pod that gets as many cards as come up to this one, if
            nodes are packed and if pods are spread.
    """

    id: str
    index: int
    sharers: int
    mib: int
    cores: int
    model: str
    mode: str = ""
    numa: int = 0
    healthy: bool = True
    is_carved: bool = False
    group: str = ""
    parts: tuple[Part, ...] = ()
    links: tuple[tuple[str, int], ...] = ()
    by_number: tuple[int, int] = (0, 0)


class Sharing(NamedTuple):
    """With which pods a pod shares cards, where not with all of them; marks are those of ``schema.marks``.

    Attributes:
        mark: what it adds to the marks of its cards.
        closing: marks that close a card to it.
        opening: marks of which a card in use must have one; 0: it need not.
        keeping: marks by which a card has the pod's mode, whatever was reported of the card.
        coreless: it takes no cores, and cards without free ones will do.
        name: what messages call the mode that its cards must have; empty for the mode that the pod names.
    """

    mark: int = 0
    closing: int = 0
    opening: int = 0
    keeping: int = 0
    coreless: bool = False
    name: str = ""


class Place(NamedTuple):
    """Where a part of a card is, as in ``Part``; with a template, the profile may not be known."""

    profile: str
    start: int
    size: int
    template: int = NO_TEMPLATE

    def is_at(self, place: Place) -> bool:
        """Whether a part is at a place that somebody names; of a place with a template the profile need not be known."""
        if place.template != NO_TEMPLATE and not place.profile:
            return self._replace(profile="") == place
        return self == place


class Identity(NamedTuple):
    """Under which names the driver of the hardware knows a part that was cut out of a card."""

    uuid: str
    gpu_instance: int
    compute_instance: int


class CardUse(NamedTuple):
    """What one container holds on one card.

    ``model`` is empty where claims do not say it; ``place`` is the part that was cut out of the card for it, None for none;
    ``identity`` is None until the plugin has made the part.
    """

    uuid: str
    mem_mib: int
    cores: int
    model: str = ""
    place: Place | None = None
    identity: Identity | None = None


# What the containers of a pod hold, init containers first: a slot for each, empty for a container without cards.
Slots = tuple[tuple[CardUse, ...], ...]


class Grant(NamedTuple):
    """The devices of one driver that a pod gets or holds.

    Attributes:
        driver: the name of the driver.
        slots: the devices of each container.
        of_pod: what the driver needs of the pod for its answer, see ``GpuAsk``.
    """

    driver: str
    slots: Slots
    of_pod: tuple[str, ...] = ()


Grants = tuple[Grant, ...]


def list_uses(grants: Grants) -> list[CardUse]:
    """List what a pod gets or holds of each device, whichever container has the device."""
    return [use for grant in grants for slot in grant.slots for use in slot]


def find_slots(grants: Grants, driver: str) -> Slots:
    """Find the devices of a driver; nothing if there are none."""
    return next((grant.slots for grant in grants if grant.driver == driver), ())
