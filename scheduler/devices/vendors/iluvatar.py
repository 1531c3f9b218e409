"""Iluvatar's chips: each chip is a kind of its own, with its own resources and annotations."""

from __future__ import annotations

from scheduler.api.hami_config.sections import DeviceConfig
from scheduler.devices.vendors.vendor import Vendor

_MIB = 256


def list_kinds(config: DeviceConfig) -> tuple[Vendor, ...]:
    """List the kinds of devices with the resources that a configuration gives them."""
    return tuple(
        Vendor(
            word=chip.word,
            cards=chip.cards,
            memory=chip.memory,
            cores=chip.cores,
            mib=_MIB,
            default_cores=0,
            register=f"hami.io/node-{chip.word}-register",
            to_allocate=f"hami.io/{chip.word}-devices-to-allocate",
            allocated=f"hami.io/{chip.word}-devices-allocated",
            use_ids=(f"hami.io/use-{chip.word}-uuid",),
            nouse_ids=(f"hami.io/no-use-{chip.word}-uuid",),
        )
        for chip in config.iluvatars
    )
