"""``evenkeel queue show`` and ``queue why`` of KAI's queues: what holds, what waits, why, and who may go."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.kai_worlds import BUILD, Job, Queue, make_objects
from tests.unit.test_queue_command import EXAMPLE, KAI, ask, queue

Json = dict[str, Any]
QUEUES = {
    "top": Queue(4, parent=""),
    "a": Queue(1, limit=3, parent="top", reclaim="1h"),
    "b": Queue(3, parent="top"),
}
JOBS = {
    "old": Job("a", on=["n1"], age=90, ran=90),
    "gang": Job("a", n=2, least=1, on=["n1", "n1"], age=50, ran=5),
    "first": Job("b", n=2, age=40),
    "urgent": Job("b", gpus=2, priority=BUILD, age=1),
    "more": Job("a"),
    "lost": Job("none"),
}


def world(**jobs: Job) -> list[Json]:
    return make_objects({"n1": 4}, QUEUES, {**JOBS, **jobs})


def test_a_queue_is_shown_with_what_holds_and_what_waits_in_its_order() -> None:
    found = ask("show", "a", objects=world())
    assert (found["kaiQueue"]["name"], found["path"], found["children"]) == ("a", ["top"], [])
    assert [(one["name"], one["kind"], one["pods"]) for one in found["holders"]] == [
        ("old", "Pod", 1),
        ("gang", "PodGroup", 2),
    ]
    assert found["holders"][1]["amounts"] == [
        {"resource": "cpu", "amount": "2"},
        {"resource": "memory", "amount": "2M"},
        {"resource": "gpu", "amount": "2"},
    ]
    (waiter,) = found["waiters"]
    assert (waiter["name"], waiter["position"], waiter["reason"]) == ("more", 0, "OverLimit")
    assert "queue a is limited to 3 of gpu: 3 are held, and 1 more are wanted" in waiter["message"]
    found = ask("show", "b", objects=world())
    assert [one["name"] for one in found["waiters"]] == ["urgent", "first"]
    assert [one["preemptible"] for one in found["waiters"]] == [False, True]
    found = ask("show", "b", "--most", "1", objects=world())
    assert (len(found["waiters"]), found["notShown"]) == (1, 1)
    assert ask("show", "top", objects=world())["children"] == ["a", "b"]


def test_it_is_explained_why_a_pod_waits_and_who_may_go_for_it() -> None:
    found = ask("why", "default/first", objects=world())
    assert (found["kind"], found["state"], found["pods"]) == ("PodGroup", "waits", 2)
    assert (found["position"], found["ofWaiting"], found["ahead"]) == (1, 2, ["default/urgent"])
    assert [one["name"] for one in found["queues"]] == ["b", "top"]
    # The extra pod of the gang may go at once; its minimum is protected for an hour from its start on.
    assert [(one["pods"], one["queue"], one["by"]) for one in found["givers"]] == [
        (["default/gang-1"], "a", "reclaim"),
        (["default/old"], "a", "reclaim"),
    ]
    assert found["protectedUntil"] == "2027-01-15T08:55:00Z"
    assert found["limits"] == ["queue b has no preemptible pods of lower priority that may go"]


@pytest.mark.parametrize("name", ["default/first-1", "first-1"])
def test_a_pod_of_a_group_is_answered_by_its_group(name: str) -> None:
    found = ask("why", name, objects=world())
    assert found == ask("why", "default/first", objects=world())
    assert "PodGroup default/first waits" in queue("why", name, objects=world())


def test_of_a_group_that_runs_in_part_each_pod_is_answered_for_itself() -> None:
    gang = Job("a", n=3, least=1, on=["n1", "n1"], age=50, ran=5)
    states = [ask("why", f"gang-{i}", objects=world(gang=gang))["state"] for i in range(3)]
    assert states == ["holds", "holds", "held"]
    # A pod that there is not, or whose group is in another namespace.
    assert "similar: " in queue("why", "default/gang-3", objects=world(gang=gang), code=2)
    queue("why", "other/gang-0", objects=world(gang=gang), code=2)


def test_small_and_large_amounts_are_plain_numbers() -> None:
    labels = {"runai-gpu-group": "g"}
    jobs = {
        "tiny": Job("a", gpus=0, on=["n1"], notes={"gpu-fraction": "0.000001"}, labels=labels),
        "holder": Job("", on=["n1"], labels=labels, namespace="kai-resource-reservation"),
        "x": Job("a", gpus=123_456_789),
    }
    objects = make_objects({"n1": 8}, {"a": Queue(1, limit=1)}, jobs)
    found = ask("why", "x", objects=objects)
    assert found["message"].endswith("0.000001 are held, and 123456789 more are wanted")
    (row,) = found["queues"]
    uses = row["uses"][2]
    assert (uses["held"], uses["requested"]) == ("0.000001", "123456789.000001")


def test_it_is_said_by_which_rules_nobody_goes() -> None:
    found = ask("why", "more", objects=world())
    assert (found["state"], found["reason"], found["givers"]) == ("held", "OverLimit", [])
    assert found["limits"] == [
        "no other queue loses pods to it: queue a would hold 4 of gpu, and its fair share is 1",
        "queue a has no preemptible pods of lower priority that may go",
    ]
    preempts = ask("why", "more", objects=world(more=Job("a", priority=BUILD, stays=False)))
    assert {one["by"] for one in preempts["givers"]} == {"preempt"}
    found = ask("why", "default/lost", objects=world())
    assert (found["state"], found["reason"]) == ("held", "QueueDoesNotExist")
    assert (found["queues"], found["limits"]) == ([], [])
    share = Job("b", gpus=0, notes={"gpu-fraction": "0.5"})
    found = ask("why", "default/share", objects=world(share=share))
    assert found["reason"] == "SchedulerError"
    assert found["message"].startswith("metadata.annotations[gpu-fraction]: ")
    gang = ask("why", "default/gang", objects=world(gang=Job("b", n=1, least=2)))
    assert (gang["state"], gang["reason"]) == ("held", "Completeness")
    held = ask("why", "default/old", objects=world())
    assert (held["state"], held["position"], held["givers"]) == ("holds", None, [])


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (("show", "a"), ("KAI queue a", "below top", "default/gang  PodGroup", "#1: OverLimit")),
        (("show", "top"), ("below no other queue", "queues within: a, b")),
        (
            ("why", "default/first"),
            (
                "PodGroup default/first waits; its queue has room for it",
                "2 pods want 2 cpu, 2M memory, 2 gpu",
                "position 2 of 2",
                "before it: default/urgent",
                "default/gang-1 of a (priority 50, reclaim)",
                "more may go from 2027-01-15T08:55:00Z on",
                "`evenkeel explain group default/first` says whether nodes have room",
            ),
        ),
        (("why", "default/more"), ("may not be tried", "OverLimit", "Who does not go")),
        (("why", "default/old"), ("Pod default/old holds its place", "1 pod holds 1 cpu")),
    ],
)
def test_people_read_it(arguments: tuple[str, ...], texts: tuple[str, ...]) -> None:
    found = queue(*arguments, objects=world())
    for text in texts:
        assert text in found


def test_a_queue_without_pods_says_so() -> None:
    found = queue("show", "empty", objects=make_objects({"n1": 1}, {"empty": Queue(1)}, {}))
    assert "nothing holds anything in it, and nothing waits" in found


def test_queues_of_both_systems_are_told_apart() -> None:
    both = [*EXAMPLE, *KAI]
    assert ask("show", "vision", objects=both)["queue"]["kind"] == "ClusterQueue"
    assert ask("show", "kai/vision", objects=both)["kaiQueue"]["name"] == "vision"
    assert "similar: vision" in queue("show", "visoin", objects=KAI, code=2)
    assert "similar: vision/depth" in queue("why", "vision/depht", objects=KAI, code=2)
    # A Workload comes before a pod of the same name.
    assert "localQueue" in ask("why", "vision/depth", objects=both)
