"""Amounts of resources in base units: milli-CPU for cpu, else bytes or counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.api import names, quantities, values
from scheduler.api.queues.definitions import UNLIMITED
from scheduler.errors import BadInput

# (resource, amount), by name.
Amounts = tuple[tuple[str, int], ...]

_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("k", "M", "G", "T", "P", "E")
_IN_BYTES = frozenset({names.MEMORY, "ephemeral-storage"})


def read_amount(resource: str, quantity: Any, field: str) -> int:
    """Read an amount; UNLIMITED if it is too large for an int64.

    Raises:
        BadInput: this is no quantity, or it is negative; the error names the field.
    """
    if not isinstance(quantity, str | int | float) or isinstance(quantity, bool):
        raise BadInput(field, f"{values.quote(quantity)} is not a quantity")
    try:
        read = quantities.read_milli if resource == names.CPU else quantities.read_value
        return min(UNLIMITED, read(quantity))
    except quantities.BadQuantity as error:
        raise BadInput(field, str(error)) from error


def read_amounts(given: Mapping[str, Any] | None, field: str) -> Amounts:
    """Read several amounts.

    Raises:
        BadInput: as ``read_amount``.
    """
    return tuple(
        sorted(
            (name, read_amount(name, one, f"{field}[{name}]"))
            for name, one in (given or {}).items()
        )
    )


def convert_amount(resource: str, amount: int) -> float:
    """Convert an amount of base units: to cores of cpu, else it stays."""
    return amount / 1000 if resource == names.CPU else amount


def write_amount(resource: str, amount: int) -> str:
    """Write an amount as the API server writes quantities, e.g. ``1500m``, ``16Gi`` or ``3k``."""
    if resource == names.CPU and amount % 1000:
        return f"{amount}m"
    is_binary = resource in _IN_BYTES or resource.startswith("hugepages-")
    step, suffixes = (1024, _BINARY) if is_binary else (1000, _DECIMAL)
    left, suffix = amount // 1000 if resource == names.CPU else amount, ""
    for one in suffixes:
        if not left or left % step:
            break
        left, suffix = left // step, one
    return f"{left}{suffix}"


def write_quota(resource: str, amount: int) -> str:
    """Write an amount of quota, which may have no limit."""
    return "<unlimited>" if amount == UNLIMITED else write_amount(resource, amount)
