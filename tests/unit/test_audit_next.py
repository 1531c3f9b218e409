"""What the audit says of one more pod of a kind that is there."""

import html

from scheduler.audit.page import page
from tests import make
from tests.unit.test_audit_findings import EVIL, audit, shown_at, two_nodes


def test_where_one_more_pod_of_each_kind_would_go_is_told_with_what_it_loses_and_why() -> None:
    nodes, pods = two_nodes()
    waits = [make.pod(name=EVIL, cpu=700), make.pod(name="wrong", gpu=1, gpumem="lots")]
    gpu = [make.pod(name=f"share-{i}", gpu=1, gpumem=3000) for i in range(2)]
    found = audit([*nodes, make.hami_node(name="g", cards=2)], pods + gpu + waits)
    told = {one["like"]: one for one in found["next"]}
    fat, lean, share = (told[f"default/{name}-0"] for name in ("fat", "lean", "share"))
    # On a there is no memory left, on b there is no place that a pod of much memory would not take.
    assert (fat["pods"], fat["nodes"][0]["node"]) == (30, "b")
    assert lean["nodes"][0]["node"] == "a"
    assert fat["why"] == "b comes before g: KeepsGpuNodesFree decides before totals are compared."
    assert fat["nodes"][0]["loss"]["unit"] == "thousandths of a node"
    assert share["nodes"][0]["loss"]["unit"] == "milli-GPU"
    assert (share["fitting"], share["why"]) == (1, "")
    assert told[f"default/{EVIL}"]["nodes"] == []
    text = " ".join(" ".join(shown_at(200, found)).split())
    assert "such pod): no node takes it" in text
    assert "b comes before g: KeepsGpuNodesFree decides before totals are compared." in text
    drawn = page.render_page(found)
    assert "Where one more pod of each frequent kind would go" in drawn
    assert EVIL not in drawn
    assert html.escape(EVIL) in drawn
    assert "one more pod" not in "".join(shown_at(200, audit(nodes, [])))
