"""``simulate --explain`` on 200 nodes: what is alike is one line, and no line is cut."""

import io

import msgspec
from rich.console import Console

from scheduler.simulate import explained, report, schedule
from tests import make
from tests.model import mixed_fleet


def test_nodes_that_fit_come_by_total_and_the_others_by_reason_with_counts() -> None:
    fits = {"feasible": True, "status": "fit", "reasons": []}
    low = fits | {"scores": {"keel": 10.0, "Taint": 100}, "weighted": {"keel": 50.0, "Taint": 300}}
    high = fits | {"scores": {"keel": 20.0, "Taint": 100}, "weighted": {"keel": 100.0, "Taint": 300}}  # fmt: skip
    short = {"feasible": False, "status": "unschedulable", "reasons": ["Insufficient cpu"]}
    off = {"feasible": False, "status": "unresolvable", "reasons": ["node(s) were unschedulable"]}
    nodes = {"a": off, "b": low | {"total": 350.0}, "c": high | {"total": 400.0}}
    nodes |= {f"s{i}": short for i in range(5)}
    assert list(explained.lines({"node": "c", "nodes": nodes})) == [
        "  2 of 8 nodes fit",
        "  the same on each of them (points, and weighted in the total):",
        "    Taint: 100, weighted 300",
        "  total 400: c <- chosen",
        "    keel: 20, weighted 100",
        "  total 350: b",
        "    keel: 10, weighted 50",
        "  5 nodes refused: Insufficient cpu",
        "    s0, s1, s2 and 2 more",
        "  1 node refused: node(s) were unschedulable (no eviction would help)",
        "    a",
    ]


def test_two_hundred_nodes_take_a_page() -> None:
    objects = [msgspec.to_builtins(node) | {"kind": "Node"} for node in mixed_fleet.nodes()]
    objects += [msgspec.to_builtins(make.pod(gpu=1, gpumem=20000)) | {"kind": "Pod"}]
    result = schedule(objects, with_nodes=True)
    assert len(result["pods"][0]["nodes"]) == mixed_fleet.N_NODES
    out = io.StringIO()
    report.show({"": result}, Console(file=out, width=80))
    lines = out.getvalue().splitlines()
    assert len(lines) < 60
    assert sum(" <- chosen" in line for line in lines) == 1
