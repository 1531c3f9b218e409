"""What rules about other pods count: as a slow count says, and for little work however many unlike terms there are."""

import random
from typing import Any

import pytest

from scheduler.api import selectors
from scheduler.api.door import events
from scheduler.api.pods.affinity import Peers
from scheduler.api.selectors import Labels, Requirement, Selector
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.state.counting.classes import TermView
from scheduler.state.counting.counts import Count
from scheduler.state.counting.owned import Stance, list_owned
from tests import make

Json = dict[str, Any]
_HOSTNAME = "kubernetes.io/hostname"
_MANY = [str(i) for i in range(40)]


def random_selector(rng: random.Random) -> Selector:
    found = []
    for _ in range(rng.randrange(3)):
        operator = rng.choice(["In", "In", "NotIn", "Exists", "DoesNotExist"])
        values: tuple[str, ...] = ()
        if operator in {"In", "NotIn"}:
            values = tuple(sorted(rng.sample(_MANY, rng.choice([1, 2, 30]))))
        found.append(Requirement(rng.choice("ab"), operator, values))
    return selectors.make_selector(found)


def random_peers(rng: random.Random) -> Peers:
    named = tuple(sorted(rng.sample(["s", "t"], rng.randint(0, 2))))
    roaming = rng.choice([selectors.NOTHING, selectors.EVERYTHING, None])
    if roaming is None:
        roaming = selectors.make_selector([Requirement("team", "In", ("x",))])
    return Peers(named, roaming, random_selector(rng))


def random_term(rng: random.Random) -> Json:
    peers = random_peers(rng)

    def wire_of(selector: Selector) -> Json:
        return {
            "matchExpressions": [
                {"key": one.key, "operator": one.operator, "values": list(one.values) or None}
                for one in selector.requirements
            ]
        }

    term: Json = {"topologyKey": rng.choice([_HOSTNAME, "zone"])}
    term["labelSelector"] = wire_of(peers.selector)
    if peers.namespaces:
        term["namespaces"] = list(peers.namespaces)
    if peers.namespace_selector != selectors.NOTHING:
        term["namespaceSelector"] = wire_of(peers.namespace_selector)
    return term


def random_labels(rng: random.Random) -> dict[str, str]:
    return {key: rng.choice(_MANY[:4]) for key in "ab" if rng.random() < 0.7}


def peers_slowly(engine: Engine, all_of: tuple[Peers, ...], *, with_deleting: bool) -> list[int]:
    cluster = engine._cluster
    found = [0] * cluster.nodes.capacity
    for name, pods in cluster.pods_on.items():
        for pod in pods.values():
            there = cluster.terms.find_labels(pod.namespace)
            if pod.deleting and not with_deleting:
                continue
            if all(peers.include(pod.namespace, there, pod.labels or {}) for peers in all_of):
                found[cluster.nodes.find_row(name)] += 1
    return found


def owners_slowly(engine: Engine, seen: TermView, stance: Stance, key: str) -> list[int]:
    cluster = engine._cluster
    found = [0] * cluster.nodes.capacity
    there: Labels = cluster.terms.find_labels(seen.namespace)
    for name, pods in cluster.pods_on.items():
        for pod in pods.values():
            for term in list_owned(pod.template, pod.namespace, pod.labels or {}):
                if (term.stance, term.key) == (stance, key) and term.peers.include(
                    seen.namespace, there, dict(seen.labels)
                ):
                    found[cluster.nodes.find_row(name)] += term.weight
    return found


Asked = dict[tuple[Any, ...], Count]


def ask(rng: random.Random, engine: Engine, live: Asked) -> None:
    """Begin with a count, or let one go."""
    if live and rng.random() < 0.3:
        del live[rng.choice(list(live))]
        return
    terms = engine._cluster.terms
    if rng.random() < 0.5:
        all_of = tuple(random_peers(rng) for _ in range(rng.randint(1, 2)))
        with_deleting = rng.random() < 0.5
        live[all_of, with_deleting] = terms.count_peers(all_of, with_deleting=with_deleting)
        return
    seen = TermView(rng.choice("st"), frozenset(random_labels(rng).items()))
    stance, key = rng.choice(list(Stance)), rng.choice([_HOSTNAME, "zone"])
    live[seen, stance, key] = terms.count_owners(seen, stance, key)


def change_a_pod(rng: random.Random, engine: Engine) -> None:
    namespace, i = rng.choice("st"), rng.randrange(8)
    if f"{namespace}/p{i}" in engine._cluster.pods and rng.random() < 0.4:
        engine.handle(events.Gone("Pod", f"{namespace}/p{i}"), 0.0)
        return
    kind = rng.choice(["podAffinity", "podAntiAffinity"])
    terms = [random_term(rng) for _ in range(rng.randrange(3))]
    soft = [{"weight": 1 + k, "podAffinityTerm": term} for k, term in enumerate(terms)]
    rules = {
        "requiredDuringSchedulingIgnoredDuringExecution": terms if rng.random() < 0.5 else [],
        "preferredDuringSchedulingIgnoredDuringExecution": soft if rng.random() < 0.5 else [],
    }
    pod = make.pod(
        name=f"p{i}",
        namespace=namespace,
        node=f"n{i % 3}",
        labels=random_labels(rng),
        spec={"affinity": {kind: rules}},
    )
    engine.handle(events.Seen(pod), 0.0)


@pytest.mark.parametrize("seed", range(12))
def test_counts_are_what_a_slow_count_says_through_random_changes(seed: int) -> None:
    rng = random.Random(seed)
    engine = Engine(Config())
    for i in range(3):
        engine.handle(events.Seen(make.node(name=f"n{i}", cpu=100)), 0.0)
    live: Asked = {}
    for _ in range(120):
        what = rng.random()
        if what < 0.35:
            ask(rng, engine, live)
        elif what < 0.9:
            change_a_pod(rng, engine)
        else:
            labels = {"team": rng.choice("xy")} if rng.random() < 0.7 else {}
            engine.handle(events.Seen(make.namespace(rng.choice("st"), labels)), 0.0)
        capacity = engine._cluster.nodes.capacity
        for key, count in live.items():
            if len(key) == 2:
                expected = peers_slowly(engine, key[0], with_deleting=key[1])
            else:
                expected = owners_slowly(engine, *key)
            assert count.list_by_row(capacity).tolist() == expected, key
    live.clear()
    del count
    assert not len(engine._cluster.terms.counters)


def unlike(i: int, kind: str, n: int) -> Json:
    """So many terms of a pod, which no other pod has."""
    if kind == "soft spread":
        return {
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "topologyKey": f"t{i}-{j}",
                    "labelSelector": {"matchLabels": {f"k{i}-{j}": "v"}},
                }
                for j in range(n)
            ]
        }
    terms: list[Json] = [
        {
            "topologyKey": _HOSTNAME,
            "namespaceSelector": {},
            "labelSelector": {"matchLabels": {f"k{i}-{j}": "v"}},
        }
        for j in range(n)
    ]
    if kind == "required of many values":
        for j, term in enumerate(terms):
            values = [f"{i}-{j}-{k}" for k in range(9)]
            expression = {"key": "app", "operator": "In", "values": values}
            term["labelSelector"] = {"matchExpressions": [expression]}
    if kind.startswith("absent"):
        for j, term in enumerate(terms):
            expressions: list[Json] = [{"key": f"k{i}-{j}", "operator": "DoesNotExist"}]
            if kind != "absent":
                expressions.append({"key": "new", "operator": "Exists"})
            term["labelSelector"] = {"matchExpressions": expressions}
    if kind == "forbids":
        for j, term in enumerate(terms):
            expressions = [
                {"key": f"k{i}-{j}-{k}", "operator": "NotIn", "values": ["v"]} for k in range(9)
            ]
            term["labelSelector"] = {"matchExpressions": expressions}
    if kind.startswith("required"):
        return {
            "affinity": {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
            }
        }
    soft = [{"weight": 1, "podAffinityTerm": term} for term in terms]
    return {
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": soft}}
    }


KINDS = [
    "preferred of all namespaces",
    "soft spread",
    "required of many values",
    "forbids",
    "absent",
    "absent beside what all have",
]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[Selector]:
    """The selectors that Python compared with labels, one by one, since the list was last cleared."""
    found: list[Selector] = []
    matches = Selector.matches

    def note(one: Selector, labels: Labels) -> bool:
        found.append(one)
        return matches(one, labels)

    monkeypatch.setattr(Selector, "matches", note)
    return found


def attacked(kind: str, n_pods: int = 40) -> Engine:
    """Pods on nodes that have ten terms each, no two alike, and live shapes of them."""
    engine = Engine(Config(), is_shared=False)
    for i in range(4):
        node = make.node(name=f"n{i}", cpu=100, labels={_HOSTNAME: f"n{i}"})
        engine.handle(events.Seen(node), 0.0)
    for i in range(n_pods):
        labels = {"app": f"a{i}"}
        pod = make.pod(name=f"e{i}", namespace="evil", labels=labels, spec=unlike(i, kind, 10))
        engine.handle(events.Seen(pod), float(i))
        engine.decide(float(i), Unlimited())
    assert all(pod.node for pod in engine._cluster.pods.values())
    return engine


@pytest.mark.parametrize("kind", KINDS)
def test_a_pod_with_new_labels_is_compared_with_few_terms_one_by_one(
    kind: str, compared: list[Selector]
) -> None:
    """There are 400 terms; the pod is decided for and comes to a node."""
    engine = attacked(kind)
    compared.clear()
    engine.handle(events.Seen(make.pod(name="p", labels={"new": "x"})), 100.0)
    (bind,) = engine.decide(100.0, Unlimited()).binds
    assert bind.uid == "default/p"
    assert len(compared) <= 4


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_running_pods_change_for_as_little_after_an_attack(
    kind: str, compared: list[Selector]
) -> None:
    engine = attacked(kind)
    for i in range(50):
        pod = make.pod(name=f"r{i}", node="n0", labels={"f": "0"})
        engine.handle(events.Seen(pod), 100.0)
    compared.clear()
    for i in range(50):
        pod = make.pod(name=f"r{i}", node="n0", labels={"f": str(i)})
        engine.handle(events.Seen(pod), 101.0)
    engine.decide(101.0, Unlimited())
    assert len(compared) <= 50


def test_a_count_is_not_compared_again_with_a_pod_that_has_none_of_its_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Constraints of many expressions that forbid labels, about every pod of the namespace."""
    engine = Engine(Config())
    engine.handle(events.Seen(make.node(name="n", cpu=100)), 0.0)
    live: list[Count] = []
    for i in range(40):
        forbidden = [Requirement(f"k{i}-{j}", "NotIn", ("v",)) for j in range(20)]
        peers = Peers(("default",), selectors.NOTHING, selectors.make_selector(forbidden))
        live.append(engine._cluster.terms.count_peers((peers,), with_deleting=False))
    asked: list[Requirement] = []

    def holds(one: Requirement, labels: Labels) -> bool:
        asked.append(one)
        return labels.get(one.key) not in one.values

    monkeypatch.setattr(Requirement, "holds", holds)
    engine.handle(events.Seen(make.pod(name="p", node="n", labels={"new": "x"})), 0.0)
    assert [int(count.list_by_row(1)[0]) for count in live] == [1] * 40
    assert not asked
