"""Small random clusters full of pods that wait, each for something, and what may happen to them."""

from __future__ import annotations

import random
from typing import Any

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.state.pods import PodRecord
from tests import make
from tests.model import peer_objects as objects

Json = dict[str, Any]
_NAMES = [f"n{i}" for i in range(6)]
_APPS = ("a", "b", "c")
_FEATURE = "VolumeBindMountOptions"
_TAINTS = [("k", "v", "NoSchedule"), ("l", "", "NoExecute"), ("m", "", "PreferNoSchedule")]


class Waiting:
    """An engine in virtual time, in which everything is carried out at once.

    Attributes:
        looks: how many pods were looked at since somebody set it to 0.
    """

    def __init__(self, rng: random.Random, *, n_nodes: int = 4, explains: bool = True) -> None:
        self.rng, self.now, self.looks = rng, 0.0, 0
        self.engine = Engine(Config(), pace=PROMPT, explains=explains)
        self._n = 0
        self.nodes: dict[str, wire.Node] = {}
        self.running: dict[str, wire.Pod] = {}
        self.waiting: dict[str, wire.Pod] = {}
        self.nominated: dict[str, wire.Pod] = {}
        look = self.engine._cycle.find_barriers

        def counted(*asked: Any) -> Any:
            self.looks += 1
            return look(*asked)

        self.engine._cycle.find_barriers = counted  # type: ignore[method-assign, assignment]
        for name in rng.sample(_NAMES, n_nodes):
            self.see_node(self.new_node(name))

    # What may happen.

    def something_happens(self) -> str:
        """One of the methods below; its name."""
        name = self.rng.choice(
            ["node_changes", "node_changes", "node_comes_or_goes", "pod_runs", "pod_leaves", "pod_leaves",
             "pod_is_relabelled", "pod_is_being_deleted", "pods_wait", "pods_wait", "namespace_changes",
             "room_is_promised", "room_is_promised"]
        )  # fmt: skip
        getattr(self, name)()
        return name

    def node_changes(self) -> None:
        """In one or two of its aspects."""
        if not self.nodes:
            return
        node = self.nodes[self.rng.choice(list(self.nodes))]
        other = self.new_node(node.metadata.name)
        for _ in range(self.rng.randrange(1, 3)):
            match self.rng.randrange(6):
                case 0:
                    node.metadata.labels = other.metadata.labels
                case 1:
                    node.spec.taints = other.spec.taints
                case 2:
                    node.spec.unschedulable = other.spec.unschedulable
                case 3:
                    node.status.allocatable = other.status.allocatable
                case 4:
                    node.status.declared_features = other.status.declared_features
                case _:
                    node.metadata.annotations = other.metadata.annotations
        self.see_node(node)

    def node_comes_or_goes(self) -> None:
        name = self.rng.choice(_NAMES)
        if name in self.nodes and self.rng.random() < 0.5:
            del self.nodes[name]
            self.engine.handle(events.Gone("Node", name), self.now)
        else:
            self.see_node(self.new_node(name))

    def pod_runs(self) -> None:
        pod = self.new_pod()
        pod.spec.scheduler_name = "other"
        pod.spec.node_name = self.rng.choice(_NAMES)
        self.see_running(pod)

    def pod_leaves(self) -> None:
        if self.running:
            uid = self.rng.choice(list(self.running))
            del self.running[uid]
            self.engine.handle(events.Gone("Pod", uid), self.now)

    def pod_is_relabelled(self) -> None:
        if self.running:
            pod = self.running[self.rng.choice(list(self.running))]
            pod.metadata.labels = {"app": self.rng.choice(_APPS)}
            self.see_running(pod)

    def pod_is_being_deleted(self) -> None:
        if self.running:
            pod = self.running[self.rng.choice(list(self.running))]
            pod.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
            self.see_running(pod)

    def pods_wait(self) -> None:
        for _ in range(self.rng.randrange(1, 5)):
            self.see_waiting(self.new_pod())

    def namespace_changes(self) -> None:
        labels = self.rng.choice([{}, {"team": "x"}])
        self.engine.handle(events.Seen(make.namespace("default", labels)), self.now)

    def room_is_promised(self) -> None:
        """A pod of another scheduler is nominated, to another node, to none any more, or is gone."""
        rng = self.rng
        if not self.nominated or rng.random() < 0.5:
            pod = self.new_pod()
            pod.spec.scheduler_name = "other"
            pod.spec.priority = rng.choice([0, 5, 9])
        else:
            pod = self.nominated.pop(rng.choice(list(self.nominated)))
            if rng.random() < 0.4:
                self.engine.handle(events.Gone("Pod", pod.metadata.uid), self.now)
                return
        self.nominated[pod.metadata.uid] = pod
        pod.status.nominated_node_name = rng.choice(["", *_NAMES])
        self.engine.handle(events.Seen(pod), self.now)

    # What the engine does of it.

    def settle(self) -> None:
        """Decide until nothing is left to do; what is placed runs."""
        while True:
            outcome = self.engine.decide(self.now, Unlimited())
            for bind in outcome.binds:
                pod = self.waiting.pop(bind.uid)
                pod.spec.node_name = bind.node
                self.engine.handle(events.BindDone(bind.uid), self.now)
                self.see_running(pod)
            if not outcome.binds and self.engine.find_due(self.now) > self.now:
                return

    def parked(self) -> list[PodRecord]:
        """All that wait for a change."""
        parked = self.engine._pending.parked
        return [pod for kind in parked.list_kinds() for pod in parked.list_pods(kind)]

    # Objects.

    def see_node(self, node: wire.Node) -> None:
        self.nodes[node.metadata.name] = node
        self.engine.handle(events.Seen(node), self.now)

    def see_waiting(self, pod: wire.Pod) -> None:
        self.waiting[pod.metadata.uid] = pod
        self.engine.handle(events.Seen(pod), self.now)

    def see_running(self, pod: wire.Pod) -> None:
        self.running[pod.metadata.uid] = pod
        self.engine.handle(events.Seen(pod), self.now)

    def new_node(self, name: str) -> wire.Node:
        rng = self.rng
        labels = {}
        for key, values in (("zone", "12"), ("rack", "12"), ("disk", "sh")):
            if rng.random() < 0.8:
                labels[key] = rng.choice(values)
        figures: Json = {
            "name": name,
            "cpu": rng.choice([1, 2, 4]),
            "memory": rng.choice(["1Gi", "4Gi"]),
            "pods": rng.choice([2, 3, 9]),
            "labels": labels,
            "taints": rng.sample(_TAINTS, rng.choice([0, 0, 1, 2])),
            "unschedulable": rng.random() < 0.2,
            "allocatable": {"example.com/x": rng.randrange(3)} if rng.random() < 0.5 else {},
        }
        if rng.random() < 0.3:
            node = make.hami_node(cards=rng.randrange(1, 3), **figures)
        else:
            node = make.node(**figures)
        if rng.random() < 0.4:
            node.status.declared_features = [_FEATURE]
        if rng.random() < 0.05:
            node.status.allocatable = {**(node.status.allocatable or {}), "cpu": "oops"}
        return node

    def new_pod(self) -> wire.Pod:
        rng = self.rng
        self._n += 1
        figures: Json = {
            "name": f"p{self._n}",
            "labels": {"app": rng.choice(_APPS)},
            "cpu": rng.choice(["100m", "1", "2", "3"]),
        }
        spec: Json = {}
        for _ in range(rng.randrange(3)):
            _add_a_wish(rng, figures, spec)
        if rng.random() < 0.4:
            figures["tolerations"] = [{"operator": "Exists", "key": rng.choice("kl")}]
        # Nobody here sends others away: what is promised is promised to pods of other schedulers.
        spec["preemptionPolicy"] = "Never"
        figures["priority"] = rng.choice([0, 0, 5])
        return make.pod(**figures, spec=spec)


def _add_a_wish(rng: random.Random, figures: Json, spec: Json) -> None:
    if rng.random() < 0.5:
        _add_a_rule_about_pods(rng, spec)
        return
    match rng.randrange(7):
        case 0:
            figures["node_selector"] = {rng.choice(["disk", "rack"]): rng.choice("sh12")}
        case 1:
            key, operator = (
                rng.choice(["disk", "zone"]),
                rng.choice(["NotIn", "Exists", "DoesNotExist"]),
            )
            values = {"values": ["s", "1"]} if operator == "NotIn" else {}
            _require(spec, matchExpressions=[{"key": key, "operator": operator, **values}])
        case 2:
            one = {"key": "metadata.name", "operator": "In", "values": [rng.choice(_NAMES)]}
            _require(spec, matchFields=[one])
        case 3:
            figures["host_ports"] = [rng.choice([80, 81])]
        case 4:
            figures["requests"] = {"example.com/x": rng.randrange(1, 3)}
        case 5:
            figures |= {
                "gpu": rng.randrange(1, 3),
                "gpumem": rng.choice([4000, 9000]),
                "gpucores": 40,
            }
        case _:
            figures["memory"] = rng.choice(["512Mi", "2Gi", "8Gi"])


def _add_a_rule_about_pods(rng: random.Random, spec: Json) -> None:
    app = {"matchLabels": {"app": rng.choice(_APPS)}}
    key = rng.choice(["zone", "rack", "kubernetes.io/hostname"])
    if rng.random() < 0.4:
        rule = {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": app,
        }
        if rng.random() < 0.3:
            rule["minDomains"] = 2
        if rng.random() < 0.3:
            rule["nodeTaintsPolicy"] = "Honor"
        spec["topologySpreadConstraints"] = [rule]
        return
    term: Json = {"topologyKey": key, "labelSelector": app}
    if rng.random() < 0.2:
        term["namespaceSelector"] = {"matchLabels": {"team": "x"}}
    kind = rng.choice(["podAffinity", "podAntiAffinity"])
    spec.setdefault("affinity", {}).update(objects.affinity(kind, term))


def _require(spec: Json, **term: Any) -> None:
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    spec.setdefault("affinity", {})["nodeAffinity"] = rule
