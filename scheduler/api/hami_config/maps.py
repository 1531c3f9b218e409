"""Reads HAMi's two ConfigMaps as objects: which keys they have, and where a mistake is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from scheduler.api import values
from scheduler.api.hami_config import nodes, reading
from scheduler.api.hami_config.chart import CHART
from scheduler.api.hami_config.nodes import NodeOverride
from scheduler.api.hami_config.sections import DeviceConfig
from scheduler.api.steering import ConfigMap
from scheduler.errors import BadInput

T = TypeVar("T")

DEVICE_KEY, PLUGIN_KEY = "device-config.yaml", "config.json"
KEYS = frozenset({DEVICE_KEY, PLUGIN_KEY})
# Each node has a reading of each kind, so there must be few of them. HAMi's chart has 25.
KINDS_MAX = 64
# A namespace, which is a label of a name server, and the name of an object.
_REFERENCE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class DeviceSettings(NamedTuple):
    """What HAMi is configured with.

    Attributes:
        config: of all nodes.
        overrides: what is different on single nodes.
    """

    config: DeviceConfig = CHART
    overrides: tuple[NodeOverride, ...] = ()


def read_reference(given: Any, field: str) -> str:
    """Read namespace and name of a ConfigMap; empty for none.

    Raises:
        BadInput: it is neither.
    """
    if not isinstance(given, str) or (given and not _REFERENCE.fullmatch(given)):
        raise BadInput(field, f"{values.quote(given)} is neither namespace/name nor empty")
    return given


def read_device_map(found: ConfigMap) -> DeviceConfig:
    """Read the configuration of devices.

    Raises:
        BadInput: it is missing, or has a value that is not allowed; the error names key and field.
    """
    config = _read_key(found, DEVICE_KEY, reading.read_config)
    chips = len(config.iluvatars) + len(config.vnpus)
    if chips > KINDS_MAX:
        problem = f"iluvatars and vnpus have {chips} entries; at most {KINDS_MAX} are allowed"
        raise BadInput(_name_key(DEVICE_KEY), problem)
    return config


def read_plugin_map(found: ConfigMap) -> tuple[NodeOverride, ...]:
    """Read what is different on single nodes.

    Raises:
        BadInput: as ``read_device_map``.
    """
    return _read_key(found, PLUGIN_KEY, nodes.read_overrides)


def _read_key(found: ConfigMap, key: str, read: Callable[[str], T]) -> T:
    where = _name_key(key)
    text = values.read_mapping(found.data, "data").get(key)
    if not isinstance(text, str):
        problem = "is missing" if text is None else f"{values.quote(text)} is not a text"
        raise BadInput(where, problem)
    try:
        return read(text)
    except BadInput as error:
        field = f"{where}.{error.field}" if error.field else where
        raise BadInput(field, error.problem) from error


def _name_key(key: str) -> str:
    return f"data[{key}]"
