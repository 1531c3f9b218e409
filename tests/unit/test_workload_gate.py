"""The engine holds the pods of workloads that may not run, and lets them go when these may."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scheduler.api import kueue, names, wire
from scheduler.api.door import events
from scheduler.api.queues.settings import QueueSettings
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine

Json = dict[str, Any]


class Cluster:
    """An engine that manages queues, with one node."""

    def __init__(self, **settings: Any) -> None:
        self.engine = Engine(Config(queues=QueueSettings(kueue=True, **settings)))
        self.now = 1e9
        node = {
            "metadata": {"name": "n0"},
            "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"}},
        }
        self.see(msgspec.convert(node, wire.Node))

    def see(self, found: Any) -> None:
        self.engine.handle(events.Seen(found), self.now)

    def see_pod(self, name: str, **labels: str) -> None:
        meta: Json = {"name": name, "namespace": "n", "uid": name, "labels": labels}
        if owner := labels.pop("owner", ""):
            reference = {"kind": "Job", "apiVersion": "batch/v1", "name": owner, "controller": True}
            meta["ownerReferences"] = [reference]
        spec = {
            "schedulerName": "evenkeel",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        }
        self.see(msgspec.convert({"metadata": meta, "spec": spec}, wire.Pod))

    def see_workload(self, owner: str, *true: str, kind: str = "Pod") -> None:
        conditions = [{"type": one, "status": "True", "reason": one} for one in true]
        reference = {"kind": kind, "name": owner, "controller": True}
        pod_set = {"name": "main", "count": 1}
        body: Json = {
            "metadata": {"name": f"of-{owner}", "namespace": "n", "ownerReferences": [reference]},
            "spec": {"queueName": "q", "podSets": [pod_set]},
            "status": {"conditions": conditions},
        }
        if "QuotaReserved" in true:
            body["status"]["admission"] = {"clusterQueue": "all"}
        self.see(msgspec.convert(body, kueue.Workload))

    def place(self) -> list[str]:
        """The pods that get a node now."""
        self.now += 20.0
        found = []
        for _ in range(3):
            outcome = self.engine.decide(self.now, Unlimited())
            found += [bind.uid for plan in outcome.plans for bind in plan.binds]
        return found


_QUEUED = {names.KUEUE_QUEUE: "q"}


def test_a_pod_with_a_queue_waits_until_its_workload_may_run() -> None:
    cluster = Cluster()
    cluster.see_pod("a", **_QUEUED)
    cluster.see_pod("free")
    assert cluster.place() == ["free"]
    cluster.see_workload("a")
    assert cluster.place() == []
    cluster.see_workload("a", "QuotaReserved")
    assert cluster.place() == []
    cluster.see_workload("a", "QuotaReserved", "Admitted")
    assert cluster.engine.find_due(cluster.now) <= cluster.now
    assert cluster.place() == ["a"]


def test_a_pod_of_a_job_waits_with_it() -> None:
    cluster = Cluster()
    cluster.see_workload("train", kind="Job")
    cluster.see_pod("a", owner="train")
    assert cluster.place() == []
    cluster.see_workload("train", "QuotaReserved", "Admitted", kind="Job")
    assert cluster.place() == ["a"]
    cluster.see_workload("train", "QuotaReserved", "Admitted", "Evicted", kind="Job")
    cluster.see_pod("b", owner="train")
    assert cluster.place() == []
    cluster.see_workload("train", kind="Job")
    assert cluster.place() == []
    cluster.see_workload("train", "QuotaReserved", "Admitted", kind="Job")
    assert cluster.place() == ["b"]


@pytest.mark.parametrize("settings", [{"makes_workloads": False}])
def test_nobody_waits_for_a_workload_that_nobody_makes(settings: Json) -> None:
    cluster = Cluster(**settings)
    cluster.see_pod("a", **_QUEUED)
    assert cluster.place() == ["a"]
