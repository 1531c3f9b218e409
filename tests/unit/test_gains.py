"""What pods on nodes add to what is counted for one that preempts: as many as it takes to see, and no more."""

from typing import Any

import numpy as np
import pytest

from scheduler.api.door import events
from scheduler.config import Config
from scheduler.disruption.gains import Gains
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from tests import make

ZONE = "topology.kubernetes.io/zone"


def term(**labels: str) -> dict[str, Any]:
    return {"topologyKey": ZONE, "labelSelector": {"matchLabels": labels}, "namespaceSelector": {}}


def required(**rules: dict[str, Any]) -> dict[str, Any]:
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {name: {field: [one]} for name, one in rules.items()}}


def engine_of() -> Engine:
    engine = Engine(Config(), pace=PROMPT, is_shared=False)
    for name in "ab":
        engine.handle(events.Seen(make.node(name=name, cpu=8, labels={ZONE: name})), 0.0)
    asked: list[dict[str, Any]] = [
        {"labels": {"app": "x"}},
        {"labels": {"app": "y"}},
        {"labels": {"app": "x"}, "namespace": "other"},
        {"spec": required(podAntiAffinity=term(app="x"))},
        {"labels": {"app": "x"}, "spec": required(podAntiAffinity=term(app="nobody"))},
        {"labels": {"app": "x"}, "containers": [make.container(host_ports=[80])]},
        {"containers": [make.container(host_ports=[80])]},
    ]
    for i, one in enumerate(asked):
        engine.handle(events.Seen(make.pod(name=f"p{i}", node="ab"[i % 2], **one)), 0.0)
    return engine


@pytest.mark.parametrize(
    "spec",
    [
        required(podAntiAffinity=term(app="x")),
        required(podAffinity=term(app="x")),
        {"containers": [make.container(host_ports=[80])]},
    ],
)
def test_what_is_known_of_a_pod_is_what_taking_it_away_shows(spec: dict[str, Any]) -> None:
    engine = engine_of()
    waits = make.pod(name="w", priority=10, labels={"app": "x"}, spec=spec)
    engine.handle(events.Seen(waits), 0.0)
    cluster, cycle = engine._cluster, engine._cycle
    shape = cycle.get_unscored(cluster.pods[waits.metadata.uid])
    assert shape is not None
    cycle.boards.refresh_counts(shape)
    rows = np.array([0, 1], np.int64)
    running = [pod for there in cluster.pods_on.values() for pod in list(there.values())]
    pods = np.array([pod.row for pod in running], np.int64)
    gains = Gains(cluster).find_gains(shape.counted, rows, pods)
    tried = Gains(cluster)
    assert len(running) == 7
    assert gains.any()
    for pod in running:
        assert (gains[:, pod.row] == tried._try(shape.counted.list_refusing_counts(), pod)).all(), (
            pod.key
        )


def test_no_pod_is_taken_away_to_see_what_its_labels_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pods of a StatefulSet all have labels of their own: in a large cluster it would take seconds."""
    engine = Engine(Config(), pace=PROMPT, is_shared=False)
    engine.handle(events.Seen(make.node(name="a", cpu=8, labels={ZONE: "a"})), 0.0)
    for i in range(8):
        running = make.pod(name=f"p{i}", node="a", cpu=1, labels={"app": "x", "index": str(i)})
        engine.handle(events.Seen(running), 0.0)
    monkeypatch.setattr(Gains, "_try", lambda *_: pytest.fail("tried"))
    spec = required(podAntiAffinity=term(index="3"))
    engine.handle(events.Seen(make.pod(name="w", cpu=1, priority=10, spec=spec)), 0.0)
    (evict,) = engine.decide(0.0, Unlimited()).evicts
    assert evict.victims == ("default/p3",)
