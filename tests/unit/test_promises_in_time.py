"""Pods that wait in a cluster that changes: none is forgotten while others could make room, or have ceased to."""

import pytest

from scheduler.state.pods import PodRecord
from tests import slices
from tests.model.promising_worlds import Promising


@pytest.mark.parametrize("seed", range(slices.count_examples(300)))
def test_nobody_waits_who_could_take_the_place_of_others_or_for_a_promise_that_nobody_keeps(
    seed: int,
) -> None:
    """As if everybody were tried again after each event: no answer would be another."""
    world = Promising(seed)
    for _ in range(12):
        world.something_happens()
        for pod in list(world.town.engine._cluster.pods.values()):
            if pod.ours and not (pod.node or pod.deleting):
                assert not _forgotten(world, pod), (pod.uid, world.log)


def _forgotten(world: Promising, pod: PodRecord) -> str:
    """What is wrong with that a pod waits; empty for nothing."""
    engine = world.town.engine
    cycle = engine._cycle
    if not engine._pending.is_parked(pod.uid):
        return "nothing is in its way"
    if cycle.could_place(pod):
        return "it fits"
    if cycle.fits_nominated(pod) or cycle.could_take(pod):
        return "it fits where it is nominated, waits there in vain, or could send others away"
    return ""
