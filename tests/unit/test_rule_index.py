"""Rules about other pods are found by a pod as a scan of all rules would find them, whatever their selectors are."""

import random

import pytest

from scheduler.api import selectors
from scheduler.api.packing import pack_texts
from scheduler.api.pods.affinity import Peers
from scheduler.api.selectors import Requirement, Selector
from scheduler.state.counting import lists
from scheduler.state.counting.index import RuleIndex

_KEYS, _SPACES = "ab", ("x", "y")


def make_selector(rng: random.Random) -> Selector:
    found = []
    for _ in range(rng.choice([0, 1, 1, 1, 2])):
        operator = rng.choice(["In", "In", "In", "NotIn", "Exists", "DoesNotExist"])
        n = rng.choice([1, 3, 40])
        values = pack_texts(f"v{rng.randrange(60)}" for _ in range(n))
        found.append(Requirement(rng.choice(_KEYS), operator, values if "In" in operator else ()))
    return selectors.all_of(found)


def make_peers(rng: random.Random) -> Peers:
    spaces = tuple(sorted(rng.sample(_SPACES, rng.randint(1, 2))))
    by_labels = selectors.NOTHING
    if rng.random() < 0.3:
        by_labels = selectors.all_of([Requirement("team", "In", (rng.choice("rs"),))])
    return Peers(spaces, by_labels, make_selector(rng))


@pytest.mark.parametrize("seed", range(10))
def test_the_rules_about_a_pod_are_those_of_a_scan(seed: int) -> None:
    rng = random.Random(seed)
    index: RuleIndex[int] = RuleIndex()
    rules: dict[int, Peers] = {}
    for step in range(400):
        if rules and rng.random() < 0.3:
            gone = rng.choice(list(rules))
            index.drop(rules.pop(gone), gone)
        else:
            rules[step] = make_peers(rng)
            index.add(rules[step], step)
        for _ in range(2):
            namespace, team = rng.choice(_SPACES), {"team": rng.choice("rs")}
            labels = {key: f"v{rng.randrange(60)}" for key in _KEYS if rng.random() < 0.7}
            expected = [
                rule for rule, peers in rules.items() if peers.include(namespace, team, labels)
            ]
            # The same pod a second time gets the same answer.
            for _ in range(2):
                assert sorted(index.about(namespace, team, labels)) == expected


def test_rules_are_found_where_values_have_one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    # Most values look alike, and rules that are gone leave at once, a while later, or in the middle.
    monkeypatch.setattr(lists, "_HASH_MASK", 3)
    monkeypatch.setattr(lists, "_GONE_MIN", 60)
    test_the_rules_about_a_pod_are_those_of_a_scan(11)


def test_rules_of_many_values_leave_nothing_behind() -> None:
    index: RuleIndex[int] = RuleIndex()
    values = pack_texts(f"v{i}" for i in range(40))
    peers = Peers(("x",), selectors.NOTHING, selectors.all_of([Requirement("a", "In", values)]))
    index.add(peers, 1)
    assert index.about("x", {}, {"a": "v3"}) == [1]
    index.drop(peers, 1)
    assert index.about("x", {}, {"a": "v3"}) == []
    assert not index._lists
    assert not index._at
