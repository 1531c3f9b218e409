"""Why nodes strand something: the audit names the taint or label, and sums up the nodes that it does not show."""

from typing import Any

from scheduler.api import wire
from scheduler.audit.page import page
from tests import make
from tests.unit.test_audit_findings import audit, read, shown_at


def kept_off(**node: Any) -> tuple[list[wire.Node], list[wire.Pod]]:
    """Thirty pods with a GPU on nodes of their own, and three free nodes with GPUs that do not take such pods."""
    own = [make.node(name=f"own-{i}", cpu=64, memory="64Gi", gpus=8) for i in range(4)]
    nodes = own + [
        make.node(name=f"off-{i}", cpu=8, memory="16Gi", gpus=2, **node) for i in range(3)
    ]
    pods = [
        make.pod(name=f"p{i}", node=f"own-{i % 4}", cpu=1, memory="1Gi", gpu=1) for i in range(30)
    ]
    return nodes, pods


def test_a_cause_names_the_taint_that_keeps_the_typical_pods_off() -> None:
    nodes, pods = kept_off(taints=[("nvidia.com/gpu", "present", "NoSchedule")])
    found = audit(nodes, pods, modes=(), worst=1)
    cause = "the typical GPU pods do not tolerate the taint nvidia.com/gpu=present:NoSchedule"
    assert found["total"]["stranded"]["gpuCompute"] == 6
    assert {one["why"]["cause"] for one in found["nodes"] if one["money"]} == {cause}
    text = " ".join(" ".join(shown_at(80, found)).split())
    assert "3 nodes (off-0, off-1, off-2; 6 GPUs, $" in text
    assert f"a month): {cause}. off-0: 2 GPUs free" in text
    shown = read(page.render_page(found)).words
    assert f"T{cause[1:]} (3 nodes, 6 GPUs, $" in shown


def test_a_cause_names_the_label_that_the_typical_pods_select() -> None:
    nodes, pods = kept_off()
    for one in nodes[:4]:
        one.metadata.labels = {"pool": "gold"}
    for pod in pods:
        pod.spec.node_selector = {"pool": "gold"}
    found = audit(nodes, pods, modes=(), worst=1)
    cause = "the typical GPU pods select nodes with the label pool=gold"
    assert {one["why"]["cause"] for one in found["nodes"] if one["money"]} == {cause}


def test_nodes_beyond_the_worst_are_a_row_of_their_own_and_count_among_the_causes() -> None:
    found = audit(*kept_off(taints=[("a", "", "NoExecute")]), modes=(), worst=1)
    (more,) = [line for line in shown_at(80, found) if "more nodes" in line and "$" not in line]
    money = sum(one["money"] for one in found["nodes"]) * 2 / 3
    assert more.split() == [
        "and",
        "2",
        "more",
        "nodes",
        "0.0",
        "0.0",
        "4.0",
        "0.0",
        f"{money:,.0f}",
    ]
    text = page.render_page(found)
    assert "and 2 more nodes" in text
    none = audit(*kept_off(taints=[("a", "", "NoExecute")]), modes=(), worst=0)
    assert "Nothing is stranded" not in page.render_page(none)
    assert "off-0, off-1, off-2" in page.render_page(none)
