"""Which disruption budgets cover which pods: kept up through changes, in steps, and for what has changed only."""

import random
from typing import Any

import pytest

from scheduler.api import selectors, wire
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import SpentAllowance, Unlimited
from scheduler.engine.engine import Engine
from scheduler.state.budgets import spaces
from scheduler.state.budgets.budgets import Budgets
from scheduler.state.structures.matching import Postings
from tests import make

Json = dict[str, Any]
_MANY = 1 << 40
# By namespace and name: what a budget selects, how many may go, and the names of those that were let go.
Written = dict[tuple[str, str], tuple[Json, int, frozenset[str]]]


def selector_of(given: Json) -> wire.LabelSelector:
    return wire.LabelSelector(
        match_labels=given.get("matchLabels"),
        match_expressions=[
            wire.Expression(key=one["key"], operator=one["operator"], values=one.get("values"))
            for one in given.get("matchExpressions", ())
        ],
    )


def see(engine: Engine, name: str, given: Json, **more: Any) -> None:
    allowed, disrupted = more.get("allowed", 1), more.get("disrupted", ())
    namespace = more.get("namespace", "default")
    budget = make.budget(
        name, selector_of(given), allowed, namespace=namespace, disrupted=disrupted
    )
    engine.handle(events.Seen(budget), 0.0)


def covering(engine: Engine, most: int = _MANY) -> dict[str, list[int]]:
    """What each pod's budgets allow, in their order; two budgets of one namespace never allow the same here."""
    cluster = engine._cluster
    pods = [pod for there in cluster.pods_on.values() for pod in there.values()]
    found = cluster.budgets.make_sets(pods, cluster.ledger.pods.columns.node.size, most)
    told: dict[str, list[int]] = {}
    for pod in pods:
        group = int(found.sets[pod.row])
        first, n = found.runs[:, group].tolist() if group >= 0 else (0, 0)
        told[pod.uid] = found.allowed[found.budgets[first : first + n]].tolist()
    return told


def matched_slowly(engine: Engine, budgets: Written) -> dict[str, list[int]]:
    told: dict[str, list[int]] = {}
    for there in engine._cluster.pods_on.values():
        for pod in there.values():
            told[pod.uid] = [
                allowed
                for (namespace, _), (given, allowed, disrupted) in sorted(budgets.items())
                if namespace == pod.namespace
                and given
                and pod.labels
                and pod.name not in disrupted
                and selectors.read_selector(selector_of(given), "").matches(pod.labels)
            ]
    return told


def random_selector(rng: random.Random) -> Json:
    keys, values = "abc", "xyz"
    found: Json = {}
    if rng.random() < 0.4:
        found["matchLabels"] = {rng.choice(keys): rng.choice(values)}
    expressions = []
    for _ in range(rng.randrange(3)):
        operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        one: Json = {"key": rng.choice(keys), "operator": operator}
        if operator in {"In", "NotIn"}:
            one["values"] = rng.sample(values, rng.randint(1, 2))
        expressions.append(one)
    if expressions:
        found["matchExpressions"] = expressions
    return found


def change_a_pod(rng: random.Random, engine: Engine, namespace: str) -> None:
    name = f"p{rng.randrange(12)}"
    old = engine._cluster.pods.get(f"{namespace}/{name}")
    if old is not None and rng.random() < 0.3:
        engine.handle(events.Gone("Pod", old.uid), 0.0)
        return
    node = old.node if old is not None else f"n{rng.randrange(4)}"
    labels = {k: rng.choice("xyz") for k in "abc" if rng.random() < 0.6}
    pod = make.pod(name=name, namespace=namespace, node=node, labels=labels, cpu=1)
    engine.handle(events.Seen(pod), 0.0)


def change_a_budget(
    rng: random.Random, engine: Engine, budgets: Written, where: tuple[str, str], number: int
) -> None:
    namespace, name = where
    if rng.random() < 0.25:
        budgets.pop(where, None)
        engine.handle(events.Gone("PodDisruptionBudget", f"{namespace}/{name}"), 0.0)
        return
    given = random_selector(rng)
    disrupted = frozenset(f"p{k}" for k in range(12) if rng.random() < 0.1)
    if where in budgets and rng.random() < 0.4:
        given = budgets[where][0]
    budgets[where] = given, number, disrupted
    see(engine, name, given, namespace=namespace, allowed=number, disrupted=disrupted)


@pytest.mark.parametrize("seed", range(12))
def test_budgets_cover_what_a_slow_matcher_says_through_random_changes(seed: int) -> None:
    rng = random.Random(seed)
    engine = Engine(Config())
    for i in range(4):
        engine.handle(events.Seen(make.node(name=f"n{i}", cpu=1000, pods=1000)), 0.0)
    budgets: Written = {}
    for step in range(250):
        namespace = rng.choice(["s", "t"])
        if rng.random() < 0.6:
            change_a_pod(rng, engine, namespace)
        else:
            change_a_budget(rng, engine, budgets, (namespace, f"b{rng.randrange(5)}"), step + 1)
        if rng.random() < 0.05:
            for where in [one for one in budgets if one[0] == namespace]:
                del budgets[where]
                engine.handle(events.Gone("PodDisruptionBudget", "/".join(where)), 0.0)
        if rng.random() < 0.3:
            engine._cluster.budgets.work()
        if rng.random() < 0.5:
            assert covering(engine) == matched_slowly(engine, budgets)
    assert covering(engine) == matched_slowly(engine, budgets)


@pytest.mark.parametrize("seed", range(6))
def test_every_pod_of_which_budgets_say_something_else_is_among_the_changes(seed: int) -> None:
    rng = random.Random(seed)
    engine = crowded(30)
    budgets: Written = {}
    for step in range(60):
        figures, before = engine._cluster.budgets.figures, covering(engine)
        name = f"b{rng.randrange(4)}"
        if rng.random() < 0.7:
            given = {"matchExpressions": [one_of(rng)]}
            disrupted = frozenset(f"v{k}" for k in range(30) if rng.random() < 0.1)
            budgets["default", name] = given, step + 1, disrupted
            see(engine, name, given, allowed=step + 1, disrupted=disrupted)
        else:
            budgets.pop(("default", name), None)
            engine.handle(events.Gone("PodDisruptionBudget", f"default/{name}"), 0.0)
        after = covering(engine)
        assert after == matched_slowly(engine, budgets)
        rows = engine._cluster.budgets.list_rows_since(figures)
        assert rows is not None
        others = {uid for uid in after if before[uid] != after[uid]}
        assert others <= {uid for uid in after if engine._cluster.pods[uid].row in rows}


def one_of(rng: random.Random) -> Json:
    values = [str(i) for i in rng.sample(range(30), 5)]
    return {"key": "app", "operator": rng.choice(["In", "NotIn"]), "values": values}


def crowded(n_victims: int, n_nodes: int = 10) -> Engine:
    """Nodes full of low pods, no two of which have the same labels."""
    engine = Engine(Config())
    for i in range(n_nodes):
        node = make.node(name=f"n{i}", cpu=n_victims // n_nodes)
        engine.handle(events.Seen(node), 0.0)
    for i in range(n_victims):
        labels = {"app": str(i), "all": "x"}
        pod = make.pod(name=f"v{i}", node=f"n{i % n_nodes}", cpu=1, labels=labels)
        engine.handle(events.Seen(pod), 0.0)
    return engine


def expressions(i: int, n: int) -> Json:
    """So many expressions, all of which hold for every pod but one."""
    others = [{"key": f"k{i}-{j}", "operator": "NotIn", "values": ["v"]} for j in range(n - 1)]
    return {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [str(i)]}, *others]}


def settled(engine: Engine) -> Budgets:
    while engine._cluster.budgets.is_behind:
        engine._cluster.budgets.work()
    covering(engine)
    return engine._cluster.budgets


@pytest.mark.parametrize("n_expressions", [2, 100])
def test_one_budget_that_changes_is_matched_and_no_other(n_expressions: int) -> None:
    engine = crowded(200)
    for i in range(200):
        see(engine, f"b{i}", expressions(i, n_expressions), allowed=0)
    budgets = settled(engine)
    n = budgets.n_matched
    see(engine, "b7", expressions(8, n_expressions), allowed=0)
    settled(engine)
    assert budgets.n_matched == n + 1


def test_a_pod_with_new_labels_meets_only_the_budgets_that_name_one_of_them() -> None:
    engine = crowded(200)
    for i in range(200):
        see(engine, f"b{i}", {"matchLabels": {"app": str(i)}})
    budgets = settled(engine)
    n = budgets.n_matched
    labels = {"app": "7", "new": "x"}
    engine.handle(events.Seen(make.pod(name="new", node="n1", labels=labels)), 0.0)
    assert len(covering(engine)["default/new"]) == 1
    assert budgets.n_matched == n + 1
    engine.handle(events.Seen(make.pod(name="like", node="n1", labels=labels)), 0.0)
    assert len(covering(engine)["default/like"]) == 1
    assert budgets.n_matched == n + 1


def test_a_change_has_only_those_nodes_asked_again_whose_pods_it_concerns() -> None:
    engine = crowded(200, n_nodes=20)
    see(engine, "b", {"matchLabels": {"app": "3"}}, allowed=0)
    engine.handle(events.Seen(make.pod(name="high", cpu=4, priority=1)), 0.0)
    engine.decide(0.0, Unlimited())
    pod = engine._cluster.pods["default/high"]
    key = engine._cycle.keys.make_key(pod)
    assert key is not None
    attempts = engine._cycle.attempts
    attempts.try_to_make_room(pod, key, None)
    see(engine, "b", {"matchLabels": {"app": "4"}}, allowed=0)
    attempts.spent = 0
    attempts.try_to_make_room(pod, key, None)
    # The nodes of pods 3 and 4, and the node that the pod is nominated to.
    assert attempts.spent <= 512 + 3


def test_ordinary_pods_are_decided_for_before_thousands_of_budgets_are_matched() -> None:
    engine = crowded(200)
    engine.handle(events.Seen(make.node(name="free", cpu=4, labels={"is": "free"})), 0.0)
    for i in range(200):
        see(engine, f"b{i}", expressions(i, 20), allowed=0)
    engine.handle(events.Seen(make.pod(name="high", cpu=5, priority=1)), 0.0)
    ordinary = make.pod(name="ordinary", cpu=1, node_selector={"is": "free"})
    engine.handle(events.Seen(ordinary), 0.0)
    outcome = engine.decide(0.0, SpentAllowance(100, (2, 2, 1)))
    assert engine._cluster.budgets.is_behind
    assert [bind.uid for bind in outcome.binds] == ["default/ordinary"]
    assert not outcome.evicts
    outcomes = [engine.decide(0.0, SpentAllowance(100, (20, 20, 5))) for _ in range(60)]
    assert [one.makes_room_for for outcome in outcomes for one in outcome.evicts] == [
        "default/high"
    ]


def test_kinds_of_pods_come_and_go_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    came: list[int] = []
    went: list[int] = []
    add, drop = Postings.add, Postings.drop

    def count_added(postings: Postings, kinds: Any) -> None:
        came.append(len(kinds))
        add(postings, kinds)

    def count_dropped(postings: Postings, kinds: Any) -> None:
        went.append(len(kinds))
        drop(postings, kinds)

    monkeypatch.setattr(Postings, "add", count_added)
    monkeypatch.setattr(Postings, "drop", count_dropped)
    engine = crowded(300)
    see(engine, "b", expressions(0, 3))
    settled(engine)
    for i in range(300):
        engine.handle(events.Gone("Pod", f"default/v{i}"), 0.0)
    settled(engine)
    # Each kind into all that is known, and into the batch that is matched.
    assert sum(came) == 2 * sum(went) == 600
    assert max(*came, *went) <= spaces.KINDS_A_STEP


def test_namespaces_take_turns_at_what_their_budgets_cost() -> None:
    engine = crowded(20)
    other = make.pod(name="other", namespace="other", node="n1", labels={"app": "x"})
    engine.handle(events.Seen(other), 0.0)
    for i in range(500):
        see(engine, f"b{i}", expressions(i, 20), allowed=0)
    see(engine, "b", {"matchLabels": {"app": "x"}}, namespace="other")
    budgets = engine._cluster.budgets
    for _ in range(20):
        budgets.work()
    assert budgets._spaces["other"].n_due == 0
    assert budgets._spaces["default"].n_due > 400


def test_what_was_found_of_pods_ends_with_the_pods_and_with_the_budgets() -> None:
    engine = crowded(200)
    see(engine, "b", expressions(0, 3))
    budgets = settled(engine)
    for round_ in range(5):
        for i in range(200):
            labels = {f"key-{round_}-{i}": "x"}
            pod = make.pod(name=f"w{i}", node="n0", labels=labels)
            engine.handle(events.Seen(pod), 0.0)
        settled(engine)
        for i in range(200):
            engine.handle(events.Gone("Pod", f"default/w{i}"), 0.0)
        settled(engine)
    space = budgets._spaces["default"]
    assert len(space._kinds) == 200
    assert len(space._keys) <= 400
    # 200 applications, a label of all, and two keys.
    assert len(list(space._postings.list_anchors())) == 203
    assert not space._batch.all
    engine.handle(events.Gone("PodDisruptionBudget", "default/b"), 0.0)
    assert not budgets._spaces


def test_budgets_that_cannot_matter_are_left_out() -> None:
    engine = crowded(20)
    for name, allowed in (("a", 30), ("b", 2), ("c", 0), ("d", 1)):
        see(engine, name, {"matchLabels": {"all": "x"}}, allowed=allowed)
    assert covering(engine, most=4)["default/v3"] == [2, 0]


def test_budgets_of_very_many_values_are_matched_a_few_a_step() -> None:
    """Nothing bounds the values of a budget. A step is bounded by them, and so is what a namespace pays."""
    engine = crowded(200)
    values = [f"v{j}" for j in range(5000)]
    for i in range(40):
        other = {"key": "app", "operator": "NotIn", "values": [*values, f"own{i}"]}
        see(engine, f"b{i}", {"matchExpressions": [other]}, allowed=0)
    budgets = settled(engine)
    pod = make.pod(name="v0", node="n0", cpu=1, labels={"app": "another", "all": "x"})
    engine.handle(events.Seen(pod), 0.0)
    shares: list[float] = []
    matched: list[int] = []
    was_behind = False
    while True:
        was_behind |= budgets.is_behind
        before = budgets.n_matched
        _, share = budgets.work()
        if not share:
            break
        shares.append(share)
        matched.append(budgets.n_matched - before)
    assert was_behind
    assert sum(matched) == 40
    assert max(matched) <= 2
    assert 20 <= sum(shares) <= 120
    rows = [engine._cluster.pods["default/v0"]]
    assert set(budgets.make_sets(rows, engine._cluster.ledger.pods.columns.node.size, 5).sets) != {
        -1
    }
