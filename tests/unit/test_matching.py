"""Kinds by their labels: selectors select what a scan would, and labels take memory in proportion to what they are."""

import random

import pytest

from scheduler.api import selectors
from scheduler.api.selectors import Requirement
from scheduler.state.structures.matching import Anchor, Postings, pack_bits


def make_labels(rng: random.Random, kind: int) -> dict[str, str]:
    """Labels of very few kinds, of some, and of nearly all."""
    labels = {"own": str(kind), "rare": str(rng.randrange(300)), "some": str(rng.randrange(30))}
    labels["all"] = "x" if rng.random() < 0.97 else "y"
    return {key: value for key, value in labels.items() if rng.random() < 0.9}


def make_requirement(rng: random.Random) -> Requirement:
    key = rng.choice(["own", "rare", "some", "all", "missing"])
    operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist"])
    values = tuple(sorted({rng.choice(["x", "y", str(rng.randrange(2000))]) for _ in range(5)}))
    return Requirement(key, operator, values if "In" in operator else ())


@pytest.mark.parametrize("seed", range(6))
def test_a_selector_selects_what_a_scan_does_while_kinds_come_and_go(seed: int) -> None:
    rng = random.Random(seed)
    postings = Postings()
    there: dict[int, dict[str, str]] = {}
    for _ in range(60):
        free = [kind for kind in rng.sample(range(2000), 200) if kind not in there]
        came = {kind: make_labels(rng, kind) for kind in free[: rng.choice([1, 8, 100])]}
        postings.add({kind: labels.items() for kind, labels in came.items()})
        there |= came
        gone = rng.sample(sorted(there), rng.randrange(len(there) // rng.choice([1, 4]) + 1))
        postings.drop({kind: there.pop(kind).items() for kind in gone})
        for _ in range(10):
            selector = selectors.make_selector(
                [make_requirement(rng) for _ in range(rng.randint(0, 2))]
            )
            expected = [kind for kind, labels in there.items() if selector.matches(labels)]
            assert postings.match(selector) == pack_bits(expected)
        anchors: set[Anchor] = {
            (key, value) for labels in there.values() for key, value in labels.items()
        }
        anchors |= {(key, None) for key, _ in anchors}
        assert sorted(postings.list_anchors(), key=str) == sorted(anchors, key=str)
        assert postings.all == pack_bits(list(there))


def test_labels_of_one_kind_each_take_no_room_for_the_others() -> None:
    postings = Postings()
    for kind in range(4000):
        postings.add({kind: [("own", str(kind)), ("half", str(kind % 2))]})
    assert all(len(kinds) == 1 for kinds in postings._few.values())
    assert set(postings._many) == {("own", None), ("half", None), ("half", "0"), ("half", "1")}
