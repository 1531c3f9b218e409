"""Pods that may go to some rows only go where they would go if there were no other nodes; boards stay as they are."""

import random

import numpy as np
import pytest

from scheduler.api import wire
from scheduler.api.door.decisions import Bind
from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from tests import make, slices
from tests.model import clusters, workloads

PLACEMENTS = [
    Placement(),
    Placement(mode=Mode.LAMBDA_G),
    Placement(mode=Mode.MOST_ALLOCATED),
    Placement(node_policy="binpack"),
]
NODES = 150


def build(seed: int, *, closed: frozenset[int] = frozenset()) -> Cluster:
    """A cluster of several blocks of rows, of which some nodes are closed to all pods."""
    bodies = clusters.nodes(random.Random(seed), NODES, clusters.SMALL)
    for row in closed:
        bodies[row]["spec"]["taints"] = [{"key": "closed", "value": "", "effect": "NoSchedule"}]
    return make.cluster(nodes=clusters.wired(bodies))


def batches(seed: int, *, alike: bool) -> list[list[wire.Pod]]:
    """Pods of all kinds, in runs of like ones or each of them by itself, so that no board is made."""
    rng = random.Random(seed)
    kinds = list(workloads.PODS)
    rng.shuffle(kinds)
    n = 12 if alike else 1
    return [[workloads.pod(kind, f"{kind}-{i}") for i in range(n)] for kind in kinds]


def place(
    cycle: Cycle, cluster: Cluster, pods: list[wire.Pod], among: c.Flags
) -> tuple[list[Bind], list[str]]:
    records = [record for pod in pods if (record := cluster.see_pod(pod)) is not None]
    outcome = cycle.schedule(records, among=among)
    return outcome.binds, [hold.uid for hold in outcome.holds]


@pytest.mark.parametrize("placement", PLACEMENTS, ids=lambda one: one.node_policy or one.mode)
@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("seed", slices.pick_part((1, 2, 3, 4)))
def test_masked_pods_go_where_they_would_if_the_other_nodes_were_closed(
    seed: int, placement: Placement, *, alike: bool
) -> None:
    """Also where scores compare nodes, and where other pods are placed on all nodes in between."""
    rng = random.Random(seed)
    inside = frozenset(rng.sample(range(NODES), rng.choice((3, 30, 100))))
    outside = frozenset(range(NODES)) - inside
    config = Config(placement=placement)
    masked, closed = build(seed), build(seed, closed=outside)
    one, other = (make.cycle(cluster=cluster, config=config) for cluster in (masked, closed))
    among = np.zeros(masked.nodes.capacity, np.bool_)
    among[list(inside)] = True
    everywhere = np.zeros(0, np.bool_)
    n_bound = 0
    for pods in batches(seed, alike=alike):
        found = place(one, masked, pods, among)
        assert found == place(other, closed, pods, everywhere)
        n_bound += len(found[0])
    assert n_bound > 5


def list_bytes(board: c.Board) -> dict[str, bytes]:
    """All that is on a board; which rows a score has met last is working space."""
    arrays = {name: getattr(board, name) for name in board.fields if name != "domains"}
    domains = board.domains
    arrays |= {name: getattr(domains, name) for name in domains.fields if name != "seen"}
    figures = domains.figures.copy()
    figures[c.FIGURE_STAMP] = 0
    return {name: array.tobytes() for name, array in (arrays | {"figures": figures}).items()}


@pytest.mark.parametrize("kind", ["plain", "thirds", "prefers", "even", "apart", "near"])
def test_a_masked_trial_leaves_boards_as_they_were(kind: str) -> None:
    """Thousands of domains can be tried on one board: rolled back, only rows that pods were on are scored again."""
    cluster = build(1)
    cycle = make.cycle(cluster=cluster)
    records = [cluster.see_pod(workloads.pod(kind, f"p{i}")) for i in range(24)]
    pods = [record for record in records if record is not None]
    cycle.schedule(pods[:12])
    shape = cycle.shape_of(pods[12])
    assert shape is not None
    assert cycle.boards.has(shape.key)
    cycle.boards.refresh(shape)
    before = list_bytes(shape.board)
    board = shape.board
    n_bound = 0
    for first in range(0, NODES, 25):
        among = np.zeros(cluster.nodes.capacity, np.bool_)
        among[first : first + 25] = True
        with cluster.trial():
            outcome = cycle.schedule(pods[12:], among=among)
            n_bound += len(outcome.binds)
            assert {cluster.nodes.row_of(bind.node) // 25 for bind in outcome.binds} <= {
                first // 25
            }
        cycle.boards.refresh(shape)
        assert shape.board is board
        assert list_bytes(board) == before
    assert n_bound > 12
