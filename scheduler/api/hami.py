"""HAMi's encodings on nodes and pods, for NVIDIA.

Protocol of HAMi v2.10 (Apache-2.0, Project-HAMi/HAMi), with the older text forms of the node
annotation. HAMi's Go structs omit zero values, hence the defaults below: an absent ``health``
means *unhealthy*, an absent ``mode`` is the empty text, which every vgpu-mode request matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from scheduler.api import cards as devices
from scheduler.api import names
from scheduler.api.cards import CardUse, Slots
from scheduler.api.limits import CLAIM_CARDS, CLAIM_CONTAINERS, DEFAULT, shortened
from scheduler.errors import BadInput

VENDOR = "NVIDIA"
# As Go's ParseBool reads them, upper or lower case.
_HEALTH = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
# DNS subdomains: names of pods. Names of namespaces are stricter still.
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_SEVEN, _NINE, _RECORD_FIELDS = 7, 9, 4
# HAMi's own figures are int32.
_FIGURE_MAX = 2**31 - 1
# The most bytes of one card in a claim: the claim is kept with its pod, and no UUID is a tenth as long.
_RECORD_MAX = 1000
# An error quotes at most so many bytes of what somebody wrote.
_QUOTED_MAX = 80


# What ends each part of a claim, and how many such parts are read.
_MOST = (
    (";", CLAIM_CONTAINERS, "containers"),
    (":", CLAIM_CARDS, "cards"),
    (",", DEFAULT.values, "fields"),
)


class Card(msgspec.Struct, gc=False, frozen=True):
    """One physical GPU as its node registers it.

    ``devmem`` is MiB and ``devcore`` percent, both after the plugin's scaling; ``count`` is the
    number of containers that may share the card.
    """

    id: str
    index: int = 0
    count: int = 0
    devmem: int = 0
    devcore: int = 0
    type: str = ""
    numa: int = 0
    mode: str = ""
    health: bool = False


_cards = msgspec.json.Decoder(list[Card])


def decode_register(text: str) -> tuple[Card, ...]:
    """The cards of ``hami.io/node-nvidia-register``, sorted by index, then UUID.

    JSON when the first non-blank character is ``[`` (device plugin ≥ v2.8), else the text form:
    records that end in ``:`` with seven fields (uuid, count, mem, cores, type, numa, healthy) or
    nine (…, index, mode). Seven-field records all have index 0.

    Raises:
        BadInput: neither form, or a card listed twice.
    """
    field = f"metadata.annotations[{names.HAMI_REGISTER}]"
    stripped = text.strip()
    if stripped.startswith("["):
        try:
            cards = _cards.decode(stripped)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise BadInput(field, f"not a JSON list of cards as HAMi writes it: {error}") from error
    else:
        cards = [_text_card(field, record) for record in _records(field, stripped)]
    for card in cards:
        figures = (card.index, card.count, card.devmem, card.devcore)
        if not card.id or min(figures) < 0 or max(*figures, abs(card.numa)) > _FIGURE_MAX:
            raise BadInput(
                field,
                f'card "{_quoted(card.id)}" needs an id, and index, count, devmem, devcore within '
                f"0..{_FIGURE_MAX}",
            )
    if len({card.id for card in cards}) != len(cards):
        raise BadInput(field, "a card is listed twice; every id must be unique on its node")
    return tuple(sorted(cards, key=lambda card: (card.index, card.id)))


def encode_register(cards: Iterable[devices.Card]) -> str:
    """The register of these cards, in the form of JSON."""
    return msgspec.json.encode(
        [
            Card(
                id=card.id,
                index=card.index,
                count=card.sharers,
                devmem=card.mib,
                devcore=card.cores,
                type=card.model,
                numa=card.numa,
                mode=card.mode,
                health=card.healthy,
            )
            for card in cards
        ]
    ).decode()


def _records(field: str, text: str) -> list[str]:
    if ":" not in text:
        raise BadInput(field, 'neither a JSON list nor text records that end in ":"')
    return [record for record in text.split(":") if record]


def _text_card(field: str, record: str) -> Card:
    parts = record.split(",")
    if len(parts) not in {_SEVEN, _NINE}:
        raise BadInput(
            field, f'record "{_quoted(record)}" has {len(parts)} fields; 7 or 9 are allowed'
        )
    try:
        return Card(
            id=parts[0],
            count=int(parts[1]),
            devmem=int(parts[2]),
            devcore=int(parts[3]),
            type=parts[4],
            numa=int(parts[5]),
            health=_HEALTH[parts[6].lower()],
            index=int(parts[7]) if len(parts) == _NINE else 0,
            mode=parts[8] if len(parts) == _NINE else "hami-core",
        )
    except (ValueError, KeyError) as error:
        problem = f'record "{_quoted(record)}": {_quoted(str(error))} is not what HAMi writes'
        raise BadInput(field, problem) from error


def encode_devices(slots: Iterable[Iterable[CardUse]]) -> str:
    """The text of ``vgpu-devices-*``: one slot per container, init containers first.

    A container without a card has an empty slot; the plugin finds a container by its position.
    """
    return "".join(
        "".join(f"{use.uuid},{VENDOR},{use.mem_mib},{use.cores}:" for use in slot) + ";"
        for slot in slots
    )


def decode_devices(text: str) -> Slots:
    """What ``encode_devices`` wrote, slot by slot.

    Whoever creates a pod with a node in it may write this, as much as an annotation can hold, and no
    scheduler is asked. So a text with too much in it is not taken apart.

    Raises:
        BadInput: more than ``limits`` allows of containers, of cards in all of them, or of
            fields; a record with fewer than four fields or with figures that are not integers.
    """
    field = f"metadata.annotations[{names.HAMI_ALLOCATED}]"
    for separator, most, what in _MOST:
        if text.count(separator) > most:
            raise BadInput(field, f"has more than {most} {what}, the maximum")
    slots = text.split(";")
    if slots and not slots[-1]:
        slots.pop()
    return tuple(
        tuple(_use(field, record) for record in slot.split(":") if record) for slot in slots
    )


def _quoted(text: str) -> str:
    return shortened(text, _QUOTED_MAX)


def _use(field: str, record: str) -> CardUse:
    try:
        if len(record) > _RECORD_MAX:
            raise ValueError(f"has more than {_RECORD_MAX} characters, the maximum")
        parts = record.split(",")
        if len(parts) < _RECORD_FIELDS:
            raise ValueError(f"{len(parts)} fields where uuid,vendor,MiB,cores are needed")
        mem, cores = int(parts[2]), int(parts[3])
        if min(mem, cores) < 0 or max(mem, cores) > _FIGURE_MAX:
            raise ValueError(f"MiB and cores must be within 0..{_FIGURE_MAX}")
    except ValueError as error:
        raise BadInput(field, f'record "{_quoted(record)}": {_quoted(str(error))}') from error
    return CardUse(parts[0], mem, cores)


def bind_annotations(node: str, slots: Slots, now: int) -> dict[str, str]:
    """Everything a scheduler tells HAMi's device plugin about a pod, to be written with its node."""
    devices = encode_devices(slots)
    return {
        names.HAMI_NODE: node,
        names.HAMI_TIME: str(now),
        names.HAMI_TO_ALLOCATE: devices,
        names.HAMI_ALLOCATED: devices,
        names.HAMI_BIND_PHASE: names.BIND_ALLOCATING,
        names.HAMI_BIND_TIME: str(now),
    }


def lock_holder(text: str) -> tuple[str, str, str] | None:
    """Time, namespace and pod name of ``hami.io/mutex.lock``; None for the legacy bare time.

    Raises:
        BadInput: neither ``time`` nor ``time,namespace,name``, both of them names as Kubernetes has them.
    """
    parts = text.split(",")
    if len(parts) == 1:
        return None
    if len(parts) != 3 or not all(_NAME.fullmatch(part) for part in parts[1:]):
        raise BadInput(
            f"metadata.annotations[{names.HAMI_LOCK}]",
            f'"{_quoted(text)}" is neither a time nor "time,namespace,pod"',
        )
    return parts[0], parts[1], parts[2]
