"""Quantities as the API server rewrites them: ``0.5`` becomes ``500m``, ``1024Mi`` becomes ``1Gi``.

A client that wrote one form and reads another is a classic surprise, so the embedded server
rewrites the same way.
"""

import re
from fractions import Fraction
from functools import lru_cache

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY_SUFFIX = {power: suffix for suffix, power in _BINARY.items()}
_TEXT = re.compile(
    r"^(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))"
    r"(?:(?P<binary>[KMGTPE]i)|(?P<exponent>[eE][+-]?\d+)|(?P<decimal>[numkMGTPE]?))$"
)
# Resource lists keep nothing finer than a thousandth; the rest is rounded up.
_SMALLEST = Fraction(1, 1000)


@lru_cache(maxsize=4096)
def read_value(text: str) -> Fraction:
    """Return the amount; ValueError if the text is no amount."""
    found = _TEXT.match(text)
    if found is None:
        raise ValueError(
            "quantities must match the regular expression"
            r" '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    number = Fraction(found["number"])
    if found["binary"]:
        return Fraction(number * 1024 ** _BINARY[found["binary"]])
    if found["exponent"]:
        return Fraction(number * Fraction(10) ** int(found["exponent"][1:]))
    return Fraction(number * Fraction(1000) ** _DECIMAL[found["decimal"]])


@lru_cache(maxsize=4096)
def rewrite_amount(text: str) -> str:
    """Write an amount the way the API server stores it."""
    amount = read_value(text)
    if amount == 0:
        return "0"
    found = _TEXT.match(text)
    if found and found["binary"] and abs(amount) >= 1024 and amount.denominator == 1:
        return _scale(amount, 1024, 0, _BINARY_SUFFIX)
    steps = -(-amount // _SMALLEST)
    if found and found["exponent"]:
        return _read_exponent(steps)
    return _scale(Fraction(steps), 1000, -1, _DECIMAL_SUFFIX)


def _scale(amount: Fraction, base: int, power: int, suffixes: dict[int, str]) -> str:
    """Divide by the base while nothing is lost and there is a suffix for it."""
    number = int(amount)
    while number % base == 0 and power < 6:
        number //= base
        power += 1
    return f"{number}{suffixes.get(power, '')}"


def _read_exponent(steps: int) -> str:
    number, power = steps, -3
    while number % 1000 == 0:
        number //= 1000
        power += 3
    return f"{number}e{power}" if power else str(number)


def rewrite_amounts(amounts: dict[str, object], field: str) -> dict[str, str]:
    """Rewrite a map of resource amounts; a bad one is named by its field in a ValueError."""
    written = {}
    for name, amount in amounts.items():
        try:
            written[name] = rewrite_amount(str(amount))
        except ValueError as error:
            raise ValueError(f"{field}[{name}]: {error}") from None
    return written
