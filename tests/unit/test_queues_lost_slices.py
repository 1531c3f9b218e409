"""Pods that a workload has lost go where the domains of the others need them, whole slices to one domain, and to few nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from tests.unit.small_failures import Small, list_nodes, make_started
from tests.unit.test_queues_domains import HOSTS
from tests.unit.test_queues_places import RACKS, make_node

Json = dict[str, Any]
_LEVELS = ("block", "rack", "switch", HOSTS)


class _World(NamedTuple):
    """Nodes by their places in the topology with how many pods fit on each, where the pods are, and which node fails."""

    nodes: Mapping[str, int]
    pods: Mapping[str, int]
    lost: str
    request: Json
    want: Mapping[str, int]


def _make_layers(**sizes: int) -> list[Json]:
    levels = {**dict(zip(_LEVELS, _LEVELS, strict=True)), "host": HOSTS}
    return [{"topology": levels[name], "size": size} for name, size in sizes.items()]


# Kueue, pkg/cache/scheduler/tas_cache_test.go, TestFindTopologyAssignmentsMultiLayerReplacement: the rack and the switch of
# the lost pair are incomplete, and a pair shares a host. Elsewhere in the rack there is a tighter place.
_PAIR_OF_A_SWITCH = _World(
    {
        "b/r1/s1/x1": 4,
        "b/r1/s1/x2": 4,
        "b/r1/s2/x3": 4,
        "b/r1/s2/x4": 8,
        "b/r2/s3/x5": 4,
        "b/r2/s3/x6": 4,
        "b/r2/s4/x7": 4,
        "b/r2/s4/x8": 4,
    },
    {f"x{i}": 2 for i in range(1, 9)},
    "x3",
    {
        "required": "block",
        "podsetSliceRequiredTopologyConstraints": _make_layers(rack=8, switch=4, host=2),
    },
    {"x1": 2, "x2": 2, "x4": 4, "x5": 2, "x6": 2, "x7": 2, "x8": 2},
)
# The first rack of the block has room for one of the two pods.
_WHOLE_SLICE = _World(
    {
        "b/r0/s/x0": 1,
        "b/r1/s/x1": 1,
        "b/r1/s/x2": 1,
        "b/r2/s/x3": 2,
        "b/r3/s/x4": 1,
        "b/r3/s/x5": 1,
        "c/r4/s/x6": 4,
    },
    {"x1": 1, "x2": 1, "x3": 2},
    "x3",
    {"required": "block", "podSetSliceRequiredTopology": "rack", "podSetSliceSize": 2},
    {"x1": 1, "x2": 1, "x4": 1, "x5": 1},
)
_PAIR_OF_A_HOST = _World(
    {"b/r1/s/x1": 2, "b/r1/s/x2": 2, "b/r2/s/x3": 1, "b/r2/s/x4": 1, "b/r3/s/x5": 3},
    {"x1": 2, "x2": 2},
    "x2",
    {"required": "block", "podSetSliceRequiredTopology": HOSTS, "podSetSliceSize": 2},
    {"x1": 2, "x5": 2},
)
# Of the three pods that are lost, one is missing in the slice of others. All three fit on one node of that rack.
_PART_OF_A_SLICE_AND_A_WHOLE_ONE = _World(
    {"b/r1/s/x1": 3, "b/r2/s/x2": 5, "b/r2/s/x3": 5, "b/r2/s/x4": 5},
    {"x1": 3, "x2": 5},
    "x1",
    {"required": "block", "podSetSliceRequiredTopology": "rack", "podSetSliceSize": 2},
    {"x2": 5, "x3": 3},
)
# The rack with one node is the tightest one that takes all.
_FEW_NODES = _World(
    {
        "b/r1/s/x1": 1,
        "b/r1/s/x2": 3,
        "b/r2/s/x3": 1,
        "b/r2/s/x4": 1,
        "b/r2/s/x5": 1,
        "b/r2/s/x6": 1,
        "b/r3/s/x7": 3,
    },
    {"x1": 1, "x2": 3},
    "x2",
    {"required": "block"},
    {"x1": 1, "x7": 3},
)


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(_PAIR_OF_A_SWITCH, id="pair of a switch"),
        pytest.param(_WHOLE_SLICE, id="whole slice"),
        pytest.param(_PAIR_OF_A_HOST, id="pair of a host"),
        pytest.param(_PART_OF_A_SLICE_AND_A_WHOLE_ONE, id="part of a slice, and a whole one"),
        pytest.param(_FEW_NODES, id="no slices, required"),
        pytest.param(_FEW_NODES._replace(request={"preferred": "rack"}), id="no slices, preferred"),
    ],
)
def test_lost_pods_go_where_the_rest_and_their_slices_need_them(world: _World) -> None:
    small = _make_small(world)
    small.drop_node(world.lost)
    (decision,) = small.decide()
    assert list_nodes(decision) == world.want


def _make_small(world: _World) -> Small:
    """A cluster with a workload; each of its pods has four cards."""
    nodes = []
    for path, n in world.nodes.items():
        node = make_node(path.rpartition("/")[2], "", 4 * n)
        node["metadata"]["labels"] |= dict(zip(_LEVELS, path.split("/"), strict=True))
        nodes.append(node)
    on = [name for name, n in world.pods.items() for _ in range(n)]
    gang = make_started(*on, request=world.request)
    domains = [{"values": [name], "count": n} for name, n in world.pods.items()]
    given = gang[0]["status"]["admission"]["podSetAssignments"][0]
    given["topologyAssignment"] = {"levels": [HOSTS], "domains": domains}
    levels = [{"nodeLabel": level} for level in _LEVELS]
    return Small(*gang, nodes=nodes, topology={**RACKS, "spec": {"levels": levels}})
