"""Waiting kinds that a pod concerns are those that a scan of all kinds and rules finds, in few comparisons."""

import random
from collections import Counter

import pytest

from scheduler.api import selectors
from scheduler.api.pods.affinity import Peers
from scheduler.api.selectors import Labels, Requirement, Selector
from scheduler.state.counting.classes import TermView
from scheduler.waiting.peers import Seekers, Shunned
from tests.unit.test_rule_index import make_peers

_SPACES = {"x": {"t": "v1"}, "y": {"u": "v2", "t": "v3"}}


def make_labels(rng: random.Random) -> dict[str, str]:
    return {key: f"v{rng.randrange(60)}" for key in "ab" if rng.random() < 0.6}


@pytest.mark.parametrize("seed", range(6))
def test_those_who_look_for_a_pod_are_those_of_a_scan(seed: int) -> None:
    rng = random.Random(seed)
    seekers = Seekers()
    there: dict[tuple[int, Peers], None] = {}
    known = [make_peers(rng) for _ in range(25)]
    for _ in range(300):
        one = rng.randrange(12), rng.choice(known)
        if rng.random() < 0.5:
            there[one] = None
            seekers.add(*one)
        else:
            there.pop(one, None)
            # Nothing when it did not look for these.
            seekers.drop(*one)
        assert bool(seekers) == bool(there)
        namespace, labels = rng.choice(list(_SPACES)), make_labels(rng)
        found = list(seekers.find(namespace, _SPACES[namespace], labels))
        expected = [
            kind for kind, peers in there if peers.include(namespace, _SPACES[namespace], labels)
        ]
        assert Counter(found) == Counter(expected)


@pytest.mark.parametrize("seed", range(6))
def test_those_whom_terms_kept_away_are_those_of_a_scan(seed: int) -> None:
    rng = random.Random(seed)
    shunned = Shunned()
    there: dict[tuple[int, TermView], None] = {}
    known = [
        TermView(rng.choice(list(_SPACES)), frozenset(make_labels(rng).items())) for _ in range(15)
    ]
    for _ in range(300):
        one = rng.randrange(12), rng.choice(known)
        if rng.random() < 0.6:
            there[one] = None
            shunned.add(*one)
        else:
            there.pop(one, None)
            shunned.drop(*one)
        terms = [make_peers(rng) for _ in range(rng.randrange(4))]
        spaces = {name: _SPACES[name] for name in shunned.list_namespaces()}
        expected = {
            kind
            for kind, seen in there
            if any(
                peers.include(seen.namespace, _SPACES[seen.namespace], dict(seen.labels))
                for peers in terms
            )
        }
        assert set(shunned.find(terms, spaces)) == expected


def test_no_kind_is_compared_with_each_term(monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 terms that no label could rule out, and 500 kinds: a million pairs."""
    compared: list[Labels] = []

    def note(_: Selector, labels: Labels) -> bool:
        compared.append(labels)
        return True

    monkeypatch.setattr(Selector, "matches", note)
    terms = [
        Peers(
            (),
            selectors.EVERYTHING,
            # All pods here have an app.
            selectors.make_selector(Requirement(key, "DoesNotExist") for key in ("app", f"k{i}")),
        )
        for i in range(2000)
    ]
    shunned, seekers = Shunned(), Seekers()
    for kind in range(500):
        shunned.add(kind, TermView("x", frozenset({("app", str(kind))})))
        seekers.add(kind, terms[kind])
    assert list(shunned.find(terms, _SPACES)) == []
    assert list(seekers.find("x", _SPACES["x"], {"app": "a"})) == []
    assert list(seekers.find("x", _SPACES["x"], {})) == list(range(500))
    assert not compared
