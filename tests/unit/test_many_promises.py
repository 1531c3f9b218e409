"""Many promises: they are tried at once where they have nothing to do with a pod, and each by itself where they have."""

from typing import Any

import pytest

from scheduler.disruption.attempts import _NODES_A_TRIAL, _NODES_AN_ATTEMPT
from scheduler.disruption.promises import Promises
from scheduler.engine.allowance import Unlimited
from tests import make
from tests.unit.test_nominations import engine_of, nominated, placed, see

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
LABELS = {"app": "x"}


def spread() -> Json:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": LABELS},
    }
    return {"topologySpreadConstraints": [constraint]}


def apart_from(label: str) -> Json:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {label: "x"}}}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": rules}}


@pytest.mark.parametrize("spec", [{}, apart_from("nobody")])
def test_what_is_promised_to_many_costs_others_no_trial_for_each(
    spec: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant may have thousands of pods that wait for room, with terms about others: nobody else's pods wait for it."""
    nodes = [make.node(name=f"n{i}", cpu=4, labels={ZONE: "abc"[i % 3]}) for i in range(30)]
    engine = engine_of(*nodes)
    see(engine, *(nominated(f"p{i}", f"n{i}", spec=spec) for i in range(29)))
    tried: list[int] = []
    kept = Promises.keep_promises

    def counted(self: Promises, promised: Any, **more: bool) -> Any:
        tried.append(len(promised))
        return kept(self, promised, **more)

    monkeypatch.setattr(Promises, "keep_promises", counted)
    see(engine, make.pod(name="q", cpu=2, labels=LABELS, spec=spread()))
    assert placed(engine) == {"default/q": "n29"}
    assert tried == [29]


def test_what_is_promised_elsewhere_makes_nothing_even() -> None:
    """With both promises kept the zones would be even; but each may yet be kept, and the other not."""
    engine = engine_of(*(make.node(name=z, cpu=8, labels={ZONE: z}) for z in "ab"))
    see(engine, *(nominated(f"p{z}", z, labels=LABELS) for z in "ab"))
    see(engine, make.pod(name="q", cpu=1, labels=LABELS, spec=spread()))
    assert placed(engine) == {}


def test_what_promised_pods_say_of_others_holds_on_their_nodes_alone() -> None:
    engine = engine_of(*(make.node(name=f"n{i}", cpu=8, labels={ZONE: "a"}) for i in range(3)))
    see(engine, *(nominated(f"p{i}", f"n{i}", spec=apart_from("app")) for i in range(2)))
    see(engine, make.pod(name="q", cpu=1, labels=LABELS))
    assert placed(engine) == {"default/q": "n2"}


@pytest.mark.parametrize(("label", "n_trials"), [("app", 6), ("other", 0)])
def test_a_preempting_pod_is_charged_for_nodes_that_are_tried_by_themselves(
    label: str, n_trials: int
) -> None:
    """Terms of nominated pods about it: whether room is left beside them is another question on each node."""
    engine = engine_of(*(make.node(name=f"n{i}", cpu=8, labels={ZONE: f"z{i}"}) for i in range(6)))
    see(engine, *(make.pod(name=f"low{i}", node=f"n{i}", cpu=4) for i in range(6)))
    see(engine, *(nominated(f"p{i}", f"n{i}", cpu=1, spec=apart_from(label)) for i in range(6)))
    attempts = engine._cycle.attempts
    see(engine, make.pod(name="q", cpu=7, labels=LABELS, priority=10))
    before = attempts.spent
    engine.decide(0.0, Unlimited())
    spent = attempts.spent - before
    assert (spent >= n_trials * _NODES_A_TRIAL) if n_trials else (spent < 2 * _NODES_AN_ATTEMPT)
