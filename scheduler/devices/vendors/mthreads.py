"""Mthreads' cards: shares of memory and cores, which containers request as totals over their cards.

A node reports the cores and the memory of all its cards.
"""

from __future__ import annotations

from scheduler.api.cards import Card
from scheduler.api.hami_config.sections import DeviceConfig
from scheduler.devices.vendors.vendor import Answer, Vendor, find_last_indices, read_totals
from scheduler.schema import columns as c

_WORD = "Mthreads"
_CORES, _UNIT_MIB, _SHARERS = 16, 512, 100
_NANOSECONDS = 10**9


def list_kinds(config: DeviceConfig) -> tuple[Vendor, ...]:
    """List the kinds of devices with the resources that a configuration gives them."""
    section = config.mthreads

    return (
        Vendor(
            word=_WORD,
            cards=section.cards,
            memory=section.memory,
            cores=section.cores,
            mib=_UNIT_MIB,
            are_totals=True,
            default_cores=0,
            allocated="hami.io/mthreads-vgpu-devices-allocated",
            use_ids=("mthreads.ai/use-gpuuuid",),
            nouse_ids=("mthreads.ai/nouse-gpuuuid",),
            read_node=lambda node: read_totals(node, section.cores, section.memory),
            list_cards=_list_cards,
            write_more=_write_indices,
            lock=None,
            chooser=c.TOGETHER,
        ),
    )


def _list_cards(words: tuple[str, ...]) -> tuple[Card, ...]:
    """List a card for every 16 cores, with its part of the memory; a rest of less than 16 cores counts as a card, too."""
    name, cores, memory = words[0], int(words[1]), int(words[2])
    mib = memory * _UNIT_MIB * _CORES // cores
    return tuple(
        Card(
            id=f"{name}-mthreads-{i}",
            index=i,
            sharers=_SHARERS,
            mib=mib,
            cores=_CORES,
            model=_WORD,
        )
        for i in range(-(-cores // _CORES))
    )


def _write_indices(answer: Answer) -> dict[str, str]:
    """Write the indices of the cards of the last container that has any, and where and when they were chosen, as HAMi does."""
    if not any(answer.slots):
        return {}
    return {
        "mthreads.com/gpu-index": find_last_indices(answer.slots),
        "mthreads.com/predicate-time": str(answer.now * _NANOSECONDS),
        "mthreads.com/predicate-node": answer.node,
    }
