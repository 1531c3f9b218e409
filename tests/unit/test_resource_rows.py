"""Resources of devices get rows of the matrix once a node offers them, and keep them for good."""

from scheduler.api import names
from scheduler.state import checks
from tests import make

_MLU = "cambricon.com/vmlu"


def test_families_that_no_node_offers_have_no_row() -> None:
    """There are dozens of families, and each row is a figure for each node."""
    cluster = make.cluster(nodes=[make.node(name="n", cpu=4)])
    assert cluster.nodes.resources.find(_MLU) < 0
    before = len(cluster.nodes.resources.values)
    cluster.see_node(make.node(name="m", cpu=4, allocatable={_MLU: 2}))
    assert len(cluster.nodes.resources.values) == before + 1
    row = cluster.nodes.resources.find(_MLU)
    # A node may report cards of a family that it does not offer at the moment, so the row stays.
    cluster.drop_node("m")
    assert cluster.nodes.resources.find(_MLU) == row
    checks.verify(cluster)


def test_a_node_whose_plugin_is_away_has_its_cards_counted_by_the_row_that_another_node_brings() -> (
    None
):
    away = make.hami_node(name="away", cards=1)
    assert away.status.allocatable is not None
    del away.status.allocatable[names.GPU]
    cluster = make.cluster(nodes=[away])
    checks.verify(cluster)
    cluster.see_node(make.hami_node(name="there", cards=1))
    checks.verify(cluster)
    record = cluster.see_pod(make.pod(name="p", gpu=1, gpumem=100))
    assert record is not None
    (bind,) = make.cycle(cluster=cluster).schedule([record]).binds
    assert bind.node == "there"
