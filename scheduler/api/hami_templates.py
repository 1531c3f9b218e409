"""HAMi's MIG up to v2.9: cards are cut by templates, and an instance is named by its template and its place there.

A template is a list of all instances that a card has at once. The tables of templates by model are in HAMi's device
configuration; the register says of a card only that it is in the mode ``mig``. A card in use keeps its template, and the
plugin cuts an idle card anew when a pod comes that names another one.

Source: HAMi v2.9 (Apache-2.0), ``CustomFilterRule`` and ``AddResourceUsage`` of ``pkg/device/nvidia/device.go``, and
``PlatternMIG`` and ``ExtractMigTemplatesFromUUID`` of ``pkg/device/devices.go``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from scheduler.api import hami_mig, limits, names
from scheduler.api.cards import NO_TEMPLATE, SLOTS_MAX, CardUse, Part, Place, Slots
from scheduler.errors import BadInput

# The instances of a template: name, MiB, number and core percent of those that are alike.
Template = Iterable[tuple[str, int, int, int]]
_SLICES = re.compile(r"(\d)g\..*", re.DOTALL)
_INSTANCE = re.compile(r"([^\[]+)\[(\d{1,3})-(\d{1,3})\]")
# What stands before the template in the name of an instance.
_OPENING = "["
_QUOTED_MAX = 80


def list_parts(templates: Iterable[Template]) -> tuple[Part, ...]:
    """List the parts of a card in the order in which HAMi tries them: as the tables name them."""
    return tuple(
        part
        for number, template in enumerate(templates)
        for part in _list_of_template(number, template)
    )


def _list_of_template(number: int, template: Template) -> Iterable[Part]:
    place = 0
    for name, mib, count, cores in template:
        told = _SLICES.fullmatch(name)
        # A profile of MIG says its slices; of another name nothing is known.
        slices = min(max(1, int(told[1])), SLOTS_MAX) if told else 1
        for _ in range(count):
            yield Part(name, mib, cores, place, 1, slices, number)
            place += 1


def find_card(device: str) -> str:
    """Find the UUID of the card of which a claim names an instance, or which it names."""
    return device.partition(_OPENING)[0]


def name_instances(slots: Slots) -> Slots:
    """Return the slots as HAMi names them: an instance of a template has its template and its place in its UUID."""

    def name(use: CardUse) -> CardUse:
        if use.place is None or use.place.template == NO_TEMPLATE:
            return use
        return use._replace(uuid=f"{use.uuid}[{use.place.template}-{use.place.start}]", place=None)

    return tuple(tuple(map(name, slot)) for slot in slots)


def read_instances(slots: Slots) -> Slots:
    """Return the slots with the places that are in the UUIDs.

    Raises:
        BadInput: a UUID has something else than a template and a place behind it.
    """
    return tuple(tuple(map(_read_instance, slot)) for slot in slots)


def hide_instances(slots: Slots) -> Slots:
    """Return the slots without what is told of instances, which are at unknown places."""
    bare = tuple(tuple(use._replace(uuid=find_card(use.uuid)) for use in slot) for slot in slots)
    return hami_mig.hide_places(bare)


def _read_instance(use: CardUse) -> CardUse:
    if _OPENING not in use.uuid:
        return use
    told = _INSTANCE.fullmatch(use.uuid)
    if told is None:
        shown = limits.shorten(use.uuid, _QUOTED_MAX)
        raise BadInput(
            f"metadata.annotations[{names.HAMI_ALLOCATED}]",
            f'device "{shown}" is not named as HAMi names a MIG instance: UUID[template-place]',
        )
    return use._replace(uuid=told[1], place=Place("", int(told[3]), 1, int(told[2])))
