"""The table of vendors: a vendor is a file, and its line here."""

from __future__ import annotations

from scheduler.api.hami_config.sections import DeviceConfig
from scheduler.devices.vendors import (
    amd,
    ascend,
    awsneuron,
    biren,
    cambricon,
    enflame,
    hygon,
    iluvatar,
    kunlun,
    metax,
    mthreads,
    vastai,
)
from scheduler.devices.vendors.driver import VendorCards
from scheduler.devices.vendors.vendor import Vendor

_VENDORS = (
    amd,
    ascend,
    awsneuron,
    biren,
    cambricon,
    enflame,
    hygon,
    iluvatar,
    kunlun,
    metax,
    mthreads,
    vastai,
)


def list_kinds(config: DeviceConfig) -> tuple[Vendor, ...]:
    """List all kinds of devices that a configuration gives a resource."""
    kinds = (kind for vendor in _VENDORS for kind in vendor.list_kinds(config))
    return tuple(kind for kind in kinds if kind.cards)


def list_drivers(config: DeviceConfig) -> tuple[VendorCards, ...]:
    """List their drivers."""
    return tuple(map(VendorCards, list_kinds(config)))
