"""Floors of the benches: every figure they are about is judged, and what is not there is not met."""

from typing import Any

import pytest

from bench.floors import Floor, judged

RESULT = {
    "rows": [
        {"pods": "plain", "ratio": 2.5, "modes": {"keel": {"ns": 3}, "fgd": {"ns": 4}}},
        {"pods": "one GPU", "ratio": 1.8, "modes": {"keel": {"ns": 5}}},
    ],
    "seconds": None,
}


@pytest.mark.parametrize(
    ("floor", "told"),
    [
        pytest.param(
            Floor("rows.*.ratio", at_least=2),
            {"rows.0.ratio": True, "rows.1.ratio": False},
            id="each row",
        ),
        pytest.param(
            Floor("rows.*.ratio", at_least=2, only=("pods", "plain")),
            {"rows.0.ratio": True},
            id="the rows that say so",
        ),
        pytest.param(
            Floor("rows.*.modes.*.ns", at_most=4),
            {
                "rows.0.modes.keel.ns": True,
                "rows.0.modes.fgd.ns": True,
                "rows.1.modes.keel.ns": False,
            },
            id="each mode of each row",
        ),
        pytest.param(Floor("seconds", at_most=9), {"seconds": False}, id="it was not measured"),
        pytest.param(Floor("second", at_most=9), {"second": False}, id="there is no such figure"),
        pytest.param(
            Floor("rows.0.ratio.least", at_most=9),
            {"rows.0.ratio.least": False},
            id="a figure has no parts",
        ),
    ],
)
def test_a_floor_is_told_of_every_figure_it_is_about(floor: Floor, told: dict[str, bool]) -> None:
    rows = judged("part", RESULT, [floor])
    assert {row["figure"].removeprefix("part."): row["met"] for row in rows} == told


@pytest.mark.parametrize(
    ("floor", "text"),
    [
        (Floor("x", at_least=0.85), ">= 0.85"),
        (Floor("x", at_most=10), "<= 10"),
        (Floor("x", at_least=1, at_most=2), ">= 1 and <= 2"),
    ],
)
def test_a_floor_is_told_with_its_bound(floor: Floor, text: str) -> None:
    assert judged("part", {"x": 1}, [floor])[0]["floor"] == text


@pytest.mark.parametrize("found", [float("nan"), None, "fast"])
def test_what_is_no_figure_meets_no_floor(found: Any) -> None:
    (row,) = judged("part", {"x": found}, [Floor("x", at_least=0)])
    assert not row["met"]
