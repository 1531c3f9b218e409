"""Hygon's DCU: cards in shares of memory and cores, reported as text."""

from __future__ import annotations

from scheduler.api.hami_config.sections import DeviceConfig
from scheduler.devices.vendors.vendor import Vendor


def list_kinds(config: DeviceConfig) -> tuple[Vendor, ...]:
    """List the kinds of devices with the resources that a configuration gives them."""
    section = config.hygon
    return (
        Vendor(
            word="DCU",
            cards=section.cards,
            memory=section.memory,
            cores=section.cores,
            mib=max(1, section.factor),
            register="hami.io/node-dcu-register",
            to_allocate="hami.io/dcu-devices-to-allocate",
            allocated="hami.io/dcu-devices-allocated",
            use_types="hygon.com/use-dcutype",
            nouse_types="hygon.com/nouse-dcutype",
            use_ids=("hygon.com/use-gpuuuid",),
            nouse_ids=("hygon.com/nouse-gpuuuid",),
        ),
    )
