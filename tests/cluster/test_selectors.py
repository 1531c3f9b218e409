"""Kubernetes' judge of devices and ours say the same: of the tables that unit tests use, and of random expressions."""

from __future__ import annotations

import json

import pytest

from tests.differential.selectors import compare, oracle
from tests.unit import test_selector_tables as tables

EXPRESSIONS = 500
# As many expressions get another answer whenever Go goes through a map, or break upstream, at most.
VARIED = 25


@pytest.mark.usefixtures("dra_cel")
def test_the_tables_say_what_the_judge_says() -> None:
    device = json.loads((tables.DATA / "device.json").read_text(encoding="utf-8"))
    rows = [(row, row["device"], False) for row in tables.read("upstream.jsonl")]
    rows += [(row, device, True) for row in tables.read("ours.jsonl")]
    told = oracle.ask(
        {"expr": row["expr"], "device": about, "raw": raw} for row, about, raw in rows
    )
    for (row, *_), answer in zip(rows, told, strict=True):
        kept = {key: row[key] for key in row if key in {"kind", "value", "text", "cost"}}
        assert kept == {key: answer[key] for key in answer if key != "type"}, row["expr"]


@pytest.mark.usefixtures("dra_cel")
def test_of_random_expressions_both_say_the_same() -> None:
    """`make differential ARGS="selectors"` asks about more of them, of other seeds."""
    found = compare.compare(1, EXPRESSIONS)
    assert not found.differences, "\n".join(found.differences[:5])
    assert found.varied + found.broken <= VARIED
    assert min(found.kinds[kind] for kind in ("ok", "compile", "runtime")) > EXPRESSIONS / 20
