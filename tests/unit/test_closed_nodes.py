"""Nodes of which something is not given away are counted, by why."""

from scheduler.state import checks
from tests import make


def test_each_reason_is_counted_and_an_open_node_is_not() -> None:
    cluster = make.cluster(
        nodes=[
            make.hami_node(name="open", cards=2),
            make.hami_node(name="silent", cards=2),
            make.hami_node(name="full", cards=2),
            make.node(name="cordoned", unschedulable=True),
            make.node(name="odd", allocatable={"cpu": "lots"}),
        ]
    )
    cluster.close_cards("silent", closed=True)
    for i in range(2):
        # Two that do not tell which cards they have are taken to hold the first, both of them.
        cluster.see_pod(make.pod(name=f"p{i}", node="full", gpu=1))
    assert checks.count_closed_nodes(cluster) == {
        "malformed": 1,
        "plugin-silent": 1,
        "over-full-card": 1,
        "cordoned": 1,
    }
    cluster.close_cards("silent", closed=False)
    cluster.drop_pod("default/p0")
    assert checks.count_closed_nodes(cluster) | {"malformed": 0, "cordoned": 0} == dict.fromkeys(
        ("malformed", "plugin-silent", "over-full-card", "cordoned"), 0
    )


def test_a_cluster_without_cards_has_none_that_is_over_full() -> None:
    assert (
        checks.count_closed_nodes(make.cluster(nodes=[make.node(name="n")]))["over-full-card"] == 0
    )
