"""Kubernetes quantities: ``"1500m"`` → 1500 milli, ``"16Gi"`` → bytes.

The grammar and the rounding are those of apimachinery's ``resource.Quantity``: decimal SI
(n u m k M G T P E), binary SI (Ki Mi Gi Ti Pi Ei) or a decimal exponent (``1e3``, ``1E-3``; a bare
``E`` is exa). Fractions below the wanted unit are rounded up, values beyond int64 are capped.
"""

from __future__ import annotations

import re
from functools import lru_cache

INT64_MAX = 2**63 - 1
# Longer texts are read anew each time: to keep thousands of them would take hundreds of megabytes.
_KEPT_LENGTH = 64
# Digits beyond either bound are not computed, so a text of any length costs the same.
_MAGNITUDE_MAX, _MAGNITUDE_MIN = 40, -40

_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>\d*)(?:\.(?P<fraction>\d*))?"
    r"(?:(?P<binary>[KMGTPE]i)|(?P<decimal>[numkMGTPE])|[eE](?P<exponent>[+-]?\d+))?",
    re.ASCII,
)
# Most quantities are a few digits with one of these suffixes: the shift, and the power of ten, of each suffix.
_PLAIN_DIGITS = 12
_PLAIN = {
    "": (0, 0),
    "m": (0, -3),
    "k": (0, 3),
    "M": (0, 6),
    "G": (0, 9),
    "Ki": (10, 0),
    "Mi": (20, 0),
    "Gi": (30, 0),
}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


class BadQuantity(ValueError):  # noqa: N818 - reads as a noun where it is caught
    """The text is not a quantity; the message says what one looks like."""


def read_milli(quantity: str | float) -> int:
    """Read a quantity in thousandths, rounded up (``MilliValue``).

    Raises:
        BadQuantity: not a quantity, or negative.
    """
    return _parse(str(quantity), 3)


def read_value(quantity: str | float) -> int:
    """Read a quantity in whole units, rounded up (``Value``).

    Raises:
        BadQuantity: not a quantity, or negative.
    """
    return _parse(str(quantity), 0)


def read_number(quantity: str | float) -> float:
    """Read a quantity as a number, rounded up to a thousand-millionth.

    Raises:
        BadQuantity: not a quantity, or negative.
    """
    return _parse(str(quantity), 9) / 10**9


def _parse(text: str, scale: int) -> int:
    digits = text.rstrip("kKMGim")
    shift, power = _PLAIN.get(text[len(digits) :], (0, -99))
    power += scale
    if power >= 0 and len(digits) <= _PLAIN_DIGITS and digits.isascii() and digits.isdigit():
        amount: int = (int(digits) << shift) * 10**power
        return min(INT64_MAX, amount)
    if len(text) > _KEPT_LENGTH:
        return _parse_any.__wrapped__(text, scale)
    return _parse_any(text, scale)


@lru_cache(maxsize=4096)
def _parse_any(text: str, scale: int) -> int:
    match = _GRAMMAR.fullmatch(text)
    if match is None or not (match["whole"] or match["fraction"]):
        raise BadQuantity(
            f'"{_shorten(text)}" is not a quantity: write a number with an optional suffix, '
            "one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as 1e3"
        )
    fraction = match["fraction"] or ""
    written = ((match["whole"] or "") + fraction).lstrip("0")
    digits = written.rstrip("0")
    if not digits:
        return 0
    if match["sign"] == "-":
        raise BadQuantity(f'"{_shorten(text)}" is negative: a quantity here must be 0 or more')
    shift = 0
    power = scale - len(fraction) + len(written) - len(digits)
    if match["binary"]:
        shift = _BINARY[match["binary"]]
    elif match["decimal"]:
        power += _DECIMAL[match["decimal"]]
    elif match["exponent"]:
        power += _read_exponent(match["exponent"])
    magnitude = len(digits) + power
    if magnitude > _MAGNITUDE_MAX:
        return INT64_MAX
    if magnitude < _MAGNITUDE_MIN:
        return 1
    # For rounding up it is enough to know that there are digits this far behind the point.
    kept = max(0, magnitude - _MAGNITUDE_MIN)
    if len(digits) > kept:
        power += len(digits) - kept - 1
        digits = digits[:kept] + "1"
    numerator = (int(digits) << shift) * 10 ** max(0, power)
    denominator = 10 ** max(0, -power)
    rounded_up: int = -(-numerator // denominator)
    return min(INT64_MAX, rounded_up)


def _read_exponent(text: str) -> int:
    """Read an exponent of any length; beyond a million digits only the sign matters."""
    digits = text.lstrip("+-").lstrip("0")
    exponent = int(digits) if digits and len(digits) <= 6 else 10**7 * bool(digits)
    return -exponent if text.startswith("-") else exponent


def _shorten(text: str) -> str:
    return text if len(text) <= 64 else f"{text[:64]}…"
