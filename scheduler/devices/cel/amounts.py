"""Functions of quantities and versions."""

from __future__ import annotations

from typing import Any

from scheduler.devices.cel.errors import CelError
from scheduler.devices.cel.overloads import Library, by_length
from scheduler.devices.cel.quantity import Quantity, QuantityError, read_quantity
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.semver import Semver, SemverError, normalize, read_semver


def _quantity(_run: Run, text: str) -> Quantity:
    try:
        return read_quantity(text)
    except QuantityError as error:
        raise CelError(str(error)) from None


def _is_quantity(_run: Run, text: str) -> bool:
    try:
        read_quantity(text)
    except QuantityError:
        return False
    return True


def _as_integer(_run: Run, amount: Quantity) -> int:
    value = amount.as_integer()
    if value is None:
        raise CelError("cannot convert value to integer")
    return value


def _semver(_run: Run, text: str, is_loose: bool = False) -> Semver:
    try:
        return read_semver(normalize(text) if is_loose else text)
    except SemverError as error:
        raise CelError(str(error)) from None


def _is_semver(run: Run, text: str, is_loose: bool = False) -> bool:
    try:
        _semver(run, text, is_loose)
    except CelError:
        return False
    return True


def _compare(_run: Run, one: Any, other: Any) -> int:
    return int(one.compare(other))


AMOUNTS = Library(
    functions={
        "quantity(string): quantity": _quantity,
        "isQuantity(string): bool": _is_quantity,
        "sign(quantity): int": lambda _, a: (a.value > 0) - (a.value < 0),
        "semver(string): semver": _semver,
        "semver(string, bool): semver": _semver,
        "isSemver(string): bool": _is_semver,
        "isSemver(string, bool): bool": _is_semver,
    },
    members={
        "asApproximateFloat(quantity): double": lambda _, a: a.as_float(),
        "asInteger(quantity): int": _as_integer,
        "isInteger(quantity): bool": lambda _, a: a.as_integer() is not None,
        "add(quantity, quantity): quantity": lambda _, a, b: a.add(b),
        "add(quantity, int): quantity": lambda _, a, b: a.add(Quantity(b)),
        "sub(quantity, quantity): quantity": lambda _, a, b: a.subtract(b),
        "sub(quantity, int): quantity": lambda _, a, b: a.subtract(Quantity(b)),
        "major(semver): int": lambda _, a: a.major,
        "minor(semver): int": lambda _, a: a.minor,
        "patch(semver): int": lambda _, a: a.patch,
        **{f"compareTo({kind}, {kind}): int": _compare for kind in ("quantity", "semver")},
        **{
            f"isGreaterThan({kind}, {kind}): bool": lambda _, a, b: a.compare(b) > 0
            for kind in ("quantity", "semver")
        },
        **{
            f"isLessThan({kind}, {kind}): bool": lambda _, a, b: a.compare(b) < 0
            for kind in ("quantity", "semver")
        },
    },
    costs=dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), by_length()),
)
