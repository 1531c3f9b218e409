"""Rules about other pods are found by a pod as a scan of all rules would find them, whatever their selectors are."""

import random

import pytest

from scheduler.api import selectors
from scheduler.api.packing import pack_texts
from scheduler.api.pods.affinity import Peers
from scheduler.api.selectors import Requirement, Selector
from scheduler.state.counting import index as index_module
from scheduler.state.counting.index import RuleIndex

_KEYS, _SPACES = "ab", ("x", "y")


def make_selector(rng: random.Random, keys: str = _KEYS) -> Selector:
    found = []
    for _ in range(rng.choice([0, 1, 1, 1, 2])):
        operator = rng.choice(["In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist"])
        n = rng.choice([1, 3, 40])
        values = pack_texts(f"v{rng.randrange(60)}" for _ in range(n))
        found.append(Requirement(rng.choice(keys), operator, values if "In" in operator else ()))
    return selectors.make_selector(found)


def make_peers(rng: random.Random) -> Peers:
    spaces = tuple(sorted(rng.sample(_SPACES, rng.randint(0, 2))))
    by_labels = selectors.NOTHING
    if rng.random() < 0.5:
        by_labels = make_selector(rng, "tu")
    return Peers(spaces, by_labels, make_selector(rng))


def find_rules(index: RuleIndex[int], *pod: object) -> list[int]:
    """The rules about a pod by the index, sorted."""
    numbers = index.find_about(*pod)  # type: ignore[arg-type]
    assert numbers.tolist() == sorted(numbers.tolist())
    return sorted(rule for number in numbers if (rule := index.rules[number]) is not None)


@pytest.mark.parametrize("gone_min", [1024, 20])
@pytest.mark.parametrize("seed", range(10))
def test_the_rules_about_a_pod_are_those_of_a_scan(
    seed: int, gone_min: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_GONE_MIN", gone_min)
    rng = random.Random(seed)
    index: RuleIndex[int] = RuleIndex()
    rules: dict[int, Peers] = {}
    for step in range(400):
        # It grows, shrinks to little, and grows again.
        if rules and rng.random() < (0.8 if 150 < step < 250 else 0.3):
            gone = rng.choice(list(rules))
            del rules[gone]
            index.drop(gone)
        else:
            rules[step] = make_peers(rng)
            number = index.add(rules[step], step)
            assert index.get(step) == number
            assert index.rules[number] == step
        assert len(index) == len(rules)
        for _ in range(2):
            namespace = rng.choice(_SPACES)
            there = {key: f"v{rng.randrange(60)}" for key in "tu" if rng.random() < 0.7}
            labels = {key: f"v{rng.randrange(60)}" for key in _KEYS if rng.random() < 0.7}
            expected = [
                rule for rule, peers in rules.items() if peers.include(namespace, there, labels)
            ]
            # The same pod a second time gets the same answer.
            for _ in range(2):
                assert find_rules(index, namespace, there, labels) == expected


def test_rules_that_are_gone_leave_nothing_behind() -> None:
    index: RuleIndex[int] = RuleIndex()
    values = pack_texts(f"v{i}" for i in range(40))
    peers = Peers(
        ("x",), selectors.NOTHING, selectors.make_selector([Requirement("a", "In", values)])
    )
    for rule in range(1000):
        index.add(peers, rule)
    assert find_rules(index, "x", {}, {"a": "v3"}) == list(range(1000))
    n_words = index._words.n
    for rule in range(1000):
        index.drop(rule)
    assert find_rules(index, "x", {}, {"a": "v3"}) == []
    assert n_words > 1000
    assert not index._words.n
    assert not index.rules
    assert len(index._words.all) + len(index._starts.all) < 200
    # A rule that comes later takes the lowest number.
    assert index.add(peers, 7) == 0
