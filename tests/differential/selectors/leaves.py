"""What random expressions are made of: a device, and literals of each type."""

from __future__ import annotations

from typing import Any

# Attributes of each type, one that is missing, lists, and names that two domains have.
DEVICE: dict[str, Any] = {
    "driver": "d.io",
    "allowMultipleAllocations": True,
    "attributes": {
        "s": {"string": "abc"},
        "i": {"int": 7},
        "n": {"int": -3},
        "b": {"bool": True},
        "v": {"version": "1.2.3-rc.1+b"},
        "w": {"version": "1.10.0"},
        "ss": {"strings": ["a", "b", "c"]},
        "ii": {"ints": [3, 1, 2]},
        "bb": {"bools": [True, False]},
        "vv": {"versions": ["1.0.0", "2.0.0"]},
        "x.io/s": {"string": "other"},
        "x.io/t": {"bool": False},
    },
    "capacity": {"mem": {"value": "80Gi"}, "x.io/c": {"value": "1500m"}},
}
TYPES = (
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "quantity",
    "semver",
    "list",
    "map",
    "dyn",
    "optional",
)
_TEXTS = (
    "",
    "a",
    "abc",
    "b",
    "d.io",
    "é",
    "a.b-c",
    "1.2.3",
    "10Gi",
    "x y",
    "A",
    "10.0.0.1",
    "10.0.0.0/8",
    "true",
    "7",
)
_QUOTED = tuple(f"'{text}'" for text in _TEXTS)
LEAVES = {
    "bool": ("true", "false", "device.allowMultipleAllocations"),
    "int": ("0", "1", "-1", "2", "7", "9223372036854775807", "-9223372036854775808"),
    "uint": ("0u", "1u", "7u", "18446744073709551615u"),
    "double": ("0.0", "1.0", "-1.5", "2.5", "7.0", "1e100"),
    "string": (*_QUOTED, *["device.driver"] * len(_QUOTED)),
    "bytes": ("b''", "b'a'", "b'abc'", "b'\\xff'"),
    "quantity": (
        "quantity('1')",
        "quantity('10Gi')",
        "quantity('1500m')",
        "device.capacity['d.io'].mem",
    ),
    "semver": ("semver('1.2.3')", "semver('1.2.3-rc.1')", "semver('v1.2', true)"),
    "list": ("[1, 2]", "['a', 'b']", "[]", "[true]", "[1.5]", "[[1], [2]]", "[3, 1, 2]"),
    "map": ("{'a': 1}", "{1: 'a'}", "{}", "{'a': 'b', 'c': 'd'}", "{true: 1}"),
    "optional": (
        "optional.none()",
        "optional.of(1)",
        "optional.of('a')",
        "device.attributes['d.io'].?s",
    ),
}
PATTERNS = (
    "a",
    "^a",
    "b.*",
    "[a-c]+$",
    "(a|b)c?",
    "^$",
    "\\\\d+",
    "(?i)ABC",
    "a{2}",
    "(",
    "\\\\bb",
    "[^a]*",
    "(a*)*b",
    "x|y|",
)
