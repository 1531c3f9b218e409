"""Enflame's GCU as whole cards, which a node reports by their number alone."""

from __future__ import annotations

from scheduler.api import wire
from scheduler.api.cards import Card
from scheduler.api.hami_config.sections import DeviceConfig
from scheduler.devices.vendors.vendor import Vendor, read_offered

_WHOLE = "GCU"
# HAMi counts the memory of a whole card in percent.
_MIB, _CORES = 100, 100


def list_kinds(config: DeviceConfig) -> tuple[Vendor, ...]:
    """List the kinds of devices with the resources that a configuration gives them."""
    section = config.enflame

    def read_number(node: wire.Node) -> tuple[str, ...]:
        n = read_offered(node, section.cards)
        return (node.metadata.name, str(n)) if n else ("", "")

    return (
        Vendor(
            word=_WHOLE,
            cards=section.cards,
            is_whole=True,
            to_allocate="hami.io/enflame-gcu-devices-to-allocate",
            allocated="hami.io/enflame-gcu-devices-allocated",
            read_node=read_number,
            list_cards=_list_whole,
            lock=None,
        ),
    )


def _list_whole(words: tuple[str, ...]) -> tuple[Card, ...]:
    name, number = words
    return tuple(
        Card(id=f"{name}-GCU-{i}", index=i, sharers=1, mib=_MIB, cores=_CORES, model=_WHOLE)
        for i in range(int(number))
    )
