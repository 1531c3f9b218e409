"""What ``evenkeel explain`` prints, on a terminal and off it."""

import json

import pytest
from rich.console import Console

from scheduler import printing
from scheduler.api import names
from scheduler.explain import losses, node_lines, pod_lines, report
from tests import make
from tests.model import mixed_fleet
from tests.screen import Screen
from tests.unit.test_explain import explain, on, said
from tests.unit.test_simulate_what_if import node, pod


@pytest.mark.parametrize("width", [80, 40])
def test_a_terminal_of_any_width_is_not_overrun_and_a_pipe_has_prose_of_80_columns_and_whole_rows(
    width: int,
) -> None:
    fleet = [
        *(make.raw(one) | {"kind": "Node"} for one in mixed_fleet.nodes()),
        *(make.raw(one) | {"kind": "Pod"} for one in [*mixed_fleet.running(), *mixed_fleet.pending()]),
        pod("huge", gpu=9, cpu=400, node_selector={"a": "b"}),
    ]  # fmt: skip
    waiting = [one["metadata"]["name"] for one in fleet if one["kind"] == "Pod"][-3:]
    names = [one["metadata"]["name"] for one in fleet if one["kind"] == "Node"]
    for arguments in [
        *(("pod", name) for name in waiting),
        ("node", names[0]),
        ("node", names[-1]),
    ]:
        found = json.loads(explain(*arguments, "-o", "json", objects=fleet).stdout)
        out = Screen()
        report.show(found, Console(file=out, force_terminal=True, width=width, color_system=None))
        lines = [line.rstrip() for line in out.getvalue().splitlines()]
        # A name that is longer than the terminal is wide is not broken.
        assert [one for one in lines if len(one) > width and len(one.split()) > 1] == []
        assert len(lines) < 400
        piped = said(*arguments, objects=fleet)
        assert not any("\x1b" in line for line in piped)
        drawn = pod_lines.of if arguments[0] == "pod" else node_lines.of
        rows = {one.text for one in drawn(printing.shown(found), 80) if one.is_row}
        too_long = [line for line in piped if len(line) > 80 and len(line.split()) > 1]
        assert {line.strip() for line in too_long} <= rows
        assert rows <= {line.strip() for line in piped}
        assert " ".join(" ".join(piped).split()) == " ".join(" ".join(lines).split()) or width < 64


def test_what_a_terminal_would_obey_is_spelt_out() -> None:
    evil = "x\x1b]0;PWNED\x07\u202e"
    objects = [
        node(f"n{evil}", labels={evil: evil}, taints=[(evil, evil, "NoSchedule")]),
        pod(f"p{evil}", node_selector={evil: "y"}),
        on("r", f"n{evil}"),
    ]
    for arguments in (("pod", f"p{evil}"), ("node", f"n{evil}"), ("pod", "r")):
        result = explain(*arguments, objects=objects)
        assert result.exit_code == 0, result.output
        assert [one for one in result.output.split("\n") if not one.isprintable()] == []
    result = explain("pod", f"nobody{evil}", objects=objects)
    assert [one for one in result.output.split("\n") if not one.isprintable()] == []


def test_replicas_of_time_slicing_are_told_to_be_parts_of_a_card() -> None:
    labels = {names.GPU_PRODUCT: "Tesla-T4-SHARED", names.GPU_REPLICAS: "12"}
    objects = [node("s", gpus=24, labels=labels), pod("p", node="s", gpu=3), node("w", gpus=2)]
    lines = said("node", "s", objects=objects)
    at = lines.index("  [##..........] nvidia.com/gpu: 3 of 24, 21 free")
    assert lines[at + 1].strip() == "each is a part of a card, 12 a card: 0.25 of 2 cards in use"
    assert not any("part of a card" in line for line in said("node", "w", objects=objects))
    found = json.loads(explain("node", "s", "-o", "json", objects=objects).stdout)
    by_resource = {one["resource"]: one["replicas"] for one in found["resources"]}
    assert by_resource == {"cpu": 1, "memory": 1, "pods": 1, "nvidia.com/gpu": 12}


@pytest.mark.parametrize(
    ("total", "terms", "is_explained"),
    [
        (12.0, {"places": 12.0}, False),
        (-60.2, {"places": -60.2}, True),
        (1.0, {"places": 3.0, "filling": -2.0}, True),
        (-0.04, {}, False),
    ],
)
def test_a_loss_below_zero_is_explained(
    total: float, terms: dict[str, float], is_explained: bool
) -> None:
    loss = {"unit": "milli-GPU", "total": total, "terms": terms, "places": []}
    told = [line.text for line in losses.lines({"best": [{"node": "n", "loss": loss}]})]
    sentence = "A figure below 0 means that less is lost with the pod there than without it."
    assert (sentence in told) == is_explained
