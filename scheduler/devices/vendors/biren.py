"""Biren's cards: shared by a number of containers, without any limit of memory or cores."""

from __future__ import annotations

from scheduler.api.hami_config.sections import DeviceConfig
from scheduler.devices.contract import Shown
from scheduler.devices.vendors.vendor import Vendor


def list_kinds(config: DeviceConfig) -> tuple[Vendor, ...]:
    """List the kinds of devices with the resources that a configuration gives them."""
    return (
        Vendor(
            word="Biren",
            cards=config.biren.cards,
            is_unmeasured=True,
            shown=Shown(has_memory=False),
            register="hami.io/node-biren-register",
            to_allocate="hami.io/Biren-devices-to-allocate",
            allocated="hami.io/Biren-devices-allocated",
            use_ids=("birentech.com/use-gpuuuid",),
            nouse_ids=("birentech.com/nouse-gpuuuid",),
        ),
    )
