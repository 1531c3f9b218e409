"""Kunlun's XPU: whole cards, which a node reports by their number alone, and shares of cards.

Either are chosen by the links between the cards, see ``kernels/devices/islands``. HAMi's node policies prefer nodes for whole
cards by the islands that these break.
"""

from __future__ import annotations

from msgspec import structs

from scheduler.api import wire
from scheduler.api.cards import Card
from scheduler.api.hami_config.sections import DeviceConfig
from scheduler.devices.vendors.vendor import (
    Answer,
    Vendor,
    find_last_indices,
    list_registered,
    read_offered,
)
from scheduler.schema import choice_scores
from scheduler.schema import columns as c

_MIB, _CORES, _SHARERS = 98_304, 100, 100
# A card can be cut into quarters or halves.
_SIZES = 24_576, 49_152, _MIB
_REGISTER = "hami.io/node-register-xpu"
_USE = "hami.io/use-xpu-uuid", "baidu.com/use-gpuuuid"
_NOUSE = "hami.io/no-use-xpu-uuid", "baidu.com/nouse-gpuuuid"


def list_kinds(config: DeviceConfig) -> tuple[Vendor, ...]:
    """List the kinds of devices with the resources that a configuration gives them."""
    section = config.kunlun

    def read_number(node: wire.Node) -> tuple[str, ...]:
        n = read_offered(node, section.cards)
        return (node.metadata.name, str(n)) if n else ("", "")

    whole = Vendor(
        word="kunlun",
        cards=section.cards,
        is_whole=True,
        allocated="hami.io/kunlun-allocated",
        use_ids=_USE,
        nouse_ids=_NOUSE,
        read_node=read_number,
        list_cards=_list_whole,
        write_more=_write_indices,
        lock=None,
        chooser=c.ISLANDS,
        scorer=choice_scores.BY_ISLANDS,
    )
    shares = Vendor(
        word="XPU",
        cards=section.share_count,
        memory=section.share_memory,
        register=_REGISTER,
        to_allocate="hami.io/xpu-devices-to-allocate",
        allocated="hami.io/xpu-devices-allocated",
        use_ids=_USE,
        nouse_ids=_NOUSE,
        fit_size=fit_size,
        list_cards=_list_shared,
        chooser=c.ISLANDS,
    )
    return whole, shares


def fit_size(mib: int) -> tuple[int, int]:
    """Find the size of the part that has so many MiB: its MiB, and its percent of the cores."""
    size = next((size for size in _SIZES if mib <= size), _MIB)
    return size, size * _CORES // _MIB


def _list_whole(words: tuple[str, ...]) -> tuple[Card, ...]:
    name, n = words[0], int(words[1])
    return tuple(
        Card(
            id=f"{name}-kunlun-{i}",
            index=i,
            sharers=_SHARERS,
            mib=_MIB,
            cores=_CORES,
            model="kunlun",
            numa=1 if i >= n // 2 else 0,
        )
        for i in range(n)
    )


def _list_shared(words: tuple[str, ...]) -> tuple[Card, ...]:
    """List the cards of the register; the sizes of parts say how many containers share a card, not its number of sharers."""
    found = list_registered(words[0], _REGISTER, is_unmeasured=False)
    return tuple(structs.replace(card, sharers=_SHARERS) for card in found)


def _write_indices(answer: Answer) -> dict[str, str]:
    """Write the indices of the cards of the last container that has any, as HAMi does."""
    return {"BAIDU_COM_DEVICE_IDX": find_last_indices(answer.slots)}
