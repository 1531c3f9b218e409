"""Cambricon's MLU: shares of memory and cores. A node reports the cores and the memory of all its cards.

The plugin serves pods under a lock of its own, and learns of the first card of a pod only.
"""

from __future__ import annotations

from scheduler.api.cards import Card
from scheduler.api.hami_config.sections import DeviceConfig
from scheduler.devices.contract import Lock
from scheduler.devices.vendors.vendor import Answer, Vendor, read_totals

_WORD = "MLU"
_CORES, _UNIT_MIB, _SHARERS = 100, 256, 100
_LOCK = Lock("cambricon.com/dsmlu.lock", names_pod=False, seconds=120.0)


def list_kinds(config: DeviceConfig) -> tuple[Vendor, ...]:
    """List the kinds of devices with the resources that a configuration gives them."""
    section = config.cambricon

    return (
        Vendor(
            word=_WORD,
            cards=section.cards,
            memory=section.memory,
            cores=section.cores,
            mib=_UNIT_MIB,
            to_allocate="hami.io/cambricon-mlu-devices-to-allocate",
            allocated="hami.io/cambricon-mlu-devices-allocated",
            use_ids=("cambricon.com/use-gpuuuid",),
            nouse_ids=("cambricon.com/nouse-gpuuuid",),
            read_node=lambda node: read_totals(node, section.cores, section.memory),
            list_cards=_list_cards,
            write_more=_write_profile,
            lock=_LOCK,
        ),
    )


def _list_cards(words: tuple[str, ...]) -> tuple[Card, ...]:
    """List a card for every 100 cores, with its part of the memory; a rest of less than 100 cores counts as a card, too."""
    name, cores, memory = words[0], int(words[1]), int(words[2])
    return tuple(
        Card(
            id=f"{name}-cambricon-mlu-{i}",
            index=i,
            sharers=_SHARERS,
            mib=memory * _UNIT_MIB * _CORES // cores,
            cores=_CORES,
            model=_WORD,
        )
        for i in range(-(-cores // _CORES))
    )


def _write_profile(answer: Answer) -> dict[str, str]:
    """Write index, cores and units of memory of the first card of the pod."""
    first = next((uses[0] for uses in answer.slots if uses), None)
    if first is None:
        return {}
    index = first.uuid.rpartition("-")[2]
    return {
        "CAMBRICON_DSMLU_ASSIGNED": "false",
        "CAMBRICON_DSMLU_PROFILE": f"{index}_{first.cores}_{first.mem_mib // _UNIT_MIB}",
    }
