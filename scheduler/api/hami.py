"""HAMi's encodings on nodes and pods, for NVIDIA.

Protocol of HAMi v2.10 (Apache-2.0, Project-HAMi/HAMi), with the older text forms of the node
annotation. HAMi's Go structs omit zero values, hence the defaults below: an absent ``health``
means *unhealthy*, an absent ``mode`` is the empty text, which every vgpu-mode request matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from scheduler.api import cards as devices
from scheduler.api import hami_mig, names
from scheduler.api.cards import CardUse, Slots
from scheduler.api.limits import CLAIM_CARDS, CLAIM_CONTAINERS, DEFAULT, shorten
from scheduler.errors import BadInput

VENDOR = "NVIDIA"
# As Go's ParseBool reads them.
FLAGS = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)
# As Go reads figures: Python reads digits of every script, and spaces and underscores among them.
_FIGURE = re.compile(r"[-+]?[0-9]{1,19}")
# DNS subdomains: the names of pods. Names of namespaces are stricter still.
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_SEVEN, _NINE, _RECORD_FIELDS = 7, 9, 4
# HAMi's own figures are int32.
_FIGURE_MAX = 2**31 - 1
# The most bytes of one card in a claim. The claim is kept with its pod; UUIDs are less than a tenth as long.
_RECORD_MAX = 1000
# An error quotes at most so many bytes of a text.
_QUOTED_MAX = 80


# The separator of each part of a claim, and how many such parts are read.
_MOST = (
    (";", CLAIM_CONTAINERS, "containers"),
    (":", CLAIM_CARDS, "cards"),
    (",", DEFAULT.values, "fields"),
)


class Card(msgspec.Struct, gc=False, frozen=True, omit_defaults=True):
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
    mig_profiles: tuple[hami_mig.Profile, ...] | None = msgspec.field(
        name="migProfiles", default=None
    )


_cards = msgspec.json.Decoder(list[Card])


def decode_register(text: str, key: str = names.HAMI_REGISTER) -> tuple[Card, ...]:
    """Decode the cards of a register, which is the annotation ``key`` of a node, sorted by index, then UUID.

    JSON when the first non-blank character is ``[`` (device plugin ≥ v2.8), else the text form:
    records that end in ``:`` with seven fields (uuid, count, mem, cores, type, numa, healthy) or
    nine (…, index, mode). Seven-field records all have index 0.

    Raises:
        BadInput: the text has neither form, or lists a card twice.
    """
    field = f"metadata.annotations[{key}]"
    stripped = text.strip()
    if stripped.startswith("["):
        try:
            cards = _cards.decode(stripped)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise BadInput(field, f"not a JSON list of cards as HAMi writes it: {error}") from error
    else:
        cards = [_read_text_card(field, record) for record in _split_records(field, stripped)]
    for card in cards:
        figures = (card.index, card.count, card.devmem, card.devcore)
        if not card.id or min(figures) < 0 or max(*figures, abs(card.numa)) > _FIGURE_MAX:
            raise BadInput(
                field,
                f'card "{_quote(card.id)}" needs an id, and index, count, devmem, devcore within '
                f"0..{_FIGURE_MAX}",
            )
    if len({card.id for card in cards}) != len(cards):
        raise BadInput(field, "a card is listed twice; every id must be unique on its node")
    return tuple(sorted(cards, key=lambda card: (card.index, card.id)))


def encode_register(cards: Iterable[devices.Card]) -> str:
    """Encode the register of these cards as JSON."""
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
                mode="mig" if card.is_carved else card.mode,
                health=card.healthy,
                mig_profiles=hami_mig.list_profiles(card.parts) or None,
            )
            for card in cards
        ]
    ).decode()


def _split_records(field: str, text: str) -> list[str]:
    if ":" not in text:
        raise BadInput(field, 'neither a JSON list nor text records that end in ":"')
    return [record for record in text.split(":") if record]


def _read_text_card(field: str, record: str) -> Card:
    parts = record.split(",")
    if len(parts) not in {_SEVEN, _NINE}:
        raise BadInput(
            field, f'record "{_quote(record)}" has {len(parts)} fields; 7 or 9 are allowed'
        )
    try:
        return Card(
            id=parts[0],
            count=_read_figure(parts[1]),
            devmem=_read_figure(parts[2]),
            devcore=_read_figure(parts[3]),
            type=parts[4],
            numa=_read_figure(parts[5]),
            health=FLAGS[parts[6]],
            index=_read_figure(parts[7]) if len(parts) == _NINE else 0,
            mode=parts[8] if len(parts) == _NINE else "hami-core",
        )
    except (ValueError, KeyError) as error:
        problem = f'record "{_quote(record)}": {_quote(str(error))} is not what HAMi writes'
        raise BadInput(field, problem) from error


def encode_devices(slots: Iterable[Iterable[CardUse]], word: str = VENDOR) -> str:
    """Encode the text of ``vgpu-devices-*``: one slot per container, init containers first; ``word`` is the vendor's.

    It stands for each device whose model is not said.

    A container without a card has an empty slot; the plugin finds a container by its position.
    """
    return "".join(
        "".join(f"{use.uuid},{use.model or word},{use.mem_mib},{use.cores}:" for use in slot) + ";"
        for slot in slots
    )


def decode_devices(
    text: str, key: str = names.HAMI_ALLOCATED, *, has_models: bool = False
) -> Slots:
    """Decode what ``encode_devices`` wrote in the annotation ``key``, slot by slot; ``has_models``: it names models.

    Everybody who may create a pod may write this annotation, as long as an annotation can be, and the node into
    the same pod, so that no scheduler sees it first. So a text with too many parts is not split.

    Raises:
        BadInput: more than ``limits`` allows of containers, of cards in all of them, or of
            fields; a record with fewer than four fields or with figures that are not integers.
    """
    field = f"metadata.annotations[{key}]"
    for separator, most, what in _MOST:
        if text.count(separator) > most:
            raise BadInput(field, f"has more than {most} {what}, the maximum")
    slots = text.split(";")
    if slots and not slots[-1]:
        slots.pop()
    return tuple(
        tuple(_read_use(field, record, has_models) for record in slot.split(":") if record)
        for slot in slots
    )


def _quote(text: str) -> str:
    return shorten(text, _QUOTED_MAX)


def _read_figure(text: str) -> int:
    """Read a figure as HAMi does.

    Raises:
        ValueError: it is not what HAMi writes.
    """
    if not _FIGURE.fullmatch(text):
        raise ValueError(f"{text!r}, no figure,")
    return int(text)


def _read_use(field: str, record: str, has_model: bool) -> CardUse:
    try:
        if len(record) > _RECORD_MAX:
            raise ValueError(f"has more than {_RECORD_MAX} characters, the maximum")
        parts = record.split(",")
        if len(parts) < _RECORD_FIELDS:
            raise ValueError(f"{len(parts)} fields where uuid,vendor,MiB,cores are needed")
        mem, cores = _read_figure(parts[2]), _read_figure(parts[3])
        if min(mem, cores) < 0 or max(mem, cores) > _FIGURE_MAX:
            raise ValueError(f"MiB and cores must be within 0..{_FIGURE_MAX}")
    except ValueError as error:
        raise BadInput(field, f'record "{_quote(record)}": {_quote(str(error))}') from error
    return CardUse(parts[0], mem, cores, parts[1] if has_model else "")


def make_bind_annotations(node: str, slots: Slots, now: int) -> dict[str, str]:
    """Make the annotations by which a scheduler tells HAMi's device plugin about a pod, to be written with its node."""
    devices = encode_devices(slots)
    return {
        **make_common_annotations(node, now),
        names.HAMI_TO_ALLOCATE: devices,
        names.HAMI_ALLOCATED: devices,
    }


def make_common_annotations(node: str, now: int) -> dict[str, str]:
    """Make the annotations of a bind that are the same for the devices of all vendors."""
    return {
        names.HAMI_NODE: node,
        names.HAMI_TIME: str(now),
        names.HAMI_BIND_PHASE: names.BIND_ALLOCATING,
        names.HAMI_BIND_TIME: str(now),
    }


def place_slots(slots: Slots, asking: Sequence[bool]) -> Slots:
    """Return a slot for each container; ``asking`` says which containers request devices.

    HAMi 2.10.0 leaves out the slots of containers without cards: its slots are of the containers that request cards.
    """
    if len(slots) == len(asking):
        return slots
    told = iter([uses for uses in slots if uses])
    return tuple(next(told, ()) if asks else () for asks in asking)


def read_lock_holder(text: str) -> tuple[str, str, str] | None:
    """Read time, namespace and pod name from ``hami.io/mutex.lock``; None for the legacy bare time.

    Raises:
        BadInput: the text is neither ``time`` nor ``time,namespace,name`` with names that Kubernetes allows.
    """
    parts = text.split(",")
    if len(parts) == 1:
        return None
    if len(parts) != 3 or not all(_NAME.fullmatch(part) for part in parts[1:]):
        raise BadInput(
            f"metadata.annotations[{names.HAMI_LOCK}]",
            f'"{_quote(text)}" is neither a time nor "time,namespace,pod"',
        )
    return parts[0], parts[1], parts[2]
