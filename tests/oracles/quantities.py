"""Quantities as exact fractions: Kubernetes' grammar read letter by letter, rounded up, capped."""

import math
from fractions import Fraction

INT64_MAX = 2**63 - 1
SUFFIXES = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
    "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip
_DIGITS = "0123456789"


def exact(text: str) -> Fraction | None:
    """The number that a text stands for, None when it is no quantity."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in {"+", "-"} else text
    number = ""
    while rest and (rest[0] in _DIGITS or (rest[0] == "." and "." not in number)):
        number, rest = number + rest[0], rest[1:]
    if not number.strip("."):
        return None
    whole, _, fraction = number.partition(".")
    value = sign * Fraction(int(whole + fraction or "0"), 10 ** len(fraction))
    if rest in SUFFIXES:
        return value * SUFFIXES[rest]
    if rest[:1] in {"e", "E"}:
        exponent = rest[2:] if rest[1:2] in {"+", "-"} else rest[1:]
        if exponent and all(c in _DIGITS for c in exponent):
            power = int(exponent) * (-1 if rest[1] == "-" else 1)
            return value * Fraction(10) ** power
    return None


def scaled(text: str, times: int) -> int | None:
    """In units of 1/``times``, rounded up and capped; None for what is refused."""
    value = exact(text)
    if value is None or value < 0:
        return None
    return min(INT64_MAX, math.ceil(value * times))
