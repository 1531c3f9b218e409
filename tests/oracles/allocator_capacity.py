"""What a request takes of a device's capacities, and whether that is allowed and there: upstream's rules, exactly."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tests.oracles.allocator_pools import Device, exact

Json = dict[str, Any]
Amounts = dict[str, Fraction]
INT64_MAX = 2**63 - 1
UNCOUNTABLE = "capacity request cannot be represented in the device's range arithmetic"


class UncountableError(Exception):
    """No number of the device's arithmetic; it ends the whole attempt. The text is upstream's."""


def taken(request: Json | None, device: Device, is_milli: bool) -> Amounts:
    """What is taken of each capacity, requested or not; names that the device lacks are not looked at."""
    requests = (request or {}).get("requests") or {}
    return {
        name: _amount(requests.get(name), capacity, is_milli)
        for name, capacity in (device.body.get("capacity") or {}).items()
    }


def fits(
    request: Json | None, device: Device, is_milli: bool, held: Mapping[str, Fraction]
) -> bool:
    """Whether a request may be served beside what is held already.

    Raises:
        UncountableError: whatever other device there is.
    """
    capacities: dict[str, Json] = device.body.get("capacity") or {}
    if not ((request or {}).get("requests") or {}).keys() <= capacities.keys():
        return False
    asked: Amounts = {}
    for name, capacity in capacities.items():
        requests = (request or {}).get("requests") or {}
        try:
            asked[name] = _amount(requests.get(name), capacity, is_milli)
        except UncountableError as problem:
            raise UncountableError(f'capacity "{name}": {problem}') from None
        if asked[name] < 0:
            raise UncountableError(f'capacity "{name}": capacity value is negative')
    return all(
        _is_allowed(asked[name], capacity.get("requestPolicy"), is_milli)
        and asked[name] + held.get(name, 0) <= exact(capacity["value"])
        for name, capacity in capacities.items()
    )


def _amount(requested: str | None, capacity: Json, is_milli: bool) -> Fraction:
    policy: Json = capacity.get("requestPolicy") or {}
    if requested is None:
        return exact(policy.get("default", capacity["value"]))
    amount = exact(requested)
    valid_range: Json = policy.get("validRange") or {}
    if valid_range.get("min") is not None:
        return _rounded(requested, valid_range, is_milli)
    larger = [exact(value) for value in policy.get("validValues") or () if exact(value) >= amount]
    return larger[0] if larger else amount


def _rounded(requested: str, valid_range: Json, is_milli: bool) -> Fraction:
    amount, least = exact(requested), exact(valid_range["min"])
    if amount < least or valid_range.get("step") is None:
        return max(amount, least)
    unit = _unit(valid_range, is_milli)
    if unit == 1 and amount > INT64_MAX:
        raise UncountableError(f"{UNCOUNTABLE}: request {requested} exceeds MaxInt64")
    if unit != 1 and not _is_whole(amount, unit):
        raise UncountableError(
            f"{UNCOUNTABLE}: request {requested} is not a representable milli value"
        )
    asked, low, step = (
        math.ceil(value / unit) for value in (amount, least, exact(valid_range["step"]))
    )
    result = low + step * math.ceil(Fraction(asked - low, step))
    if result > INT64_MAX:
        past = "MaxInt64" if unit == 1 else "the milli-value range"
        raise UncountableError(
            f"{UNCOUNTABLE}: rounding request {requested} up to the next step passes {past}"
        )
    return result * unit


def _is_allowed(amount: Fraction, policy: Json | None, is_milli: bool) -> bool:
    if not policy or (policy.get("default") is not None and amount == exact(policy["default"])):
        return True
    if (valid_range := policy.get("validRange")) is not None:
        if valid_range.get("max") is not None and amount > exact(valid_range["max"]):
            return False
        if valid_range.get("step") is None:
            return True
        unit = _unit(valid_range, is_milli)
        if unit != 1 and not _is_whole(amount, unit):
            return False
        step = math.ceil(exact(valid_range["step"]) / unit)
        return (math.ceil(amount / unit) - math.ceil(exact(valid_range["min"]) / unit)) % step == 0
    values = policy.get("validValues")
    return not values or any(amount == exact(value) for value in values)


def _unit(valid_range: Json, is_milli: bool) -> Fraction:
    """Thousandths where the range is exact in them, else whole numbers."""
    milli = Fraction(1, 1000)
    ends = [exact(valid_range[key]) for key in ("min", "max", "step") if valid_range.get(key)]
    if (
        is_milli
        and all(_is_whole(end, milli) for end in ends)
        and exact(valid_range["step"]) >= milli
    ):
        return milli
    return Fraction(1)


def _is_whole(amount: Fraction, unit: Fraction) -> bool:
    return (amount / unit).denominator == 1 and abs(amount / unit) <= INT64_MAX
