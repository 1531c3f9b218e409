"""Random expressions, put to both judges."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any, NamedTuple

from tests.differential.selectors import oracle
from tests.differential.selectors.drawing import Drawer
from tests.differential.selectors.leaves import DEVICE
from tests.model.selectors import judge, make_device

# Upstream is asked so often: what it says differently depends on the order of a map in Go.
_TIMES = 25
_TYPES = ("bool", "bool", "bool", "dyn", "string", "int", "list", "optional")
_DEPTH = 4


class Compared(NamedTuple):
    """How random expressions came out.

    Attributes:
        differences: what differs, with the expression.
        kinds: how many ended in each way.
        varied: how many upstream did not always answer alike.
        broken: how many upstream itself broke at.
    """

    differences: list[str]
    kinds: Counter[str]
    varied: int
    broken: int


def compare(seed: int, count: int) -> Compared:
    """Draw as many expressions and compare."""
    texts = [draw(seed, i) for i in range(count)]
    questions = [{"expr": text, "device": DEVICE, "raw": True} for text in texts]
    answers = [oracle.ask(questions) for _ in range(_TIMES)]
    device = make_device(DEVICE)
    differences: list[str] = []
    kinds: Counter[str] = Counter()
    varied = broken = 0
    for text, told in zip(texts, zip(*answers, strict=True), strict=True):
        if any(one["kind"] == "panic" for one in told):
            broken += 1
        elif any(one != told[0] for one in told):
            varied += 1
        else:
            ours = judge(text, device, raw=True)
            kinds[ours.kind] += 1
            if _simplify(ours._asdict()) != _simplify(told[0]):
                differences.append(f"{text}\n  upstream: {told[0]}\n  ours: {ours}")
    return Compared(differences, kinds, varied, broken)


def draw(seed: int, number: int) -> str:
    """Draw one expression."""
    kind = random.Random(number).choice(_TYPES)
    return Drawer(seed * 1_000_003 + number).draw(kind, _DEPTH)


def _simplify(told: dict[str, Any]) -> tuple[str, str, str, int]:
    """Return what must be alike: of a text that does not compile the first line, without numbers of parameters."""
    kind, text, cost = told["kind"], told.get("text", ""), told["cost"]
    if kind == "compile":
        text, cost = re.sub(r"_var\d+", "_var", text.split("\n", maxsplit=1)[0]), 0
    if "internal error" in text:
        cost = 0  # upstream breaks before it has counted
    if "Syntax error" in text:
        text = "Syntax error"
    return kind, told.get("value", ""), text, cost
