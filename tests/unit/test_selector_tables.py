"""Our evaluator of selectors says what Kubernetes' own has said, of all expressions in the tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.model.selectors import judge, make_device

DATA = Path(__file__).parents[1] / "data" / "selectors"
Json = dict[str, Any]

# What differs, and why. Whoever mends one of these takes it out.
_FIELDS = "no type has fields that an expression could name, but upstream's words for them"
_SCRIPT = "scripts of Unicode are not known, only its categories"
_BRACE = "the message has the closing brace too"
_WANTED = "the message names fewer of the words that could follow"
DIFFERENT = {
    "kubernetes.DRADevice{}": _FIELDS,
    "google.protobuf.Int64Value{value: 1}": _FIELDS,
    "{dyn(1u): 1, dyn(1): 2}": "keys that are equal numbers are one key",
    'ip("::g")': "why a text is no IPv6 address is not said",
    'ip("1:2:3:4:5:6:7:8:9")': "why a text is no IPv6 address is not said",
    'url("https://u:p@h.io:80/a b/c?x=1&y=2&x=3#f")': "a URL is kept as it was written",
    '"é Straße K1".matches("\\\\p{Greek}")': _SCRIPT,
    '["é Straße K1", "é Straße K1", "aaabcab"].map(t, t.find("\\\\p{Greek}"))': _SCRIPT,
    '["é Straße K1", "é Straße K1", "aaabcab"].map(t, t.findAll(dyn("\\\\p{Greek}")))': _SCRIPT,
    'device.driver.matches(dyn("\\\\p{Greek}"))': _SCRIPT,
    '["ab\\nb", "abc", "aaabcab"].map(t, t.find("\\\\x{110000}"))': _BRACE,
    '["ab\\nb", "abc", "aaabcab"].map(t, t.findAll(dyn("\\\\x{110000}")))': _BRACE,
    'device.driver.matches(dyn("\\\\x{110000}"))': _BRACE,
    "cel.bind(device, 1, .device.driver)": "past a variable of its name, a field of the device costs 1 more",
    "[1].map(device, .device.driver)": "past a variable of its name, a field of the device costs 1 more",
    **dict.fromkeys(["f(", "a.b(", "a[", "{", "!", "-"], _WANTED),
}


def read(name: str) -> list[Json]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def differ(row: Json, *, raw: bool, device: Json) -> str:
    """Say what differs; of a text that does not compile the first line counts, which says what is wrong and where."""
    told = judge(row["expr"], make_device(device), raw=raw)
    if told.kind != row["kind"]:
        return f"{told} is not {row}"
    if told.value != row.get("value", ""):
        return f"{told.value} is not {row['value']}"
    lines = 1 if told.kind == "compile" else None
    texts = [text.split("\n")[:lines] for text in (told.text, row.get("text", ""))]
    if texts[0] != texts[1]:
        return f"{told.text} is not {row['text']}"
    # Where upstream breaks, it has not counted all.
    is_counted = raw and "internal error" not in told.text
    return (
        f"costs {told.cost}, not {row['cost']}" if is_counted and told.cost != row["cost"] else ""
    )


def test_upstreams_expressions_get_upstreams_answers() -> None:
    found = {
        row["name"]: differ(row, raw=False, device=row["device"]) for row in read("upstream.jsonl")
    }
    assert len(found) > 60
    assert {name: what for name, what in found.items() if what} == {}


def test_our_expressions_get_upstreams_answers() -> None:
    device = json.loads((DATA / "device.json").read_text(encoding="utf-8"))
    found = {row["expr"]: differ(row, raw=True, device=device) for row in read("ours.jsonl")}
    assert len(found) > 1000
    assert {text: what for text, what in found.items() if what and text not in DIFFERENT} == {}
    assert {text for text in DIFFERENT if not found[text]} == set()
