"""What the ConfigMaps of HAMi say of drivers: which keys are read, and what drivers and readings follow from them."""

from __future__ import annotations

from collections.abc import Hashable

from scheduler.api import kinds
from scheduler.api.hami_config import maps
from scheduler.api.hami_config.maps import DeviceSettings
from scheduler.api.hami_config.sections import Nvidia
from scheduler.api.steering import ConfigMap
from scheduler.config import Config
from scheduler.devices import table
from scheduler.devices.contract import AnyDriver

# What holds before any ConfigMap is read.
FIRST = DeviceSettings()
KEYS = maps.KEYS
# Words of vendors make the names of annotations on nodes and pods, all of which have this domain.
DOMAIN = "hami.io/"


def read_map(config: Config, found: ConfigMap, before: DeviceSettings) -> DeviceSettings:
    """Read a ConfigMap that the configuration names; what it does not say is as ``before``.

    Raises:
        BadInput: it has a mistake; the error names key and field.
    """
    settings, key = before, kinds.make_key(found)
    if key == config.hami_config_map:
        settings = settings._replace(config=maps.read_device_map(found))
    if key == config.hami_plugin_config_map:
        settings = settings._replace(overrides=maps.read_plugin_map(found))
    return settings


def make_drivers(config: Config, settings: DeviceSettings) -> tuple[AnyDriver, ...]:
    """Make the drivers, as ``table.list_drivers``."""
    return table.list_drivers(config.hami_node_label, settings)


def make_key(settings: DeviceSettings) -> Hashable:
    """Make what is equal for settings by which pods are read alike; the rest is for the device plugin."""
    nvidia, plain = settings.config.nvidia, Nvidia()
    return settings.config._replace(
        nvidia=nvidia._replace(
            split_count=plain.split_count,
            memory_scaling=plain.memory_scaling,
            core_scaling=plain.core_scaling,
            unified_mib=plain.unified_mib,
            log_level=plain.log_level,
            has_numa=plain.has_numa,
            profiles=plain.profiles,
            geometries=plain.geometries,
        )
    )
