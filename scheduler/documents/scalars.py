"""Resolves scalars and keys of YAML by the rules of kubectl and the API server.

YAML 1.1 with exponents without a dot and underscores in numbers; without numbers to the base of 60, dates, or ``=``.
Keys become text. One rule is left out on purpose: kubectl reads the single letters ``y`` and ``n`` as true and false,
and the API server then refuses them where Kubernetes wants text. Boolean fields are never written as one letter, but
some names and labels are one letter, so here these letters are text.

Source: go.yaml.in/yaml/v2 (resolve.go), sigs.k8s.io/yaml (convertToJSONableObject).
"""

from __future__ import annotations

import base64
import math
import re
import struct
from typing import Any

import yaml

# The first letters of scalars that may not be text.
_HINTS = frozenset("+-.0123456789yYnNtTfFoO~")
_SHORT = "tag:yaml.org,2002:"
_RESOLVED = frozenset(
    f"{_SHORT}{one}" for one in ("str", "bool", "int", "float", "null", "timestamp")
)
# kubectl reads these as true and false; Evenkeel does not.
LETTERS = frozenset("yYnN")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}  # fmt: skip
_INTEGER = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]([0-7]+)|0([0-7]*)|([1-9][0-9]*))"
)
_BASES = (16, 2, 8, 8, 10)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DOTTED = re.compile(r"\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?")
_SIGNED = 2**63


def resolve(text: str) -> Any:
    """Resolve a scalar without quotes and tag."""
    if text and text[0] not in _HINTS:
        return text
    if text in _WORDS:
        return _WORDS[text]
    digits = text.replace("_", "")
    if text[0] in "+-0123456789" and (whole := _parse_integer(digits)) is not None:
        return whole
    is_float = _DOTTED.fullmatch(text) if text[0] == "." else _FLOAT.fullmatch(digits)
    # A number that is too large stays text.
    return found if is_float and not math.isinf(found := float(digits)) else text


def _parse_integer(text: str) -> int | None:
    """Parse an integer as Go's ParseInt or ParseUint with any base, of 64 bits."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    sign, *digits = found.groups()
    written, base = next(
        (one, base) for one, base in zip(digits, _BASES, strict=True) if one is not None
    )
    number = int(written or "0", base) * (-1 if sign == "-" else 1)
    return number if -_SIGNED <= number < (_SIGNED if sign else 2 * _SIGNED) else None


def convert_to_json(value: Any) -> Any:
    """Convert a number as Go's JSON does: to an integer if it has no fraction and fits 64 bits with a sign, else a float."""
    if type(value) is float:
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a number in JSON")
        return int(value) if value.is_integer() and abs(value) < _SIGNED else value
    return float(value) if type(value) is int and value >= _SIGNED else value


def resolve_tagged(event: yaml.ScalarEvent) -> Any:
    """Resolve a scalar in quotes or with a tag; with an unknown tag it is text."""
    tag, text = event.tag, event.value
    if tag == f"{_SHORT}binary":
        return base64.b64decode(text, validate=False).decode("utf-8", "replace")
    if tag not in _RESOLVED or tag in {f"{_SHORT}str", f"{_SHORT}timestamp"}:
        return text
    value, wanted = resolve(text), tag.removeprefix(_SHORT)
    kinds = {"bool": (bool,), "int": (int,), "float": (int, float), "null": (type(None),)}[wanted]
    if not isinstance(value, kinds) or (isinstance(value, bool) and wanted != "bool"):
        raise ValueError(f"cannot decode `{text}` as a !!{wanted}")
    return convert_to_json(value)


def write_key(key: Any) -> str:
    """Write a key as text, because JSON requires it."""
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case int() if key < _SIGNED:
            return str(key)
        case float():
            return _write_shortest(key)
    said = key if isinstance(key, int) else "null" if key is None else "that is a mapping or a list"
    raise ValueError(f"unsupported map key {said}")


def _write_shortest(number: float) -> str:
    """Write a number as Go's FormatFloat(number, 'g', -1, 32)."""
    single = struct.pack("f", number)
    (number,) = struct.unpack("f", single)
    for precision in range(17):
        written = f"{number:.{precision}e}"
        if struct.pack("f", float(written)) == single:
            break
    digits, power = written.split("e")
    if not -5 < int(power) < 6:
        return f"{digits}e{int(power):+03}"
    return f"{float(written):.{max(precision - int(power), 0)}f}"
