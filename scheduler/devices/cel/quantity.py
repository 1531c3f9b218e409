"""Kubernetes quantities as selectors see them: exact, with a sign, and with the distinctions that upstream makes.

``scheduler.api.quantities`` reads what objects request, rounded up to a unit and never negative. To a
selector a sign and fractions matter, and whether an amount is an integer, which upstream decides by how it is written.
"""

from __future__ import annotations

import re
from functools import total_ordering

from scheduler.api.quantities import INT64_MAX

_SUFFIX = re.compile(r"([eEinumkKMGTP]*)([-+]?[0-9]*)")
_NUMBER = re.compile(r"([+-]?)(?:0*)([0-9]*)(?:\.([0-9]*))?", re.ASCII)
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_NANO = -9
_MIN = -INT64_MAX - 1
# Longer numbers are no quantities that anybody has; upstream computes them, for as long as that takes.
_DIGITS = 1000
_WRONG = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_BAD_SUFFIX = "unable to parse quantity's suffix"


class QuantityError(ValueError):
    """A text is no quantity; the message is upstream's."""


@total_ordering
class Quantity:
    """An amount: ``value`` times ten to the power of ``scale``.

    Attributes:
        is_small: whether upstream keeps it in an int64; of others it says that they are no integers.
        is_sum: whether it was computed; upstream compares nothing to such a quantity by ``==``.
    """

    __slots__ = ("is_small", "is_sum", "scale", "value")

    def __init__(
        self, value: int, scale: int = 0, *, is_small: bool = True, is_sum: bool = False
    ) -> None:
        self.value = value
        self.scale = scale
        self.is_small = is_small
        self.is_sum = is_sum

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.compare(other) == 0

    def __lt__(self, other: Quantity) -> bool:
        return self.compare(other) < 0

    def __hash__(self) -> int:
        return hash(self._level(_NANO))

    def __str__(self) -> str:
        return f"{self.value}e{self.scale}"

    def _level(self, scale: int) -> int:
        return self.value * 10 ** (self.scale - scale) if self.scale >= scale else 0

    def compare(self, other: Quantity) -> int:
        """Return -1, 0 or 1."""
        scale = min(self.scale, other.scale)
        one, two = self._level(scale), other._level(scale)
        return (one > two) - (one < two)

    def add(self, other: Quantity) -> Quantity:
        """Return the sum; it is small if it can be computed in int64."""
        are_small = self.is_small and other.is_small
        if are_small and not (self.value and other.value):
            kept = other if other.value else self
            return Quantity(kept.value, kept.scale, is_sum=True)
        scale = min(self.scale, other.scale)
        parts = self._level(scale), other._level(scale)
        total = sum(parts)
        fits = all(_MIN <= part <= INT64_MAX for part in (*parts, total))
        return Quantity(total, scale, is_small=are_small and fits, is_sum=True)

    def subtract(self, other: Quantity) -> Quantity:
        """Return the difference. Upstream negates in int64 first, where the least number stays as it is."""
        if other.is_small and other.value == _MIN:
            wrapped = self.add(other)
            if wrapped.is_small:
                return wrapped
        return self.add(Quantity(-other.value, other.scale, is_small=other.is_small))

    def as_integer(self) -> int | None:
        """Return the amount if upstream takes it for an integer."""
        if not self.is_small or self.scale < 0:
            return None
        value = self.value * 10**self.scale if self.value else 0
        return value if _MIN <= value <= INT64_MAX else None

    def as_float(self) -> float:
        """Return about the amount."""
        try:
            return float(self.value) * 10.0**self.scale
        except OverflowError:
            return float("inf") if self.value > 0 else float("-inf")


def read_quantity(text: str) -> Quantity:
    """Read a quantity.

    Raises:
        QuantityError: it is none.
    """
    if not text or len(text) > _DIGITS:
        raise QuantityError(_WRONG)
    number = _NUMBER.match(text)
    assert number is not None  # noqa: S101 - it matches nothing at all
    suffix = _SUFFIX.fullmatch(text, number.end())
    if suffix is None:
        raise QuantityError(_WRONG)
    sign, whole, fraction = number[1], number[2] or "0", number[3] or ""
    kind, digits = suffix[1], suffix[2]
    if not digits and kind in _DECIMAL:
        return _read_decimal(sign, whole, fraction, _DECIMAL[kind])
    if not digits and kind in _BINARY:
        return _read_binary(sign, whole, fraction, _BINARY[kind])
    exponent = digits.lstrip("+-")
    if kind not in {"e", "E"} or not exponent or len(exponent.lstrip("0")) > 3:
        raise QuantityError(_BAD_SUFFIX)
    return _read_decimal(sign, whole, fraction, int(digits))


def _read_decimal(sign: str, whole: str, fraction: str, exponent: int) -> Quantity:
    value, scale = int(whole + fraction), exponent - len(fraction)
    is_small = len(whole) + len(fraction) <= 18 and scale >= _NANO
    return _finish(sign, value, scale, is_small=is_small)


def _read_binary(sign: str, whole: str, fraction: str, shift: int) -> Quantity:
    value = int(whole + fraction) << shift
    room = 15 - len(whole) - shift * 3 // 10 - 1
    is_small = not fraction and room >= 0 and value <= INT64_MAX
    if not is_small and value > INT64_MAX * 10 ** len(fraction):
        return _finish(sign, INT64_MAX, 0, is_small=False)
    return _finish(sign, value, -len(fraction), is_small=is_small)


def _finish(sign: str, value: int, scale: int, *, is_small: bool) -> Quantity:
    """Round up, away from zero, to thousand-millionths."""
    if scale < _NANO:
        value, scale = -(-value // 10 ** (_NANO - scale)), _NANO
    return Quantity(-value if sign == "-" else value, scale, is_small=is_small)
