"""Whatever happens, in whatever order it is heard of, the columns are those of a fresh build."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.state import checks
from scheduler.state.cluster import Cluster
from scheduler.state.pods import Life
from tests import slices
from tests.model.wild import OFTEN, Wild

pytestmark = pytest.mark.many

steps = st.lists(
    st.tuples(st.sampled_from(OFTEN * 8 + ["seventy_nodes_come"]), st.integers(0, 2**20)),
    min_size=10,
    max_size=70,
)


def played(happened: list[tuple[str, int]]) -> None:
    """Play events, recounting after each; now and then and at the end compare with a fresh build."""
    world = Wild()
    for i, (name, seed) in enumerate(happened, start=1):
        world.happen(name, seed)
        checks.verify(world.cluster)
        if i % 10 == 0 or i == len(happened):
            world.settle()
            checks.verify(world.cluster)
            assert world.counted.holds_for(world.cluster)
            fresh = world.expected(i)
            checks.verify(fresh)
            assert checks.take_fingerprint(world.cluster) == checks.take_fingerprint(fresh)
            assert _waiting(world.cluster) == _waiting(fresh)


def _waiting(cluster: Cluster) -> dict[str, object]:
    """What the queue reads of every pod that has no place, as it is now, whatever happened before."""
    return {
        uid: (pod.template.steering, pod.labels, pod.gated, pod.deleting, pod.problem)
        for uid, pod in cluster.pods.items()
        if pod.life == Life.PENDING
    }


@given(steps)
@settings(max_examples=slices.count_examples(250), deadline=None)
def test_any_events_leave_the_columns_of_a_fresh_build_from_the_final_objects(
    happened: list[tuple[str, int]],
) -> None:
    played(happened)


@pytest.mark.parametrize("seed", slices.pick_part(range(6)))
def test_long_histories_leave_the_columns_of_a_fresh_build(seed: int) -> None:
    rng = random.Random(seed)
    names_drawn = [rng.choice([*OFTEN * 6, "seventy_nodes_come"]) for _ in range(400)]
    played([(name, rng.randrange(2**20)) for name in names_drawn])


@pytest.mark.parametrize("seed", range(4))
def test_histories_in_which_cards_leave_under_pods_leave_the_columns_of_a_fresh_build(
    seed: int,
) -> None:
    rng = random.Random(seed)
    often = ["stranger_runs"] * 8 + ["everything_is_delivered", "card_leaves_under_a_pod"] * 4
    some = [
        "node_changes",
        "pod_changes",
        "bound_pod_changes",
        "pods_go",
        "pods_come",
        "scheduler_decides",
    ]
    played([(rng.choice(often + some), rng.randrange(2**20)) for _ in range(300)])
