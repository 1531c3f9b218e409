"""Whatever fails, whoever leads, however late the news: no card is given away twice.

A failure prints its seed and what happened last; the same seed does the same again.
"""

import pytest

from tests import slices
from tests.virtual.conftest import Make

pytestmark = pytest.mark.many

WORLDS, PER_TEST = slices.count_examples(200), 20


@pytest.mark.parametrize("first", range(0, WORLDS, PER_TEST))
def test_nothing_is_given_away_twice_and_nobody_is_forgotten(make_world: Make, first: int) -> None:
    n_bound = 0
    for seed in range(first, first + PER_TEST):
        world = make_world(seed)
        world.live(60.0)
        world.settle()
        world.close()
        n_bound += world.n_bound
    # Else the worlds would claim nothing.
    assert n_bound > 3 * PER_TEST


def test_the_same_seed_is_the_same_world(make_world: Make) -> None:
    def life(seed: int) -> list[str]:
        world = make_world(seed)
        world.live(40.0)
        world.close()
        return list(world.trace)

    assert life(3) == life(3)
    assert life(3) != life(4)
