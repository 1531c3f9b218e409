"""Waiting pods that were alike and are no longer are told apart some at a time, and none of them is left out."""

from collections.abc import Hashable
from typing import Any

import pytest

from scheduler.api import steering, wire
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.engine.allowance import SpentAllowance, Unlimited
from scheduler.engine.chores import Pace
from scheduler.engine.engine import Engine
from scheduler.engine.splitting import PODS_A_PIECE
from scheduler.plugins import table
from scheduler.state.pods import PodRecord
from tests import make

Json = dict[str, Any]
_HOSTNAME = "kubernetes.io/hostname"


def engine_with(nodes: dict[str, int]) -> Engine:
    """Nodes of so many cores that are full."""
    engine = Engine(Config(), pace=Pace(help=0.0, explain=1e9), is_shared=False)
    for name, cpu in nodes.items():
        engine.handle(events.Seen(make.node(name=name, cpu=cpu)), 0.0)
        engine.handle(events.Seen(make.pod(name=f"on-{name}", node=name, cpu=cpu)), 0.0)
    return engine


def repels(*values: str) -> Json:
    """A pod that wants no pod of these labels on its node."""
    selector = {"matchExpressions": [{"key": "a", "operator": "In", "values": list(values)}]}
    term = {"topologyKey": _HOSTNAME, "labelSelector": selector}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {"spec": {"affinity": rules}}


def test_pods_that_are_told_apart_are_looked_at_a_piece_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n_pods = 5 * PODS_A_PIECE
    engine = engine_with({"n": 4, "m": 4})
    for i in range(n_pods):
        pod = make.pod(name=f"p{i}", cpu=1, labels={"a": str(i)})
        engine.handle(events.Seen(pod), 0.0)
    engine.decide(0.0, Unlimited())
    assert len(engine._pending.parked.list_kinds()) == 1
    shy = make.pod(name="shy", node="m", **repels(*map(str, range(n_pods))))
    engine.handle(events.Seen(shy), 1.0)
    engine.decide(1.0, Unlimited())
    n_asked = 0
    find_kind = Cycle.find_kind

    def count(cycle: Cycle, pod: Any) -> Any:
        nonlocal n_asked
        n_asked += 1
        return find_kind(cycle, pod)

    monkeypatch.setattr(Cycle, "find_kind", count)
    engine.handle(events.Gone("Pod", "default/on-n"), 20.0)
    most, found = 0, []
    for i in range(100):
        n_asked = 0
        outcome = engine.decide(20.0 + i / 100, SpentAllowance(9, (9, 1, 0)))
        assert not outcome.binds
        most = max(most, n_asked)
    for i in range(20):
        found += engine.decide(30.0 + i, Unlimited()).binds
    assert PODS_A_PIECE <= most <= PODS_A_PIECE + 1
    assert [bind.node for bind in found] == ["n"] * 4


def test_a_kind_that_pods_of_another_join_is_still_told_apart_itself() -> None:
    """The first pod of a kind that nobody told apart is refused, and the pod that joined the kind is not."""
    engine = engine_with({"m": 2})
    engine.handle(events.Seen(make.node(name="n", taints=[("k", "1", "NoSchedule")])), 0.0)
    never = {"preemptionPolicy": "Never"}
    refused = make.pod(name="refused", cpu=1, labels={"a": "2"}, spec=never)
    engine.handle(events.Seen(refused), 0.0)
    engine.decide(0.0, Unlimited())
    engine.handle(events.Seen(make.pod(name="shy", node="m", **repels("1"))), 1.0)
    joins = make.pod(name="joins", cpu=1, labels={"a": "1"}, priority=10, spec=never)
    engine.handle(events.Seen(joins), 1.0)
    engine.decide(1.0, Unlimited())
    assert len(engine._pending.parked.list_kinds()) == 2
    engine.handle(events.Gone("Pod", "default/shy"), 2.0)
    engine.handle(events.Seen(make.pod(name="shy-2", node="m", **repels("2"))), 2.0)
    # Nobody tolerates this taint either, but who is kept off by taints is looked at.
    engine.handle(events.Seen(make.node(name="n", taints=[("k", "2", "NoSchedule")])), 2.0)
    assert not engine.decide(2.0, Unlimited()).binds
    engine.handle(events.Gone("Pod", "default/on-m"), 20.0)
    found = [bind.uid for i in range(10) for bind in engine.decide(20.0 + i, Unlimited()).binds]
    assert found == ["default/joins"]


def test_a_service_that_changes_elsewhere_has_no_pod_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = engine_with({"n": 8})
    spread = {
        "maxSkew": 1,
        "topologyKey": _HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"a": "x"}},
    }
    for i in range(50):
        pod = make.pod(
            name=f"p{i}",
            cpu=1,
            labels={"own": str(i)},
            spec={"topologySpreadConstraints": [spread]},
        )
        engine.handle(events.Seen(pod), 0.0)
    engine.decide(0.0, Unlimited())
    n_read = 0
    read = table.read_peer_needs

    def count(*args: Any) -> Any:
        nonlocal n_read
        n_read += 1
        return read(*args)

    monkeypatch.setattr(table, "read_peer_needs", count)
    for namespace, n_wanted in (("elsewhere", 0), ("default", 50)):
        n_read = 0
        meta = wire.Meta(name="s", namespace=namespace)
        engine.handle(events.Seen(steering.Service(meta, steering.ServiceSpec({"own": "0"}))), 1.0)
        for waiting in list(engine._pending.list_pods()):
            engine._cycle.find_kind(waiting)
        assert n_read == n_wanted


def test_nominations_that_come_and_go_split_no_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_with({"n": 4})
    for i in range(2 * PODS_A_PIECE):
        pod = make.pod(name=f"p{i}", cpu=1, labels={"index": str(i), "app": "x"})
        engine.handle(events.Seen(pod), 0.0)
    engine.decide(0.0, Unlimited())
    assert len(engine._pending.parked.list_kinds()) == 1
    asked: list[str] = []
    find_kind = Cycle.find_kind

    def count(cycle: Cycle, pod: PodRecord) -> Hashable:
        asked.append(pod.uid)
        return find_kind(cycle, pod)

    monkeypatch.setattr(Cycle, "find_kind", count)
    for i in range(6):
        high = make.pod(name="high", scheduler_name="other", priority=10)
        high.status.nominated_node_name = "n" if i % 2 else ""
        engine.handle(events.Seen(high), float(i))
        # More is free, so that the kind is looked at.
        engine.handle(events.Seen(make.node(name="n", cpu=4, memory=f"{100 + i}Gi")), float(i))
        assert not engine.decide(i + 0.5, Unlimited()).binds
    assert not asked
    assert len(engine._pending.parked.list_kinds()) == 1


def test_terms_of_a_nominated_pod_tell_pods_apart_by_the_labels_that_the_terms_look_at() -> None:
    """Of 50 pods of a Job, all with an index of their own, one repels the nominated pod's terms: two kinds, not 50."""
    engine = engine_with({"n": 4})
    for i in range(50):
        pod = make.pod(name=f"p{i}", cpu=1, labels={"index": str(i), "a": str(i == 7)})
        engine.handle(events.Seen(pod), 0.0)
    high = make.pod(name="high", scheduler_name="other", cpu=1, priority=10, **repels("True"))
    high.status.nominated_node_name = "n"
    engine.handle(events.Seen(high), 1.0)
    engine.decide(1.0, Unlimited())
    engine.handle(events.Seen(make.node(name="n", cpu=6)), 2.0)
    (bind,) = engine.decide(2.0, Unlimited()).binds
    # One core of two is promised.
    assert bind.node == "n"
    assert bind.uid != "default/p7"
    for i in range(5):
        engine.decide(3.0 + i, Unlimited())
    assert len(engine._pending.parked.list_kinds()) == 2
