"""What ``evenkeel explain`` prints, on a terminal and off it."""

import json

import pytest
from rich.console import Console

from scheduler.api import names
from scheduler.explain import losses, report
from tests import make
from tests.model import mixed_fleet
from tests.screen import Screen
from tests.unit.test_explain import explain, on, said
from tests.unit.test_simulate_what_if import gpu_node, node, pod


@pytest.mark.parametrize("width", [80, 40])
def test_no_line_is_wider_than_a_terminal_and_none_in_a_pipe_wider_than_80_columns(
    width: int,
) -> None:
    fleet = [
        *(make.raw(one) | {"kind": "Node"} for one in mixed_fleet.nodes()),
        *(make.raw(one) | {"kind": "Pod"} for one in [*mixed_fleet.running(), *mixed_fleet.pending()]),
        pod("huge", gpu=9, cpu=400, node_selector={"a": "b"}),
        on("a-name-as-long-as-those-of-a-chart-and-a-replica-set-5f6d8c-x2x", "g1", gpu=3, gpumem=6000, gpucores=30, memory="24Gi"),
    ]  # fmt: skip
    waiting = [one["metadata"]["name"] for one in fleet if one["kind"] == "Pod"][-4:-1]
    names = [one["metadata"]["name"] for one in fleet if one["kind"] == "Node"]
    fleet[-1]["spec"]["nodeName"] = names[0]
    for arguments in [
        *(("pod", name) for name in waiting),
        ("node", names[0]),
        ("node", names[-1]),
    ]:
        found = json.loads(explain(*arguments, "-o", "json", objects=fleet).stdout)
        out = Screen()
        report.print_answer(
            found, Console(file=out, force_terminal=True, width=width, color_system=None)
        )
        lines = [line.rstrip() for line in out.getvalue().splitlines()]
        assert too_wide(lines, width) == []
        assert len(lines) < 400
        piped = said(*arguments, objects=fleet)
        assert not any("\x1b" in line for line in piped)
        assert too_wide(piped, 80) == []
        assert " ".join(" ".join(piped).split()) == " ".join(" ".join(lines).split()) or width < 64


def too_wide(lines: list[str], width: int) -> list[str]:
    """A name that is longer than the terminal is wide is not broken."""
    return [one for one in lines if len(one) > width and len(one.split()) > 1]


def test_ids_of_cards_and_whole_rows_are_in_wide_output_alone() -> None:
    long = "a-name-as-long-as-those-of-a-chart-and-a-replica-set-5f6d8c-x2x"
    objects = [
        gpu_node("g", cards=1),
        on(long, "g", gpu=1, gpumem=6000, gpucores=30, memory="24Gi", cpu=4),
        on("amd", "g", memory="1Gi", requests={names.AMD_GPU: 1}),
    ]
    plain, wide = (
        said("node", "g", objects=objects),
        said("node", "g", "-o", "wide", objects=objects),
    )
    assert too_wide(plain, 80) == []
    assert "GPU-0" not in "".join(plain)
    assert "  0 Tesla-T4" in plain
    assert "  0 Tesla-T4 g-GPU-0" in wide
    row = f"  default/{long}: 4 cpu, 24Gi memory, 1 nvidia.com/gpu, 30 nvidia.com/gpucores, 6000 nvidia.com/gpumem"
    assert row in wide
    # Names of two vendors are told apart.
    assert "1 nvidia.com/gpu, 30 gpucores, 6000 gpumem" in " ".join(" ".join(plain).split())


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
    labels = {names.GPU_PRODUCT: "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "12"}
    objects = [node("s", gpus=24, labels=labels), pod("p", node="s", gpu=3), node("w", gpus=2)]
    lines = said("node", "s", objects=objects)
    at = lines.index("  [##..........] nvidia.com/gpu: 3 of 24, 21 free")
    assert (
        lines[at + 1].strip() == "each is a part of a card, 0.08333 of it: 0.25 of 2 cards in use"
    )
    assert not any("part of a card" in line for line in said("node", "w", objects=objects))
    found = json.loads(explain("node", "s", "-o", "json", objects=objects).stdout)
    by_resource = {one["resource"]: one["gpuPart"] for one in found["resources"]}
    assert by_resource == {"cpu": 1, "memory": 1, "pods": 1, "nvidia.com/gpu": 0.083333}


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
    told = [line.text for line in losses.write_lines({"best": [{"node": "n", "loss": loss}]})]
    sentence = "A figure below 0 means that less is lost with the pod there than without it."
    assert (sentence in told) == is_explained
