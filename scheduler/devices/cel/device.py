"""A device as selectors see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.devices.cel.quantity import Quantity
from scheduler.devices.cel.semver import SemverError, read_semver
from scheduler.devices.cel.values import OuterMap


class Version(str):
    """An attribute that is a version, as it is written."""

    __slots__ = ()


class Broken:
    """An attribute without a value."""


BROKEN = Broken()
Value = bool | int | str | Version | tuple[bool, ...] | tuple[int, ...] | tuple[str, ...] | Broken


class SelectedDevice:
    """A device as selectors see it; it never changes.

    Attributes:
        values: the variable ``device``.
        problem: why no selector can be put to it, or nothing: one attribute without a proper value is enough.
    """

    __slots__ = ("problem", "values")

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, Value],
        capacity: Mapping[str, Quantity],
        *,
        allow_multiple_allocations: bool = False,
    ) -> None:
        """Take names as they are published, ``id`` or ``domain/id``; bare ones are the driver's."""
        self.problem = ""
        published: OuterMap = OuterMap()
        for name, value in attributes.items():
            domain, slash, bare = name.partition("/")
            inner = published.setdefault(domain if slash else driver, {})
            inner[bare if slash else name] = self._read(name, value)
        capacities: OuterMap = OuterMap()
        for name, amount in capacity.items():
            domain, slash, bare = name.partition("/")
            capacities.setdefault(domain if slash else driver, {})[bare if slash else name] = amount
        self.values: dict[str, Any] = {
            "driver": driver,
            "allowMultipleAllocations": allow_multiple_allocations,
            "attributes": published,
            "capacity": capacities,
        }

    def _read(self, name: str, value: Value) -> Any:
        try:
            if isinstance(value, tuple):
                return [read_semver(one) if type(one) is Version else one for one in value]
            if type(value) is Version:
                return read_semver(value)
        except SemverError as error:
            self.problem = self.problem or f"attribute {name}: parse semantic version: {error}"
            return None
        if isinstance(value, Broken):
            self.problem = self.problem or f"attribute {name}: unsupported attribute value"
        return value
