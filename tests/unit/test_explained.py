"""``simulate --explain`` on 200 nodes: what is alike is one line, and no line is cut."""

import io
import math
from typing import Any

import msgspec
import pytest
from rich.console import Console

from scheduler.api import names, wire
from scheduler.simulate import explained, report, schedule
from tests import make
from tests.model import mixed_fleet

Json = dict[str, Any]


def as_json(one: wire.Node | wire.Pod) -> Json:
    found: Json = msgspec.to_builtins(one)
    return found | {"kind": type(one).__name__}


def test_nodes_that_fit_come_by_total_and_the_others_by_reason_with_counts() -> None:
    fits = {"feasible": True, "status": "fit", "reasons": []}
    low = fits | {
        "raw": {"keel": 10.0, "Taint": 0, "First": 1},
        "scores": {"keel": 10.0, "Taint": 100, "First": 1},
        "weighted": {"keel": 50.0, "Taint": 300, "First": 0},
    }
    lower = fits | {
        "raw": {"keel": 0.0, "Taint": 0, "First": 1},
        "scores": {"keel": 0.0, "Taint": 100, "First": 1},
        "weighted": {"keel": 0.0, "Taint": 300, "First": 0},
    }
    high = fits | {
        "raw": {"keel": 20.125, "Taint": 0},
        "scores": {"keel": 20.125, "Taint": 100},
        "weighted": {"keel": 100.625, "Taint": 300},
    }
    short = {"feasible": False, "status": "unschedulable", "reasons": ["Insufficient cpu"]}
    off = {"feasible": False, "status": "unresolvable", "reasons": ["node(s) were unschedulable"]}
    nodes = {"a": off, "b": low | {"total": 350.0}, "c": high | {"total": 400.625}}
    nodes["d"] = lower | {"total": 300.0}
    nodes |= {f"s{i}": short for i in range(5)}
    total = {"memoryMiB": 15360, "cores": 100, "sharers": 10}
    idle = {"id": "GPU-0", "index": 0, "free": total, "total": total}
    shared = {"index": 1, "free": {"memoryMiB": 7860, "cores": 70, "sharers": 9}, "total": total}
    cards = {"by": "mode keel", "before": [idle, shared, idle | {"index": 2}]}
    weights = {"keel": 5, "Taint": 3, "First": 0}
    told = {"node": "b", "nodes": nodes, "weights": weights, "cards": cards}
    assert list(explained.print_nodes(told)) == [
        "  cards by mode keel",
        "  free on each card before the pod (memory, cores, sharers)",
        "    0, 2: 15360 of 15360 MiB, 100 of 100 %, 10 of 10",
        "    1: 7860 of 15360 MiB, 70 of 100 %, 9 of 10",
        "  3 of 9 nodes fit",
        "              raw  points  weight  weighted",
        "  the same on each of these nodes",
        "    Taint       0     100       3       300",
        "  total 350: b (chosen)",
        "    keel       10      10       5        50",
        "    First  above all totals",
        "  total 300: d",
        "    keel        0       0       5         0",
        "    First  above all totals",
        "  total 400.625: c",
        "    keel   20.125  20.125       5   100.625",
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
    report.print_report({"": result}, Console(file=out, width=80))
    lines = out.getvalue().splitlines()
    assert len(lines) < 60
    assert sum(" (chosen)" in line for line in lines) == 1


def nodes_that_differ() -> list[Json]:
    """Nodes a and b, by all that nodes are preferred for."""
    zoned = {name: {"zone": name, "kubernetes.io/hostname": name} for name in "ab"}
    soft = [("k", "", "PreferNoSchedule"), ("l", "", "PreferNoSchedule")]
    return [
        as_json(make.node(name="a", labels=zoned["a"] | {"disk": "ssd"}, taints=soft)),
        as_json(make.node(name="b", labels=zoned["b"], images={"app:1": 523})),
    ]


def pod_that_prefers() -> Json:
    selector = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}
    pod = as_json(make.pod(name="p", cpu=1, image="app:1", labels={"app": "x"}))
    pod["spec"]["topologySpreadConstraints"] = [
        selector | {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    ]
    pod["spec"]["affinity"] = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 30, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}},
            ],
        },
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 7, "podAffinityTerm": selector},
            ],
        },
    }  # fmt: skip
    return pod


def test_raw_scores_are_what_each_score_counts_and_weights_are_told_once() -> None:
    there = [as_json(make.pod(name=f"q{i}", node="b", labels={"app": "x"})) for i in range(3)]
    (row,) = schedule([*nodes_that_differ(), *there, pod_that_prefers()], with_nodes=True)["pods"]
    assert row["weights"] == {
        "keel": 5, "TaintToleration": 3, "NodeAffinity": 2, "ImageLocality": 1,
        "PodTopologySpread": 2, "InterPodAffinity": 2, "KeepsGpuNodesFree": 0,
    }  # fmt: skip
    raw = {name: node["raw"] for name, node in row["nodes"].items()}
    scores = {name: node["scores"] for name, node in row["nodes"].items()}
    for name, figures in {
        # Soft taints that are not tolerated.
        "TaintToleration": ((2, 0), (0, 100)),
        # The weights of preferred terms.
        "NodeAffinity": ((30, 0), (100, 0)),
        # Pods in the zone, each as much as ln(2 zones + 2), rounded; below them the points of the fewest.
        "PodTopologySpread": ((0, round(3 * math.log(4))), (100, 0)),
        # The weight of the term for each pod in the zone.
        "InterPodAffinity": ((0, 21), (0, 100)),
        # Points at once, by half of the bytes, as half of the nodes have the image.
        "ImageLocality": ((0, 24), (0, 24)),
    }.items():
        assert ((raw["a"][name], raw["b"][name]), (scores["a"][name], scores["b"][name])) == figures
    for node in row["nodes"].values():
        assert node["raw"]["keel"] == node["scores"]["keel"]
        assert node["raw"].keys() == node["scores"].keys() == node["weighted"].keys()
        for name, points in node["scores"].items():
            assert node["weighted"][name] == pytest.approx(row["weights"][name] * points)


def test_a_node_without_the_label_of_a_spread_has_no_raw_score_of_it() -> None:
    bare = as_json(make.node(name="c"))
    objects = [*nodes_that_differ(), bare, pod_that_prefers()]
    (row,) = schedule(objects, with_nodes=True)["pods"]
    assert row["nodes"]["c"]["raw"]["PodTopologySpread"] is None
    assert row["nodes"]["c"]["scores"]["PodTopologySpread"] == 0
    (line,) = {
        line
        for line in explained.print_nodes(row | {"node": None})
        if line.split()[:2] == ["PodTopologySpread", "-"]
    }
    assert line.split() == ["PodTopologySpread", "-", "0", "2", "0"]


def test_what_a_node_policy_counts_is_hamis_score_and_its_points_are_of_100() -> None:
    node = as_json(make.hami_node(name="g", cards=2))
    policy = {"hami.io/node-scheduler-policy": "spread"}
    there = as_json(make.pod(name="q", node="g", gpu=1, gpumem=15360, gpucores=100))
    there["metadata"]["annotations"] = {
        "hami.io/vgpu-devices-allocated": "g-GPU-0,NVIDIA,15360,100:;"
    }
    asking = as_json(make.pod(name="p", gpu=1, gpumem=1000, annotations=policy))
    (row,) = schedule([node, there, asking], with_nodes=True)["pods"]
    said = row["nodes"]["g"]
    # Of two cards one is full, and has one of ten sharers: 10 · (1/20 + 1/2 + 1/2).
    assert said["raw"]["hami-spread"] == pytest.approx(10.5)
    assert said["scores"]["hami-spread"] == pytest.approx(100 * (30 - 10.5) / 30)
    assert said["weighted"]["hami-spread"] == pytest.approx(5 * said["scores"]["hami-spread"])


def test_links_have_a_row_of_their_own_beside_the_mode() -> None:
    node = make.hami_node(name="g", cards=2)
    links = '[{"uuid":"g-GPU-0","score":{"g-GPU-1":20}},{"uuid":"g-GPU-1","score":{"g-GPU-0":20}}]'
    node.metadata.annotations = {**(node.metadata.annotations or {}), names.HAMI_SCORE: links}
    plain = as_json(make.pod(name="p", gpu=2))
    policy = {names.HAMI_GPU_POLICY: "topology-aware"}
    (row,) = schedule([as_json(node), plain], with_nodes=True)["pods"]
    alone = row["nodes"]["g"]["scores"]["keel"]
    linked = as_json(make.pod(name="p", gpu=2, annotations=policy))
    (row,) = schedule([as_json(node), linked], with_nodes=True)["pods"]
    said = row["nodes"]["g"]
    assert said["scores"]["links"] == 20
    assert said["scores"]["keel"] == pytest.approx(alone)
    assert said["weighted"]["links"] == 100
    policy |= {names.HAMI_NODE_POLICY: "spread"}
    spread = as_json(make.pod(name="p", gpu=2, annotations=policy))
    (row,) = schedule([as_json(node), spread], with_nodes=True)["pods"]
    said = row["nodes"]["g"]
    assert (said["scores"]["links"], said["weighted"]["links"]) == (20, 0)
    assert said["scores"]["hami-spread"] == 100


def test_what_the_vendor_adds_is_in_the_score_of_a_node_policy() -> None:
    told = {"metax-tech.com/gpu.topology.losses": '{"1": 300}'}
    node = make.node(name="g", allocatable={"metax-tech.com/gpu": 2}, annotations=told)
    policy = {names.HAMI_NODE_POLICY: "binpack"}
    asking = make.pod(name="p", requests={"metax-tech.com/gpu": 1}, annotations=policy)
    (row,) = schedule([as_json(node), as_json(asking)], with_nodes=True)["pods"]
    assert row["nodes"]["g"]["raw"]["hami-binpack"] == 1700


@pytest.mark.parametrize(
    ("annotations", "gpus", "by", "indices"),
    [
        ({}, 1, "mode keel", [1]),
        ({"hami.io/gpu-scheduler-policy": "binpack"}, 1, "GPU policy binpack", [1]),
        ({"hami.io/node-scheduler-policy": "spread"}, 1, "GPU policy binpack, because none is set", [1]),
        ({"hami.io/gpu-scheduler-policy": "spread,numa"}, 1, "GPU policy spread,numa", [2]),
        ({"nvidia.com/numa-bind": "true"}, 2, "GPU policy binpack, because none is set, all on one NUMA node", [1, 2]),
    ],
)  # fmt: skip
def test_why_these_cards(
    annotations: dict[str, str], gpus: int, by: str, indices: list[int]
) -> None:
    node = as_json(make.hami_node(name="g", cards=3))
    there = as_json(make.pod(name="q", node="g", gpu=1))
    there["metadata"]["annotations"] = {
        "hami.io/vgpu-devices-allocated": "g-GPU-1,NVIDIA,7500,30:;"
    }
    asking = as_json(
        make.pod(name="p", gpu=gpus, gpumem=1500, gpucores=10, annotations=annotations)
    )
    (row,) = schedule([node, there, asking], with_nodes=True)["pods"]
    assert row["cards"]["by"] == by
    assert [one["index"] for one in row["cards"]["before"]] == [
        one["index"] for one in row["devices"]
    ]
    total = {"memoryMiB": 15360, "cores": 100, "sharers": 10}
    for one in row["cards"]["before"]:
        free = {"memoryMiB": 7860, "cores": 70, "sharers": 9} if one["index"] == 1 else total
        assert one == {
            "id": f"g-GPU-{one['index']}",
            "index": one["index"],
            "free": free,
            "total": total,
        }
    assert [one["index"] for one in row["cards"]["before"]] == indices


def test_a_pod_without_cards_is_told_of_none() -> None:
    objects = [as_json(make.node(name="g", gpus=2)), as_json(make.pod(gpu=1))]
    objects += [as_json(make.pod(name="waits", gpu=4, priority=-1))]
    for row in schedule(objects, with_nodes=True)["pods"]:
        assert row["cards"] is None
        assert not any(line.startswith("  cards") for line in explained.print_nodes(row))
