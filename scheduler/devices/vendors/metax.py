"""Metax's cards as a whole, which a node reports by their number alone.

The plugin chooses the cards itself: of what is written on the pod only the number counts. HAMi ranks nodes by what they say of
the links between so many cards; Evenkeel leaves that out. Shares of Metax's cards are not supported.
"""

from __future__ import annotations

from scheduler.api import wire
from scheduler.api.cards import Card
from scheduler.api.hami_config.sections import DeviceConfig
from scheduler.devices.vendors.vendor import Vendor, read_offered
from scheduler.schema import columns as c

_WORD = "Metax-GPU"
_MIB, _CORES = 65_536, 100


def list_kinds(config: DeviceConfig) -> tuple[Vendor, ...]:
    """List the kinds of devices with the resources that a configuration gives them."""
    cards = config.metax.cards

    def read_number(node: wire.Node) -> tuple[str, ...]:
        n = read_offered(node, cards)
        return (node.metadata.name, str(n)) if n else ("", "")

    return (
        Vendor(
            word=_WORD,
            cards=cards,
            is_whole=True,
            to_allocate="hami.io/metax-gpu-devices-to-allocate",
            allocated="hami.io/metax-gpu-devices-allocated",
            read_node=read_number,
            list_cards=_list_cards,
            lock=None,
            chooser=c.TOGETHER,
        ),
    )


def _list_cards(words: tuple[str, ...]) -> tuple[Card, ...]:
    name, number = words
    return tuple(
        Card(id=f"{name}-metax-{i}", index=i, sharers=1, mib=_MIB, cores=_CORES, model=_WORD)
        for i in range(int(number))
    )
