"""Trees of groups that are not whole, or no trees: their pods wait with a text, and others do not."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.simulate import schedule

Json = dict[str, Any]


def node(name: str) -> Json:
    status = {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "20"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, group: str = "") -> Json:
    spec: Json = {
        "schedulerName": "evenkeel",
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
    }
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    meta = {"name": name, "namespace": "default", "uid": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def make_group(name: str, parent: str = "", *, is_composite: bool = True) -> Json:
    least = {"minGroupCount": 1} if is_composite else {"minCount": 2}
    spec: Json = {"schedulingPolicy": {"gang": least}}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    version = "v1alpha3" if is_composite else "v1beta1"
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "CompositePodGroup" if is_composite else "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def ask(above: list[Json], parent: str) -> dict[str, Json]:
    """The row of each pod: two in a group under a parent, and one in no group."""
    group = make_group("g", parent, is_composite=False)
    pods = [pod("p0", "g"), pod("p1", "g"), pod("alone")]
    return {row["name"]: row for row in schedule([node("n"), *above, group, *pods])["pods"]}


@pytest.mark.parametrize(
    ("above", "text"),
    [
        ([], "CompositePodGroup default/c0 does not exist"),
        (
            [make_group("c0", "lost")],
            "CompositePodGroup default/lost does not exist",
        ),
        (
            [make_group("c0", "c0")],
            "PodGroup default/g: the groups around it: they form a circle, or are more than 8",
        ),
        (
            [make_group("c0", "c1"), make_group("c1", "c0")],
            "PodGroup default/g: the groups around it: they form a circle, or are more than 8",
        ),
        (
            [make_group(f"c{i}", f"c{i + 1}" if i < 8 else "") for i in range(9)],
            "PodGroup default/g: the groups around it: they form a circle, or are more than 8",
        ),
    ],
)
def test_a_group_without_a_root_waits_and_says_why(above: list[Json], text: str) -> None:
    group = make_group("g", "c0", is_composite=False)
    found = schedule([node("n"), *above, group, pod("p0", "g"), pod("p1", "g"), pod("alone")])
    assert (found["summary"]["pods"], len(found["groups"])) == (3, 1)
    rows = {row["name"]: row for row in found["pods"]}
    assert rows["alone"]["node"] == "n"
    for name in ("p0", "p1"):
        assert not rows[name]["node"]
        assert text in rows[name]["message"]


@pytest.mark.parametrize("depth", [1, 4, 8])
def test_a_tree_that_is_not_too_deep_is_placed(depth: int) -> None:
    above = [make_group(f"c{i}", f"c{i + 1}" if i < depth - 1 else "") for i in range(depth)]
    rows = ask(above, "c0")
    assert {row["node"] for row in rows.values()} == {"n"}
