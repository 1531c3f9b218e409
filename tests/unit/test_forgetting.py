"""What was kept for pods ends with them, and takes no more bytes than it may."""

import random
import sys
from typing import Any

import pytest

from scheduler.api.door import events
from scheduler.config import Config
from scheduler.disruption import attempts
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import Pace
from scheduler.engine.engine import Engine
from scheduler.shapes import boards, statics, views
from scheduler.state.structures.recent import Recent
from scheduler.state.structures.sizes import estimate_bytes
from tests import make

Json = dict[str, Any]
_HOSTNAME = "kubernetes.io/hostname"


def spread(i: int) -> Json:
    values = [f"{i}-{k}" for k in range(40)]
    expression = {"key": "app", "operator": "NotIn", "values": values}
    one = {
        "maxSkew": 1000,
        "whenUnsatisfiable": "DoNotSchedule",
        "topologyKey": _HOSTNAME,
        "labelSelector": {"matchExpressions": [expression]},
    }
    return {"spec": {"topologySpreadConstraints": [one]}}


def repels(i: int) -> Json:
    terms = [
        {
            "topologyKey": _HOSTNAME,
            "labelSelector": {
                "matchExpressions": [
                    {"key": "app", "operator": "In", "values": [f"{i}-{j}-{k}" for k in range(20)]}
                ]
            },
        }
        for j in range(10)
    ]
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return {"spec": {"affinity": {"podAntiAffinity": rules}}}


def wishes(i: int) -> Json:
    text = ",".join(f"GPU-{i}-{k}" for k in range(500))
    return {"gpu": 1, "gpumem": 100, "annotations": {"nvidia.com/use-gpuuuid": text}}


def engine_of() -> Engine:
    engine = Engine(Config(), pace=Pace(help=0.0), is_shared=False)
    for i in range(3):
        node = make.node(name=f"n{i}", cpu=100, labels={_HOSTNAME: f"n{i}"})
        engine.handle(events.Seen(node), 0.0)
    engine.handle(events.Seen(make.hami_node(name="gpu", cards=2, cpu=16)), 0.0)
    return engine


def n_kept(engine: Engine) -> int:
    """Entries of all that is kept for kinds of pods."""
    cycle = engine._cycle
    kept: tuple[Recent[Any, Any], ...] = (
        cycle.boards._shapes,
        cycle.boards.statics._recent,
        cycle.keys.views._recent,
    )
    return (
        sum(len(one) for one in kept)
        + len(cycle.attempts._hunts)
        + len(engine._cluster.terms.counters)
    )


def rest(engine: Engine, now: float) -> float:
    """A minute in which nothing happens: the engine is called when it says that it has something to do."""
    until = now + 60.0
    for _ in range(100):
        due = engine.find_due(now)
        if due > until:
            return until
        now = max(now + 0.01, due)
        engine.decide(now, Unlimited())
    raise AssertionError("the engine finds no rest")


@pytest.mark.parametrize("say", [spread, repels, wishes])
def test_what_was_kept_for_pods_is_forgotten_within_a_minute_after_they_are_gone(say: Any) -> None:
    engine = engine_of()
    engine.handle(events.Seen(make.pod(name="stays", cpu=1, **spread(0))), 0.0)
    engine.decide(0.0, Unlimited())
    now = rest(engine, 0.0)
    before = n_kept(engine)
    live: list[str] = []
    for i in range(1, 60):
        now += 0.1
        pod = make.pod(name=f"e{i}", labels={"app": f"a{i}"}, **say(i))
        engine.handle(events.Seen(pod), now)
        engine.decide(now, Unlimited())
        live.append(f"default/e{i}")
    assert n_kept(engine) > before + 30
    for uid in live:
        engine.handle(events.Gone("Pod", uid), now)
    now = rest(engine, now)
    assert n_kept(engine) <= before
    assert len(engine._cluster.records._templates) == 1
    assert engine.find_due(now) == float("inf")


def test_what_a_waiting_pod_said_before_is_forgotten_though_it_still_waits() -> None:
    """Its wishes change in a loop."""
    engine = engine_of()
    now = 0.0
    for i in range(60):
        now += 0.1
        engine.handle(events.Seen(make.pod(name="e", **wishes(i))), now)
        engine.decide(now, Unlimited())
    rest(engine, now)
    assert len(engine._cluster.records._templates) == 1


def test_what_is_kept_for_pods_that_are_there_stays() -> None:
    engine = engine_of()
    for i in range(20):
        engine.handle(events.Seen(make.pod(name=f"e{i}", **spread(i))), 0.0)
    engine.decide(0.0, Unlimited())
    engine.handle(events.Seen(make.pod(name="gone", cpu=1)), 0.0)
    engine.handle(events.Gone("Pod", "default/gone"), 0.0)
    before = len(engine._cycle.boards._shapes)
    rest(engine, 0.0)
    assert len(engine._cycle.boards._shapes) == before >= 20


def preempts(i: int) -> Json:
    """More than a node has free, so each takes the place of ``low``."""
    pod = repels(i)
    pod["spec"] |= {"priority": 1000}
    return {**pod, "cpu": 60}


def test_no_cache_takes_more_bytes_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (boards, "_SHAPES_BYTES_MAX"),
        (statics, "_BYTES_MAX"),
        (views, "_VIEWS_BYTES_MAX"),
        (attempts, "_HUNTS_BYTES_MAX"),
    ):
        monkeypatch.setattr(module, name, 400_000)
    engine = engine_of()
    for i in range(3):
        low = make.pod(name=f"low{i}", cpu=90, node=f"n{i}", spec={"priority": 0})
        engine.handle(events.Seen(low), 0.0)
    for i in range(100):
        engine.handle(events.Seen(make.pod(name=f"r{i}", **repels(i))), 0.0)
        engine.handle(events.Seen(make.pod(name=f"w{i}", **wishes(i))), 0.0)
        engine.handle(events.Seen(make.pod(name=f"p{i}", **preempts(i))), 0.0)
        engine.decide(0.0, Unlimited())
        cycle = engine._cycle
        for kept in (
            cycle.boards._shapes,
            cycle.boards.statics._recent,
            cycle.keys.views._recent,
            cycle.attempts._hunts,
        ):
            assert kept.n_bytes <= 400_000
            assert 0 < len(kept) < 40 or i < 20


def soft(i: int) -> Json:
    """Soft constraints and preferred terms, which score nodes."""
    selector = {"matchLabels": {"app": f"a{i}"}}
    constraint = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector}
    term = {"topologyKey": "zone", "labelSelector": selector}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "podAffinityTerm": term}
    ]}  # fmt: skip
    constraints = [constraint | {"topologyKey": key} for key in ("zone", "rack")]
    return {
        "spec": {
            "topologySpreadConstraints": constraints,
            "affinity": {"podAffinity": preferred},
        }
    }


@pytest.mark.parametrize("say", [spread, repels, soft])
def test_the_bytes_of_a_shape_cover_all_that_it_counts(say: Any) -> None:
    engine = Engine(Config(), pace=Pace(help=0.0), is_shared=False)
    for i in range(300):
        labels = {_HOSTNAME: f"n{i}", "zone": f"z{i % 3}", "rack": f"r{i}"}
        engine.handle(events.Seen(make.node(name=f"n{i}", cpu=8, labels=labels)), 0.0)
    for i in range(5):
        pod = make.pod(name=f"e{i}", cpu=1, labels={"app": "a0"}, **say(0))
        engine.handle(events.Seen(pod), 0.0)
        engine.decide(0.0, Unlimited())
    capacity = engine._cluster.nodes.capacity
    shapes = [shape for _, shape in engine._cycle.boards._shapes.items() if len(shape.counted)]
    assert shapes
    for shape in shapes:
        arrays = shape.counted.arrays
        counts = [
            count.list_by_row(capacity) for count in shape.counted.list_refusing_counts() if count
        ]
        parts = [*counts, *arrays.list_values()]
        fixed = 1000 * len(shape.counted)
        taken = sum(one.nbytes for one in parts)
        assert taken > 5 * capacity * len(shape.counted)
        assert taken <= shape.counted.estimate_bytes(capacity) + fixed
    assert engine._cycle.boards._shapes.n_bytes >= sum(
        one.counted.estimate_bytes(capacity) for one in shapes
    )


def test_a_cache_forgets_what_was_used_longest_ago_when_bytes_run_out() -> None:
    kept: Recent[str, str] = Recent(10, 100, lambda key, value: len(key) + len(value))
    for key in "abcd":
        kept.put(key, "x" * 29)
    assert [key for key, _ in kept.items()] == ["b", "c", "d"]
    assert kept.n_bytes == 90
    kept.get("b")
    kept.put("e", "x" * 59)
    assert [key for key, _ in kept.items()] == ["b", "e"]
    kept.put("large", "x" * 500)
    assert [key for key, _ in kept.items()] == ["large"]
    kept.drop("large")
    assert kept.n_bytes == 0


def test_an_estimate_covers_all_that_a_template_is_made_of() -> None:
    rng = random.Random(0)
    texts = ["".join(rng.choices("abc", k=500)) for _ in range(50)]
    annotations = {"nvidia.com/use-gpuuuid": ",".join(texts)}
    pod = make.pod(name="w", gpu=1, annotations=annotations)
    engine = engine_of()
    engine.handle(events.Seen(pod), 0.0)
    template = engine._cluster.pods["default/w"].template
    # The annotation itself, and each UUID in it.
    assert estimate_bytes(template) >= 500 * 50 + sum(map(sys.getsizeof, texts))
