"""The statuses of queues: Kueue's fields and words, written where they differ and not again."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from scheduler.api import kinds, kueue, wire
from scheduler.api.door import events
from scheduler.api.kind import Kind
from scheduler.api.queues.settings import STRATEGIES, QueueSettings
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.questions.queues import (
    ChecksToPass,
    FlavorUse,
    QueueFigures,
    QueuePath,
    StatusesOfQueues,
)
from scheduler.kube.queues.statuses import QueueStatuses
from tests import make

Json = dict[str, Any]
NOW = 1_800_000_000.0
READY = {
    "type": "Active",
    "status": "True",
    "reason": "Ready",
    "message": "Can admit new workloads",
    "observedGeneration": 2,
    "lastTransitionTime": "2027-01-15T08:00:00Z",
}


class Told:
    """A reporter: what is put."""

    def __init__(self) -> None:
        self.put: list[tuple[str, Json]] = []

    def report_status(self, _: str, path: str, make_body: Callable[[], bytes]) -> None:
        self.put.append((path, msgspec.json.decode(make_body())["status"]))


def write(
    kind: Kind,
    figures: QueueFigures,
    *,
    seen: Any = None,
    is_fair: bool = False,
    problem: str = "",
    remark: str = "",
) -> tuple[QueueStatuses, Told]:
    told = Told()
    reporter: Any = told
    settings = QueueSettings(strategies=STRATEGIES if is_fair else None)
    statuses = QueueStatuses(
        Engine(Config()), reporter, find_kind=lambda _: kind, clock=lambda: NOW, settings=settings
    )
    namespace, name = kinds.split_key(figures.key)
    meta = wire.Meta(name=name, namespace=namespace, uid="u", generation=2, resource_version="1")
    statuses.see(kind.name, meta, seen, problem, remark)
    statuses.write([figures])
    return statuses, told


QUEUE = QueueFigures(
    "ClusterQueue", "q", 12.1, 3, 2, 1, (FlavorUse("plain", "cpu", 6500, 3000, 2500, 0),)
)
STATUS = {
    "conditions": [READY],
    "pendingWorkloads": 3,
    "reservingWorkloads": 2,
    "admittedWorkloads": 1,
    "flavorsReservation": [
        {"name": "plain", "resources": [{"name": "cpu", "total": "6500m", "borrowed": "2500m"}]}
    ],
    "flavorsUsage": [
        {"name": "plain", "resources": [{"name": "cpu", "total": "3", "borrowed": "0"}]}
    ],
}


def test_a_queue_of_the_cluster_has_kueues_status() -> None:
    _, told = write(kinds.CLUSTER_QUEUES, QUEUE, is_fair=True)
    share = {"fairSharing": {"weightedShare": 13}}
    assert told.put == [("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q", STATUS | share)]


LOCAL = QueueFigures("LocalQueue", "a/q", consumed=(("cpu", 0.5), ("nvidia.com/gpu", 1 / 3)))
USAGE = {
    "weightedShare": 0,
    "admissionFairSharingStatus": {
        "consumedResources": {"cpu": "0.500000000", "nvidia.com/gpu": "0.333333333"},
        "lastUpdate": "2027-01-15T08:00:00Z",
    },
}


@pytest.mark.parametrize(
    ("seen", "is_written"),
    [
        (None, True),
        ({"fairSharing": {"weightedShare": 0}}, True),
        ("2027-01-15T07:55:00Z", True),
        ("2027-01-15T07:56:00Z", False),
        ("2027-01-15T08:00:00Z", False),
    ],
)
def test_what_a_local_queue_has_used_is_written_now_and_then(seen: Any, is_written: bool) -> None:
    if isinstance(seen, str):
        usage = {"admissionFairSharingStatus": {"consumedResources": {}, "lastUpdate": seen}}
        seen = {"fairSharing": usage}
    _, told = write(kinds.LOCAL_QUEUES, LOCAL._replace(consumed_at=NOW), seen=seen)
    ((_, status),) = told.put
    assert status.get("fairSharing") == (USAGE if is_written else None)


def test_where_usage_does_not_count_nothing_is_said_of_it() -> None:
    _, told = write(kinds.LOCAL_QUEUES, LOCAL)
    ((_, status),) = told.put
    assert "fairSharing" not in status


def test_what_an_object_says_already_is_not_written_again() -> None:
    seen = STATUS | {"conditions": [READY | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    _, told = write(kinds.CLUSTER_QUEUES, QUEUE, seen=seen)
    assert told.put == []
    # What was written is not seen yet.
    statuses, told = write(kinds.CLUSTER_QUEUES, QUEUE)
    statuses.write([QUEUE])
    assert len(told.put) == 1
    statuses.write([QUEUE._replace(pending=4)])
    assert [status["pendingWorkloads"] for _, status in told.put] == [3, 4]
    # A new leader does not know what others have written since.
    statuses.forget_written()
    statuses.write([QUEUE._replace(pending=4)])
    assert len(told.put) == 3


@pytest.mark.parametrize(
    ("version", "usage"), [("v1beta2", "flavorsUsage"), ("v1beta1", "flavorUsage")]
)
def test_a_queue_of_a_namespace_says_nothing_of_borrowing(version: str, usage: str) -> None:
    kind = dataclasses.replace(kinds.LOCAL_QUEUES, version=version)
    kind = kind if version == "v1beta2" else kinds.LOCAL_QUEUES.list_versions()[-1]
    use = (FlavorUse("plain", "cpu", 1000, 0),)
    stopped = "Stopped", "LocalQueue is stopped"
    _, told = write(kind, QueueFigures("LocalQueue", "a/q", uses=use, inactive=stopped))
    ((path, status),) = told.put
    assert path == f"/apis/kueue.x-k8s.io/{version}/namespaces/a/localqueues/q"
    assert status[usage] == [{"name": "plain", "resources": [{"name": "cpu", "total": "0"}]}]
    assert "fairSharing" not in status
    (active,) = status["conditions"]
    assert (active["status"], active["reason"], active["message"]) == ("False", *stopped)


@pytest.mark.parametrize(("share", "written"), [(0.0, 0), (math.inf, 2**63 - 1)])
def test_a_cohort_has_a_share_where_shares_count(share: float, written: int) -> None:
    figures = QueueFigures("Cohort", "all", share)
    _, told = write(kinds.COHORTS, figures, is_fair=True)
    assert told.put == [
        ("/apis/kueue.x-k8s.io/v1beta2/cohorts/all", {"fairSharing": {"weightedShare": written}})
    ]
    _, told = write(kinds.COHORTS, figures)
    assert told.put == []


def test_a_mistake_is_what_the_condition_says() -> None:
    """The engine may not know the queue at all."""
    _, told = write(kinds.CLUSTER_QUEUES, QueueFigures("ClusterQueue", "q"), problem="spec.x: no")
    (active,) = told.put[0][1]["conditions"]
    assert (active["status"], active["reason"]) == ("False", "Misconfigured")
    assert active["message"] == "Can't admit new workloads: spec.x: no."


def objects() -> list[Json]:
    quota = {"name": "cpu", "nominalQuota": "4"}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "plain", "resources": [quota]}]}
    checks = {"admissionChecks": [{"name": "all"}, {"name": "some", "onFlavors": ["other"]}]}
    container = {"name": "c", "resources": {"requests": {"cpu": "3"}}}
    pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    queue = {
        "cohortName": "mid",
        "namespaceSelector": {},
        "resourceGroups": [group],
        "admissionChecksStrategy": checks,
    }
    return [
        {"kind": "ResourceFlavor", "metadata": {"name": "plain"}},
        {"kind": "Cohort", "metadata": {"name": "mid"}, "spec": {"parentName": "all"}},
        {"kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": queue},
        {"kind": "ClusterQueue", "metadata": {"name": "r"}, "spec": queue | {"stopPolicy": "Hold"}},
        *(
            {
                "kind": "LocalQueue",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"clusterQueue": name},
            }
            for name in ("q", "r", "s")
        ),
        *(
            {
                "kind": "Workload",
                "metadata": {"name": name, "namespace": "default", "uid": name},
                "spec": {"queueName": local, "podSets": [pods]},
            }
            for name, local in (("a", "q"), ("b", "q"), ("c", "q"), ("d", "r"))
        ),
    ]


def live() -> Engine:
    engine = Engine(Config(queues=QueueSettings(kueue=True)))
    engine.handle(events.Seen(make.namespace("default")), NOW)
    checks = [
        {"kind": "AdmissionCheck", "metadata": {"name": name}, "spec": {"controllerName": "ours"}}
        for name in ("all", "some")
    ]
    for body in (*checks, *objects()):
        engine.handle(events.Seen(msgspec.convert(body, kueue.QueueObject)), NOW)
    return engine


def read_figures(engine: Engine) -> dict[tuple[str, str], QueueFigures]:
    steps = engine.ask(StatusesOfQueues())
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return {(one.kind, one.key): one for one in end.value}


def test_the_engine_counts_who_waits_and_what_is_used() -> None:
    engine = live()
    engine.decide(NOW, Unlimited())
    found = read_figures(engine)
    queue = found["ClusterQueue", "q"]
    assert (queue.pending, queue.reserving, queue.admitted) == (1, 2, 0)
    assert queue.uses == (FlavorUse("plain", "cpu", 6000, 0, 2000, 0),)
    local = found["LocalQueue", "default/q"]
    assert (local.pending, local.reserving, local.uses) == (
        1,
        2,
        (FlavorUse("plain", "cpu", 6000, 0),),
    )
    stopped = found["ClusterQueue", "r"]
    assert (stopped.pending, stopped.inactive) == (
        1,
        ("Stopped", "Can't admit new workloads: is stopped."),
    )
    assert found["LocalQueue", "default/r"].inactive[0] == "ClusterQueueIsInactive"
    assert found["LocalQueue", "default/s"].inactive[0] == "ClusterQueueDoesNotExist"
    assert ("Cohort", "mid") in found
    assert engine.ask(QueuePath("default/a")) == "/all/mid/q"
    assert engine.ask(QueuePath("default/none")) == ""
    assert engine.ask(ChecksToPass("q", frozenset({"plain"}))) == ("all",)
    assert engine.ask(ChecksToPass("q", frozenset({"other"}))) == ("all", "some")


def test_beside_another_controller_nothing_is_decided_about_quota() -> None:
    engine = live()
    engine.handle(events.QueuesHeld(is_held=True), NOW)
    assert engine.decide(NOW, Unlimited()).quotas == []
    assert engine.find_due(NOW) > NOW
    engine.handle(events.QueuesHeld(is_held=False), NOW)
    assert engine.find_due(NOW) <= NOW
    assert engine.decide(NOW, Unlimited()).quotas
