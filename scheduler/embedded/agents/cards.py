"""GPU cards of a node: the inventory of a fake node, and how HAMi's plugin announces the cards.

The inventory is in an annotation of the node (the real plugin asks the driver), so that
agents need nothing but the API server to know what they play. A node that was copied from
another cluster has only the register, which then is the inventory.
"""

import hashlib
import json
import uuid
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

Json = dict[str, Any]

HARDWARE = "evenkeel.dev/embedded-hardware"
REGISTER = "hami.io/node-nvidia-register"
HANDSHAKE = "hami.io/node-handshake"
RESOURCE = "nvidia.com/gpu"
FORMS = ("json", "text7", "text9")
_NUMBERS = ("index", "count", "devmem", "devcore", "numa")
_TEXT_FIELDS = ("id", "count", "devmem", "devcore", "type", "numa", "health", "index", "mode")

_NAMES = uuid.UUID("6c1a1f52-4a3e-5a55-9a0e-0d6f3c0f9a11")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One physical card; the names of the fields are those of the JSON encoding."""

    id: str
    index: int = 0
    count: int = 10
    devmem: int = 15_360
    devcore: int = 100
    type: str = "NVIDIA-Tesla T4"
    numa: int = 0
    mode: str = "hami-core"
    health: bool = True
    migProfiles: tuple[Json, ...] = ()  # noqa: N815 - the name of the encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """The cards of a node and how its plugin registers them: json, text7 or text9.

    ``register`` is the register that the cards were read from, empty if the node has an inventory.
    """

    cards: tuple[Card, ...]
    form: str = "json"
    register: str = ""

    def write_annotation(self) -> str:
        """Return the inventory as text for the node's annotation."""
        listed = [asdict(card) for card in self.cards]
        return json.dumps({"form": self.form, "cards": listed}, separators=(",", ":"))

    def count_allocatable(self) -> tuple[int, int]:
        """Return the kubelet's capacity and allocatable: sharers of all and of healthy cards."""
        capacity = sum(card.count for card in self.cards)
        return capacity, sum(card.count for card in self.cards if card.health)


def read_hardware(node: Json) -> Hardware | None:
    """Return the cards of a node, from its inventory or else from its register; None if it has neither."""
    annotations = node["metadata"].get("annotations") or {}
    text = annotations.get(HARDWARE)
    if not text:
        return _read_register(annotations.get(REGISTER) or "")
    stored = json.loads(text)
    return Hardware(cards=tuple(Card(**card) for card in stored["cards"]), form=stored["form"])


def _read_register(register: str) -> Hardware | None:
    """Return the cards of a register; None for one that cannot be read, as on a node without a plugin."""
    text = register.strip()
    try:
        if text.startswith("["):
            records = msgspec.json.decode(text, type=list[Json])
            form, cards = "json", tuple(_read_json_card(record) for record in records)
        else:
            lines = [line.split(",") for line in text.split(":") if line]
            form = "text9" if lines and len(lines[0]) == len(_TEXT_FIELDS) else "text7"
            cards = tuple(_read_text_card(line) for line in lines)
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError):
        return None
    return Hardware(cards=cards, form=form, register=register) if cards else None


def _read_json_card(record: Json) -> Card:
    # Fields that Go's omitempty left out are zero, and HAMi may write fields that are not needed here.
    numbers: dict[str, Any] = {name: int(record.get(name, 0)) for name in _NUMBERS}
    return Card(
        id=record["id"],
        type=record.get("type", ""),
        mode=record.get("mode", ""),
        health=bool(record.get("health", False)),
        migProfiles=tuple(record.get("migProfiles", ())),
        **numbers,
    )


def _read_text_card(record: list[str]) -> Card:
    told = dict(zip(_TEXT_FIELDS, record, strict=False))
    numbers: dict[str, Any] = {name: int(told.get(name, "0")) for name in _NUMBERS}
    return Card(
        id=told["id"],
        type=told["type"],
        mode=told.get("mode", ""),
        health=told["health"] == "true",
        **numbers,
    )


def make_card_id(node: str, index: int) -> str:
    """Return a UUID that is the same on every run."""
    return f"GPU-{uuid.uuid5(_NAMES, f'{node}/{index}')}"


def write_register(hardware: Hardware, order: str = "") -> str:
    """Return the value of the register annotation.

    The real plugin walks a Go map, so the order differs from registration to registration: each
    text in ``order`` gives another order. Without it cards are sorted by index. A register that is the
    inventory stays as it is.
    """
    if hardware.register:
        return hardware.register
    cards = list(hardware.cards)
    if order:
        cards.sort(key=lambda card: hashlib.sha256(f"{order}/{card.id}".encode()).digest())
    if hardware.form == "json":
        return json.dumps([_write_json_record(card) for card in cards], separators=(",", ":"))
    if hardware.form not in FORMS:
        raise ValueError(f"no register form {hardware.form!r}, choose from {', '.join(FORMS)}")
    return "".join(_write_text_record(card, nine=hardware.form == "text9") for card in cards)


def _write_json_record(card: Card) -> Json:
    # Go's omitempty: index 0, numa 0, an empty mode and health false are left out.
    return {name: value for name, value in asdict(card).items() if value}


def _write_text_record(card: Card, *, nine: bool) -> str:
    health = "true" if card.health else "false"
    record = f"{card.id},{card.count},{card.devmem},{card.devcore},{card.type},{card.numa},{health}"
    return f"{record},{card.index},{card.mode}:" if nine else f"{record}:"
