"""Terms of pods on nodes: what they cost others, from when until when they count, and what goes with them."""

import pytest

from scheduler.api import selectors
from scheduler.api.door import events
from scheduler.api.pods.affinity import Peers
from scheduler.api.selectors import Requirement
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.state.counting.classes import OwnerCount
from tests import make
from tests.unit.test_terms_counted import _HOSTNAME, unlike


def test_terms_whose_key_no_node_has_are_no_work_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thousand terms about every pod, each with a topology key of its own."""
    engine = Engine(Config(), is_shared=False)
    for i in range(2):
        node = make.node(name=f"n{i}", cpu=100, labels={_HOSTNAME: f"n{i}"})
        engine.handle(events.Seen(node), 0.0)
    for i in range(10):
        terms = [
            {"topologyKey": f"t{i}-{j}", "namespaceSelector": {}, "labelSelector": {}}
            for j in range(100)
        ]
        rules = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        spec = {"affinity": {"podAntiAffinity": rules}}
        pod = make.pod(name=f"e{i}", namespace="evil", node="n0", spec=spec)
        engine.handle(events.Seen(pod), 0.0)
    begun: list[object] = []
    monkeypatch.setattr(OwnerCount, "__init__", lambda *_: begun.append(1))
    engine.handle(events.Seen(make.pod(name="p", labels={"new": "x"})), 1.0)
    assert len(engine.decide(1.0, Unlimited()).binds) == 1
    assert not begun


def test_terms_count_from_when_a_node_has_their_key_until_no_node_has_it() -> None:
    """And a pod that waits or comes meanwhile is decided by what is so then."""
    engine = Engine(Config(), pace=PROMPT, is_shared=False)
    term = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"a": "b"}}}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    spec = {"affinity": {"podAntiAffinity": rules}}
    engine.handle(events.Seen(make.node(name="n")), 0.0)
    engine.handle(events.Seen(make.pod(name="shy", node="n", spec=spec)), 0.0)

    def try_pod(name: str, at: float) -> list[str]:
        engine.handle(events.Seen(make.pod(name=name, labels={"a": "b"})), at)
        return [bind.uid for bind in engine.decide(at, Unlimited()).binds]

    assert try_pod("p", 1.0) == ["default/p"]
    engine.handle(events.Seen(make.node(name="n", labels={"rack": "r"})), 2.0)
    assert try_pod("q", 2.0) == []
    engine.handle(events.Seen(make.node(name="n", labels={"other": "r"})), 20.0)
    bound = [bind.uid for i in range(3) for bind in engine.decide(20.0 + i, Unlimited()).binds]
    assert bound == ["default/q"]
    assert try_pod("r", 24.0) == ["default/r"]


def test_a_trial_that_is_undone_leaves_the_version_of_before() -> None:
    """What was found for thousands of waiting pods is known by version: a trial for one of them must not spoil it."""
    engine = Engine(Config(), is_shared=False)
    engine.handle(events.Seen(make.node(name="n", cpu=100)), 0.0)
    spec = unlike(0, "absent", 2)
    engine.handle(events.Seen(make.pod(name="there", node="n", spec=spec)), 0.0)
    engine.handle(events.Seen(make.pod(name="new", spec=unlike(1, "absent", 2))), 0.0)
    terms, seen = engine._cluster.terms, set()
    before = terms.version
    for i in range(3):
        with engine._cluster.trial() as trial:
            if i:
                engine._cluster.assume("default/new", "n", ())
            else:
                trial.take_away("default/there")
            seen.add(terms.version)
        assert terms.version == before
    # What was found within a trial is not taken for what holds in another one.
    assert len(seen | {before}) == 4
    with engine._cluster.trial() as trial:
        engine._cluster.assume("default/new", "n", ())
        trial.commit()
    assert terms.version not in {before, *seen}


def test_what_thousands_of_unlike_pods_took_goes_with_them() -> None:
    engine = Engine(Config(), is_shared=False)
    engine.handle(events.Seen(make.node(name="n", cpu=100)), 0.0)
    terms = engine._cluster.terms
    live = [
        terms.count_peers((Peers(("default",), selectors.NOTHING, one),), with_deleting=True)
        for one in (selectors.EVERYTHING, selectors.make_selector([Requirement("i", "Exists")]))
    ]
    n = 3000
    for i in range(n):
        pod = make.pod(name=f"p{i}", node="n", labels={"i": str(i)}, spec=unlike(i, "absent", 2))
        engine.handle(events.Seen(pod), 0.0)
    assert [int(count.list_by_row(1)[0]) for count in live] == [n, n]

    def measure() -> int:
        owned, counters = terms.owned, terms.counters
        columns = (owned._group, owned._term, owned._index._words, terms._places._n)
        return counters._links._words.size + sum(len(column.all) for column in columns)

    most = measure()
    # The last one that came goes last: its numbers are the highest.
    for i in range(n - 1):
        engine.handle(events.Gone("Pod", f"default/p{i}"), 1.0)
    assert [int(count.list_by_row(1)[0]) for count in live] == [1, 1]
    engine.handle(events.Gone("Pod", f"default/p{n - 1}"), 1.0)
    assert [int(count.list_by_row(1)[0]) for count in live] == [0, 0]
    assert most > 40_000
    assert measure() < 10_000
    live.clear()
    assert not len(terms.counters)
    assert not terms.counters._links._words.size
