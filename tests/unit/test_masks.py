"""Pods that may go to some nodes only go where they would go if there were no others; boards stay as they are."""

import random
from collections.abc import Iterable

import numpy as np
import pytest

from scheduler.api import wire
from scheduler.api.door.decisions import Outcome
from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.schema import columns as c
from scheduler.schema import domains as of_domains
from scheduler.state.cluster import Cluster
from tests import make, slices
from tests.model import clusters, workloads

PLACEMENTS = [
    Placement(),
    Placement(mode=Mode.LAMBDA_G),
    Placement(mode=Mode.MOST_ALLOCATED),
    Placement(node_policy="binpack"),
]
# More than one block of rows, and a block has nodes of several domains.
NODES, DOMAIN = 150, 25


def build(seed: int, *, inside: frozenset[int] = frozenset(), closes: bool = False) -> Cluster:
    """A cluster in which some nodes are marked, and the others may be closed to all pods."""
    bodies = clusters.nodes(random.Random(seed), NODES, clusters.SMALL)
    for row, body in enumerate(bodies):
        body["metadata"]["labels"] |= {"inside": str(row in inside), "block": str(row // DOMAIN)}
        if closes and row not in inside:
            body["spec"]["taints"] = [{"key": "closed", "value": "", "effect": "NoSchedule"}]
    return make.cluster(nodes=clusters.wired(bodies))


def batches(seed: int, *, alike: bool) -> list[list[wire.Pod]]:
    """Pods of all kinds, in runs of like ones or each of them by itself, so that no board is made."""
    rng = random.Random(seed)
    kinds = list(workloads.PODS)
    rng.shuffle(kinds)
    n = 12 if alike else 1
    return [[workloads.pod(kind, f"{kind}-{i}") for i in range(n)] for kind in kinds]


def place(
    cycle: Cycle, cluster: Cluster, pods: list[wire.Pod], inside: Iterable[int] | None
) -> Outcome:
    """Decide for pods each by itself, or for all that fit on some rows."""
    records = tuple(record for pod in pods if (record := cluster.see_pod(pod)) is not None)
    if inside is None:
        return cycle.schedule(records)
    flags = np.zeros(cluster.nodes.capacity, np.bool_)
    flags[list(inside)] = True
    return Outcome([cycle.place_most(make.entity("group", records, 1), flags)])


@pytest.mark.parametrize("placement", PLACEMENTS, ids=lambda one: one.node_policy or one.mode)
@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("seed", slices.pick_part((1, 2, 3, 4)))
def test_pods_in_a_domain_go_where_they_would_if_the_other_nodes_were_closed(
    seed: int, placement: Placement, *, alike: bool
) -> None:
    """Also where scores compare nodes; and the first that does not fit is told of the nodes of the domain alone."""
    rng = random.Random(seed)
    inside = frozenset(rng.sample(range(NODES), rng.choice((3, 30, 100))))
    config = Config(placement=placement)
    masked, closed = build(seed, inside=inside), build(seed, inside=inside, closes=True)
    one, other = (make.cycle(cluster=cluster, config=config) for cluster in (masked, closed))
    n_bound = 0
    for pods in batches(seed, alike=alike):
        found = place(one, masked, pods, inside)
        expected = place(other, closed, pods, None)
        assert found.binds == expected.binds
        assert [hold.uid for hold in found.holds] == [hold.uid for hold in expected.holds][:1]
        told = [hold.diagnosis.n_nodes for hold in found.holds if hold.diagnosis]
        assert told == [len(inside)] * len(found.holds)
        n_bound += len(found.binds)
    assert n_bound > 5


def list_bytes(board: c.Board) -> dict[str, bytes]:
    """All that is on a board; which rows a score has met last is working space."""
    arrays = {name: getattr(board, name) for name in board.fields if name != "domains"}
    domains = board.domains
    arrays |= {name: getattr(domains, name) for name in domains.fields if name != "seen"}
    figures = domains.figures.copy()
    figures[of_domains.FIGURE_STAMP] = 0
    return {name: array.tobytes() for name, array in (arrays | {"figures": figures}).items()}


@pytest.mark.parametrize("kind", ["plain", "thirds", "prefers", "even", "apart", "near"])
def test_a_trial_in_a_domain_leaves_boards_as_they_were(kind: str) -> None:
    """Thousands of domains can be tried on one board: rolled back, only rows that pods were on are scored again."""
    cluster = build(1)
    cycle = make.cycle(cluster=cluster)
    records = [cluster.see_pod(workloads.pod(kind, f"p{i}")) for i in range(24)]
    pods = tuple(record for record in records if record is not None)
    cycle.schedule(pods[:12])
    shape = cycle.get_shape(pods[12])
    assert shape is not None
    assert cycle.boards.has(shape.key)
    cycle.boards.refresh(shape)
    board, before = shape.board, list_bytes(shape.board)
    n_bound = 0
    for block in range(NODES // DOMAIN):
        with cluster.trial():
            entity = make.entity("group", pods[12:], 1)
            flags = np.zeros(cluster.nodes.capacity, np.bool_)
            flags[block * DOMAIN : (block + 1) * DOMAIN] = True
            binds = cycle.place_most(entity, flags).binds
            assert {cluster.nodes.find_row(bind.node) // DOMAIN for bind in binds} <= {block}
            n_bound += len(binds)
        cycle.boards.refresh(shape)
        assert shape.board is board
        assert list_bytes(board) == before
    assert n_bound > 12
