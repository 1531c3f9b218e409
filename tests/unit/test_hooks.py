"""Hooks wake each kind that an event could help, and no kind over and over."""

from types import SimpleNamespace

import pytest

from scheduler.api import selectors
from scheduler.api.door import events
from scheduler.api.pods.affinity import Peers
from scheduler.config import Config
from scheduler.engine.engine import Engine
from scheduler.plugins.contract import ANYTHING, Hint
from scheduler.state.counting.classes import TermView
from scheduler.state.counting.index import RuleIndex
from scheduler.state.counting.records import ComparedPod
from scheduler.waiting import peers
from scheduler.waiting.hooks import Hooks, News
from tests import make

_ALL_PODS = Peers(("default",), selectors.NOTHING, selectors.make_selector([]))


def make_news(n_left: int) -> News:
    """So many pods left one node."""
    template = SimpleNamespace(anti_affinity=())
    left = {
        i: SimpleNamespace(namespace="default", labels={}, template=template) for i in range(n_left)
    }
    news = News(left=left)  # type: ignore[arg-type]
    news.triggers[ANYTHING] = {7}
    return news


def test_many_pods_that_left_wake_a_kind_once(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Hooks(lambda _: {})
    for kind in range(50):
        held.hang(kind, [Hint(here=(ANYTHING,), left=(_ALL_PODS,))])
    asked = []
    find = peers.Seekers.find

    def count(*given: object) -> object:
        asked.append(given)
        return find(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(peers.Seekers, "find", count)
    woken = list(held.find_kinds(make_news(10)))
    # On the row where the pods left, and then once on all rows.
    assert woken == [(kind, {7}) for kind in range(50)] + [(kind, None) for kind in range(50)]
    assert len(asked) == 1


def test_a_kind_that_only_one_of_the_pods_could_help_is_woken_though_others_are_awake() -> None:
    held = Hooks(lambda _: {})
    elsewhere = Peers(("other",), selectors.NOTHING, selectors.make_selector([]))
    held.hang("a", [Hint(left=(_ALL_PODS,))])
    held.hang("b", [Hint(left=(elsewhere,))])
    news = make_news(3)
    news.left[3] = SimpleNamespace(**{**vars(news.left[0]), "namespace": "other"})  # type: ignore[assignment]
    assert [kind for kind, rows in held.find_kinds(news) if rows is None] == ["a", "b"]


def test_pods_that_leave_together_are_compared_with_waiting_pods_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their terms are about none of the 300 kinds that wait because of other terms."""
    held = Hooks(lambda _: {})
    for kind in range(300):
        held.hang(kind, [Hint(shunned=TermView("default", frozenset({("w", str(kind))})))])
    news = News()
    for i in range(40):
        absent = [{"key": key, "operator": "DoesNotExist"} for key in ("w", f"u{i}")]
        term = {"topologyKey": "zone", "labelSelector": {"matchExpressions": absent}}
        rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        engine = Engine(Config())
        engine.handle(events.Seen(make.pod(name="p", spec={"affinity": rules})), 0.0)
        news.left[i] = engine._cluster.pods["default/p"]
    compared: list[object] = []
    find = RuleIndex.find

    def count(index: RuleIndex[Peers], pod: ComparedPod) -> object:
        compared.append(pod)
        return find(index, pod)

    monkeypatch.setattr(RuleIndex, "find", count)
    assert list(held.find_kinds(news)) == []
    assert len(compared) == 300
