"""Quantities as whole numbers: thousandths of a CPU, and units of everything else (pkg/resources/amount.go)."""

import math

from tests.oracles.quantities import exact

UNLIMITED = 2**63 - 1
LEAST = -(2**63)
# The name of a flavor, and that of a resource.
FlavorResource = tuple[str, str]
Amounts = dict[FlavorResource, int]
Requests = dict[str, int]

_DECIMAL = ("", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_IN_BYTES = ("memory", "ephemeral-storage")


def clamp_amount(value: int) -> int:
    """Saturate: a sum that is too large is unlimited."""
    return max(LEAST, min(UNLIMITED, value))


def add_amounts(a: int, b: int) -> int:
    return UNLIMITED if UNLIMITED in {a, b} else clamp_amount(a + b)


def subtract_amounts(a: int, b: int) -> int:
    """What is unlimited stays so, but for unlimited less unlimited, which is nothing."""
    if a == b == UNLIMITED:
        return 0
    if a == UNLIMITED:
        return UNLIMITED
    return LEAST if b == UNLIMITED else clamp_amount(a - b)


def read_request(resource: str, text: object) -> int:
    """Read what a pod asks, rounded up."""
    value = exact(str(text))
    assert value is not None, text
    return clamp_amount(math.ceil(value * (1000 if resource == "cpu" else 1)))


def read_quota(resource: str, text: object) -> int:
    """Read a quota: one that does not fit in 64 bits is unlimited."""
    value = exact(str(text))
    assert value is not None, text
    most = UNLIMITED // 1000 if resource == "cpu" else UNLIMITED
    return UNLIMITED if value >= most else read_request(resource, text)


def read_float(text: object) -> float:
    value = exact(str(text))
    assert value is not None, text
    return float(value)


def write_amount(resource: str, value: int) -> str:
    return "<unlimited>" if value == UNLIMITED else write_request(resource, value)


def write_request(resource: str, value: int) -> str:
    """Write a quantity as Kubernetes does, with the largest suffix that leaves a whole number."""
    if resource == "cpu":
        return _write_scaled(value, 1000, ("m", *_DECIMAL))
    if resource in _IN_BYTES or resource.startswith("hugepages-"):
        return _write_scaled(value, 1024, _BINARY) if abs(value) >= 1024 else str(value)
    return _write_scaled(value, 1000, _DECIMAL)


def _write_scaled(value: int, base: int, suffixes: tuple[str, ...]) -> str:
    at = 0
    if value == 0:
        return "0"
    while value % base == 0 and at + 1 < len(suffixes):
        value, at = value // base, at + 1
    return f"{value}{suffixes[at]}"


def hash_name(resource: str) -> int:
    """Hash a resource's name by FNV-1a: Kueue goes through the resources of a pod set in this order."""
    value = 0xCBF29CE484222325
    for byte in resource.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def order_resources(requests: Requests) -> list[str]:
    return sorted(requests, key=lambda name: (hash_name(name), name))
