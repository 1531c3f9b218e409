"""Resources of devices have rows of the matrix while a node offers them."""

import msgspec
import numpy as np

from scheduler.api import wire
from scheduler.state import checks
from tests import make
from tests.model.vendor_fleet import read_fleet

_MLU = "cambricon.com/vmlu"


def test_families_that_no_node_offers_have_no_row() -> None:
    """There are dozens of families, and each row is a figure for each node."""
    cluster = make.cluster(nodes=[make.node(name="n", cpu=4)])
    assert cluster.nodes.resources.find(_MLU) < 0
    before = len(cluster.nodes.resources.values)
    cluster.see_node(make.node(name="m", cpu=4, allocatable={_MLU: 2}))
    assert len(cluster.nodes.resources.values) == before + 1
    cluster.drop_node("m")
    assert cluster.nodes.resources.find(_MLU) < 0
    checks.verify(cluster)


def test_a_node_whose_plugin_is_away_has_its_cards_counted_by_the_row_that_another_node_brings() -> (
    None
):
    """A node may report cards of a family that it does not offer at the moment."""
    found = next(node for node in read_fleet().nodes if _MLU in (node.status.allocatable or {}))
    body = msgspec.to_builtins(found)
    body["metadata"] |= {"name": "away", "uid": "away"}
    del body["status"]["allocatable"][_MLU]
    cluster = make.cluster(nodes=[msgspec.convert(body, wire.Node)])
    pools = cluster.nodes.columns.pools
    assert cluster.nodes.resources.find(_MLU) < 0
    checks.verify(cluster)
    for _ in range(2):
        cluster.see_node(found)
        row = cluster.nodes.resources.find(_MLU)
        assert np.count_nonzero(pools.resource[pools.node >= 0] == row) == 2
        checks.verify(cluster)
        cluster.drop_node(found.metadata.name)
        assert cluster.nodes.resources.find(_MLU) < 0
        # Another resource gets the row that is free again.
        cluster.see_node(make.node(name="other", allocatable={"example.com/other": 3}))
        checks.verify(cluster)
        cluster.drop_node("other")
