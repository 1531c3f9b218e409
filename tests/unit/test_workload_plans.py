"""What the controllers of workloads want done: names, numbers and order, without a cluster."""

import re
from typing import Any

import pytest

from scheduler.embedded.agents.workloads import (
    deployments,
    jobs,
    naming,
    plans,
    replicasets,
    statefulsets,
)

Json = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"
# No vowels and no look-alikes: kube-controller-manager's alphabet.
SAFE = "[bcdfghjklmnpqrstvwxz2456789]"


def template(image: str = "i:1") -> Json:
    return {
        "metadata": {"labels": {"app": "w"}},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }


def owner(name: str = "w", *, image: str = "i:1", status: Json | None = None, **spec: Any) -> Json:
    meta = {"name": name, "namespace": "team", "uid": f"uid-{name}", "generation": 3}
    selector = {"matchLabels": {"app": "w"}}
    return {
        "metadata": meta,
        "spec": {"selector": selector, "template": template(image), **spec},
        "status": status or {},
    }


def pod(name: str, *, node: str = "n", phase: str = "Running", ready: bool = True, age: int = 0, **meta: Any) -> Json:  # fmt: skip
    state = "True" if ready else "False"
    return {
        "metadata": {"name": name, "uid": name, "creationTimestamp": f"2026-01-01T00:00:{59 - age:02}Z", **meta},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": state}]},
    }  # fmt: skip


def named(items: Any) -> list[str]:
    return [item["metadata"]["name"] for item in items]


def test_a_hash_is_of_the_template_alone_and_in_the_safe_alphabet() -> None:
    first = naming.hash_template(template())
    assert re.fullmatch(f"{SAFE}{{1,10}}", first)
    assert naming.hash_template(dict(reversed(template().items()))) == first
    assert naming.hash_template(template("i:2")) != first


def test_a_replica_set_is_named_after_its_deployment_and_template() -> None:
    plan = deployments.make_plan(owner(replicas=2), [], NOW)
    (made,) = plan.create
    digest = naming.hash_template(template())
    assert made["metadata"]["name"] == f"w-{digest}"
    assert made["spec"]["selector"]["matchLabels"] == {"app": "w", "pod-template-hash": digest}
    assert made["spec"]["template"]["metadata"]["labels"] == {
        "app": "w",
        "pod-template-hash": digest,
    }
    assert made["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "w",
            "uid": "uid-w",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def test_a_paused_deployment_keeps_its_template() -> None:
    (old,) = deployments.make_plan(owner(replicas=2), [], NOW).create
    old["metadata"]["uid"] = "old"
    old["spec"]["replicas"] = 2
    plan = deployments.make_plan(owner(replicas=3, image="i:2", paused=True), [old], NOW)
    assert list(plan.create) == []
    assert [change["spec"] for _, change in plan.merge] == [{"replicas": 3}]


def test_the_pods_of_another_template_go_before_new_ones_come() -> None:
    (old,) = deployments.make_plan(owner(replicas=2), [], NOW).create
    old["metadata"]["uid"] = "old"
    old["spec"]["replicas"], old["status"] = 2, {"replicas": 2}
    (new,) = deployments.make_plan(owner(replicas=2, image="i:2"), [old], NOW).create
    new["metadata"]["uid"] = "new"
    plan = deployments.make_plan(owner(replicas=2, image="i:2"), [old, new], NOW)
    assert [(one["metadata"]["uid"], change) for one, change in plan.merge] == [("old", {"spec": {"replicas": 0}})]  # fmt: skip
    emptied = {**old, "spec": {**old["spec"], "replicas": 0}, "status": {"replicas": 0}}
    plan = deployments.make_plan(owner(replicas=2, image="i:2"), [emptied, new], NOW)
    assert [(one["metadata"]["uid"], change) for one, change in plan.merge] == [("new", {"spec": {"replicas": 2}})]  # fmt: skip


def test_empty_replica_sets_beyond_the_history_go() -> None:
    owned: list[Json] = []
    for number in range(5):
        (made,) = deployments.make_plan(owner(image=f"i:{number}"), owned, NOW).create
        made["metadata"]["uid"] = f"uid-{number}"
        owned.append(made)
    plan = deployments.make_plan(owner(image="i:4", revisionHistoryLimit=2), owned, NOW)
    assert [one["metadata"]["uid"] for one in plan.delete] == ["uid-0", "uid-1"]


def test_the_pods_that_matter_least_go_first() -> None:
    pods = [
        pod("old", age=30),
        pod("young"),
        pod("starting", phase="Pending", ready=False),
        pod("unready", ready=False),
        pod("nowhere", node="", phase="Pending", ready=False),
    ]
    assert named(plans.sort_by_deletion(pods)) == ["nowhere", "starting", "unready", "young", "old"]
    plan = replicasets.make_plan(owner(replicas=2), pods, NOW)
    assert named(plan.delete) == ["nowhere", "starting", "unready"]


def test_pods_that_ended_or_go_are_replaced() -> None:
    going = pod("going", deletionTimestamp=NOW)
    plan = replicasets.make_plan(
        owner(replicas=2), [pod("a"), pod("b", phase="Failed"), going], NOW
    )
    assert named(plan.delete) == ["b"]
    (made,) = plan.create
    assert made["metadata"]["generateName"] == "w-"
    assert (plan.status["replicas"], plan.status["readyReplicas"]) == (1, 1)


@pytest.mark.parametrize("plan_of", [replicasets.make_plan, statefulsets.make_plan])
def test_more_than_a_bound_is_not_made(plan_of: Any) -> None:
    asked = owner(replicas=1_000_000_000, podManagementPolicy="Parallel")
    plan = plan_of(asked, [], NOW)
    assert len(plan.create) == plans.MOST_PODS
    (note,) = plan.notes
    assert (note.reason, note.type) == ("FailedCreate", "Warning")
    assert f"requests 1000000000 pods; this cluster makes at most {plans.MOST_PODS}" in note.message
    assert [one["type"] for one in plan.status["conditions"]] == ["ReplicaFailure"]


def test_an_absurd_job_is_bounded_too() -> None:
    modes: tuple[Json, ...] = ({}, {"completionMode": "Indexed"})
    for more in modes:
        spec: Json = {"parallelism": 2_000_000_000, "completions": 2_000_000_000, **more}
        plan = jobs.make_plan(owner(**spec), [], NOW, jobs.Ended())
        assert len(plan.create) == plans.MOST_PODS
        assert plan.notes[0].reason == "FailedCreate"


def test_numbered_pods_come_one_after_another_and_from_where_they_start() -> None:
    asked = owner(replicas=3, ordinals={"start": 5}, serviceName="s")
    (first,) = statefulsets.make_plan(asked, [], NOW).create
    assert first["metadata"]["name"] == "w-5"
    assert first["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "5"
    assert (first["spec"]["hostname"], first["spec"]["subdomain"]) == ("w-5", "s")
    waiting = pod("w-5", ready=False)
    assert statefulsets.make_plan(asked, [waiting], NOW).create == []
    assert named(statefulsets.make_plan(asked, [pod("w-5")], NOW).create) == ["w-6"]
    at_once = owner(replicas=3, podManagementPolicy="Parallel")
    assert named(statefulsets.make_plan(at_once, [], NOW).create) == ["w-0", "w-1", "w-2"]


def test_numbered_pods_go_from_above_one_at_a_time() -> None:
    digest = f"w-{naming.hash_template(template())}"
    pods = [pod(f"w-{n}", labels={"controller-revision-hash": digest}) for n in range(4)]
    assert named(statefulsets.make_plan(owner(replicas=2), pods, NOW).delete) == ["w-3"]
    pods[3]["metadata"]["deletionTimestamp"] = NOW
    assert statefulsets.make_plan(owner(replicas=2), pods, NOW).delete == []


def test_an_outdated_pod_waits_until_all_others_are_ready() -> None:
    pods = [pod("w-0"), pod("w-1")]
    assert named(statefulsets.make_plan(owner(replicas=2), pods, NOW).delete) == ["w-1"]
    pods = [pod("w-0", ready=False), pod("w-1")]
    assert statefulsets.make_plan(owner(replicas=2), pods, NOW).delete == []
    on_delete = owner(replicas=2, updateStrategy={"type": "OnDelete"})
    assert statefulsets.make_plan(on_delete, [pod("w-0"), pod("w-1")], NOW).delete == []


def test_a_job_counts_pods_that_are_gone_by_now() -> None:
    ended, asked = jobs.Ended(), owner(parallelism=2, completions=3)
    jobs.make_plan(asked, [pod("a", phase="Succeeded"), pod("b", phase="Succeeded")], NOW, ended)
    plan = jobs.make_plan(asked, [], NOW, ended)
    assert (len(plan.create), plan.status["succeeded"]) == (1, 2)
    done = jobs.make_plan(asked, [pod("c", phase="Succeeded")], NOW, ended)
    assert [one["type"] for one in done.status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert list(done.create) == []
    again = jobs.make_plan(owner(parallelism=2, completions=3, status=done.status), [], NOW, ended)
    assert (again.status, list(again.notes)) == (done.status, [])


def test_a_job_gives_up_after_its_limit_and_ends_its_other_pods() -> None:
    asked, ended = owner(parallelism=2, completions=2, backoffLimit=1), jobs.Ended()
    failed = [pod("a", phase="Failed"), pod("b", phase="Failed")]
    plan = jobs.make_plan(asked, [*failed, pod("c")], NOW, ended)
    assert [one["type"] for one in plan.status["conditions"]] == ["FailureTarget", "Failed"]
    assert (named(plan.delete), list(plan.create)) == (["c"], [])
    assert plan.status["active"] == 0


def test_a_suspended_job_has_no_pods() -> None:
    plan = jobs.make_plan(owner(suspend=True, completions=1), [pod("a")], NOW, jobs.Ended())
    assert (named(plan.delete), list(plan.create)) == (["a"], [])
    assert [one["type"] for one in plan.status["conditions"]] == ["Suspended"]


def test_a_job_without_a_number_ends_when_its_last_pod_does() -> None:
    asked, ended = owner(parallelism=2), jobs.Ended()
    assert len(jobs.make_plan(asked, [], NOW, ended).create) == 2
    first = jobs.make_plan(asked, [pod("a", phase="Succeeded"), pod("b")], NOW, ended)
    # The other runs on, and none comes in the place of the first.
    assert (list(first.create), list(first.delete), first.status["active"]) == ([], [], 1)
    last = jobs.make_plan(asked, [pod("b", phase="Succeeded")], NOW, ended)
    assert last.status["conditions"][-1]["type"] == "Complete"


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([3], "3"), ([0, 1, 2], "0-2"), ([5, 1, 3, 4], "1,3-5")]
)
def test_numbers_are_written_as_intervals(numbers: list[int], text: str) -> None:
    assert jobs.join_intervals(numbers) == text


def test_a_condition_keeps_the_time_at_which_it_changed() -> None:
    said = plans.Said("Available", status=True, reason="r", message="m")
    (first,) = plans.make_conditions({}, [said], NOW)
    (second,) = plans.make_conditions({"conditions": [first]}, [said], "2026-02-02T00:00:00Z")
    assert second["lastTransitionTime"] == NOW
    (third,) = plans.make_conditions(
        {"conditions": [first]}, [said._replace(status=False)], "later"
    )
    assert third["lastTransitionTime"] == "later"
