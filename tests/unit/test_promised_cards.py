"""A promise holds the very cards: whoever has evicted pods is bound where they were, and evicts nobody again."""

import pytest

from tests import slices
from tests.model.sharing_worlds import Sharing


@pytest.mark.parametrize("part", range(4))
def test_who_has_evicted_pods_evicts_no_more_and_is_bound(part: int) -> None:
    """Over all policies for cards, with one container or two, wishes for a card, and cards that few may share."""
    examples = slices.count_examples(400)
    evicting = 0
    for seed in range(part, examples, 4):
        world = Sharing(seed)
        for _ in range(14):
            world.something_happens()
        world.settle()
        again = {uid: rounds for uid, rounds in world.evicted.items() if len(rounds) > 1}
        assert not again, (seed, again, world.log)
        assert world.evicted.keys() <= world.bound, (seed, world.log)
        evicting += len(world.evicted)
    assert evicting > examples // 4, "hardly any pod has evicted others: the worlds say nothing"
