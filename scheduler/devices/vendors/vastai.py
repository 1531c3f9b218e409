"""Vastai's cards, whole or die by die: shared by a number of containers, without any limit of memory or cores.

Dies are chosen by the cards that they are on, see ``kernels/devices/groups``. HAMi's node policies add to a node's score which
share of a container's dies would be on one card.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import structs

from scheduler.api.cards import Card
from scheduler.api.hami_config.sections import DeviceConfig
from scheduler.devices.contract import Shown
from scheduler.devices.vendors.vendor import Vendor, list_registered
from scheduler.schema import choice_scores
from scheduler.schema import columns as c

_REGISTER = "hami.io/node-va-register"


class _Die(msgspec.Struct, gc=False, frozen=True):
    """What the register says of a device besides HAMi's own fields."""

    id: str
    custominfo: Any = None

    @property
    def card(self) -> str:
        """The card that the die is on; empty for a whole card."""
        told = self.custominfo if isinstance(self.custominfo, dict) else {}
        card = told.get("AIC") if told.get("DeviceStrategy") == "die" else ""
        return card if isinstance(card, str) else ""


_dies = msgspec.json.Decoder(list[_Die])


def list_kinds(config: DeviceConfig) -> tuple[Vendor, ...]:
    """List the kinds of devices with the resources that a configuration gives them."""
    return (
        Vendor(
            word="Vastai",
            cards=config.vastai.cards,
            is_unmeasured=True,
            register=_REGISTER,
            to_allocate="hami.io/Vastai-devices-to-allocate",
            allocated="hami.io/Vastai-devices-allocated",
            use_ids=("vastaitech.com/use-gpuuuid",),
            nouse_ids=("vastaitech.com/nouse-gpuuuid",),
            list_cards=_list_cards,
            chooser=c.GROUPS,
            shown=Shown(has_memory=False),
            scorer=choice_scores.BY_GROUPS,
        ),
    )


def _list_cards(words: tuple[str, ...]) -> tuple[Card, ...]:
    text = words[0].strip()
    found = list_registered(text, _REGISTER, is_unmeasured=True)
    dies = _dies.decode(text) if text.startswith("[") else []
    card_of = {one.id: one.card for one in dies}
    return tuple(structs.replace(one, group=card_of.get(one.id, "")) for one in found)
