"""AMD's cards on nodes whose plugin works with HAMi: shares of memory, and percentages of a card's compute units.

On other nodes AMD's devices are whole ones, see ``devices/counted``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from scheduler.api.cards import Card
from scheduler.api.hami_config.sections import DeviceConfig
from scheduler.devices.vendors.vendor import Vendor, list_registered
from scheduler.errors import BadInput

_REGISTER = "hami.io/node-amd-register"
_records = msgspec.json.Decoder(list[dict[str, Any]])


def list_kinds(config: DeviceConfig) -> tuple[Vendor, ...]:
    """List the kinds of devices with the resources that a configuration gives them."""
    section = config.amd
    return (
        Vendor(
            word="AMD",
            cards=section.cards,
            memory=section.memory,
            cores=section.cores,
            is_of_cores=True,
            names_models=True,
            register=_REGISTER,
            to_allocate="hami.io/amd-devices-to-allocate",
            allocated="hami.io/amd-devices-allocated",
            use_types="amd.com/use-gputype",
            nouse_types="amd.com/nouse-gputype",
            use_ids=("amd.com/use-gpu-uuid",),
            nouse_ids=("amd.com/nouse-gpu-uuid",),
            list_cards=_list_cards,
        ),
    )


def _list_cards(words: tuple[str, ...]) -> tuple[Card, ...]:
    """List the cards of the register; HAMi reads its keys in upper and lower case.

    Raises:
        BadInput: the register is no JSON, or has a model that claims cannot name.
    """
    try:
        records = _records.decode(words[0])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadInput(
            f"metadata.annotations[{_REGISTER}]", f"not a JSON list of cards: {error}"
        ) from error
    lowered = [{key.lower(): value for key, value in one.items()} for one in records]
    cards = list_registered(msgspec.json.encode(lowered).decode(), _REGISTER, is_unmeasured=False)
    for card in cards:
        if not card.model or set(card.model) & set(",:;"):
            raise BadInput(
                f"metadata.annotations[{_REGISTER}]",
                f'card "{card.id[:80]}" needs a type without any of , : ;',
            )
    return cards
