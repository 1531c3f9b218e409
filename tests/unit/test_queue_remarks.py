"""What in a queue means nothing is told, and what cannot be is refused; the rest of the queue is in force."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scheduler.api import kinds, kueue
from scheduler.api.queues import reading
from scheduler.api.queues.remarks import list_remarks
from scheduler.api.wire import GuardedMeta, Meta
from scheduler.engine.questions.queues import QueueFigures
from scheduler.errors import BadInput
from tests.unit.test_queue_command import FLAVOR, ask, queue
from tests.unit.test_queue_statuses import READY, write
from tests.unit.test_simulate_queued import NODES
from tests.unit.test_simulate_what_if import answer

Json = dict[str, Any]


def make_group(flavor: str, resource: str = "cpu", **limits: str) -> Json:
    quota = {"name": resource, "nominalQuota": "5", **limits}
    return {"coveredResources": [resource], "flavors": [{"name": flavor, "resources": [quota]}]}


def make(*groups: Json, **more: Any) -> kueue.ClusterQueue:
    spec = {"resourceGroups": list(groups), **more}
    return kueue.ClusterQueue(metadata=GuardedMeta(name="q"), spec=spec)


NEVER = {"reclaimWithinCohort": "Never", "borrowWithinCohort": {"policy": "LowerPriority"}}


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (make(make_group("f")), []),
        (make(make_group("f", borrowingLimit="3", lendingLimit="5"), cohort="c"), []),
        (
            make(make_group("f", borrowingLimit="3", lendingLimit="5")),
            [
                "spec.resourceGroups[0]: borrowingLimit has no effect: the queue is in no cohort",
                "spec.resourceGroups[0]: lendingLimit has no effect: the queue is in no cohort",
            ],
        ),
        (
            make(make_group("f", lendingLimit="6"), cohortName="c"),
            ["spec.resourceGroups[0]: lendingLimit has no effect: it is above nominalQuota"],
        ),
        (
            make(make_group("f"), make_group("g"), make_group("f", "memory")),
            [
                "spec.resourceGroups[1]: resource cpu is in another resource group, too; Kueue refuses that",
                "spec.resourceGroups[2]: flavor f is in another resource group, too; Kueue refuses that",
            ],
        ),
        (
            make(make_group("f"), cohortName="c", preemption=NEVER),
            [
                "spec.preemption: borrowWithinCohort has no effect while reclaimWithinCohort is Never"
            ],
        ),
    ],
)
def test_what_means_nothing_in_a_queue_is_told(found: kueue.ClusterQueue, told: list[str]) -> None:
    assert list(list_remarks(reading.read_queue(found))) == told


def test_a_cohort_may_lend_what_is_below_it_but_to_somebody() -> None:
    spec = {"resourceGroups": [make_group("f", lendingLimit="9")]}
    below = kueue.Cohort(metadata=Meta(name="c"), spec={**spec, "parentName": "root"})
    assert list(list_remarks(reading.read_cohort(below))) == []
    root = kueue.Cohort(metadata=Meta(name="c"), spec=spec)
    told = "spec.resourceGroups[0]: lendingLimit has no effect: the cohort has no parent"
    assert list(list_remarks(reading.read_cohort(root))) == [told]


def test_two_quotas_of_the_same_resource_in_the_same_flavor_are_refused() -> None:
    with pytest.raises(
        BadInput,
        match=r"resourceGroups\[1\]\.flavors\[0\].*cpu has two quotas in flavor f; one is allowed",
    ):
        reading.read_queue(make(make_group("f"), make_group("f")))


def test_a_flavor_with_a_topology_needs_labels_in_kueue() -> None:
    """Its schema refuses it in a cluster; where files are read, there is no schema."""
    spec: Json = {"topologyName": "racks"}
    body = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "gpus"},
        "spec": spec,
    }
    (told,) = list_remarks(reading.read_flavor(msgspec.convert(body, kueue.ResourceFlavor)))
    assert told.startswith("spec.topologyName: Kueue refuses a topology without nodeLabels;")
    assert f"ResourceFlavor gpus: {told}" in answer(objects=[*NODES, body])["warnings"]
    spec["nodeLabels"] = {"pool": "gpu"}
    assert not list(list_remarks(reading.read_flavor(msgspec.convert(body, kueue.ResourceFlavor))))


def test_the_condition_of_a_queue_says_what_means_nothing() -> None:
    figures = QueueFigures("ClusterQueue", "q")
    _, told = write(kinds.CLUSTER_QUEUES, figures, remark="a limit means nothing")
    (_, status) = told.put[0]
    said = "Can admit new workloads; a limit means nothing"
    assert status["conditions"] == [{**READY, "message": said}]


def test_commands_tell_what_means_nothing() -> None:
    body = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "q"},
        "spec": {"resourceGroups": [make_group("gpus", borrowingLimit="3")]},
    }
    said = "spec.resourceGroups[0]: borrowingLimit has no effect: the queue is in no cohort"
    objects = [FLAVOR, body]
    for what in (("list",), ("tree",), ("show", "q")):
        assert f"q: {said}" in " ".join(queue(*what, objects=objects).split())
    assert ask("list", objects=objects)["queues"][0]["remarks"] == [said]
    found = answer(objects=[*NODES, *objects])
    assert f"ClusterQueue q: {said}" in found["warnings"]
