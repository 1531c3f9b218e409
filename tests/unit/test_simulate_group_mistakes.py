"""Mistakes in the words of groups are mistakes of the objects that have them, like any others."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from scheduler import cli
from scheduler.api import names
from scheduler.documents import writing
from scheduler.simulate.reading.inventory import InputProblem
from scheduler.simulate.run import schedule
from tests.prose import unwrapped
from tests.unit.test_simulate_owners import ONE, TEMPLATE, Json, leader_worker_set, owner, ray_job
from tests.unit.test_simulate_what_if import node, pod

GANG_FIELD = f"metadata.annotations[{names.GANG}]"
NOT_ALLOWED = f"'yes' is neither \"{names.GANG_ALL}\" nor a number of pods from 1"
KOORDINATOR = "gang.scheduling.koordinator.sh/"


def ask(body: Json, text: str = "yes") -> Json:
    return body | {"metadata": body["metadata"] | {"annotations": {names.GANG: text}}}


def job(template: Json = TEMPLATE) -> Json:
    return owner("batch/v1", "Job", {"parallelism": 2, "completions": 2, "template": template})


def cron_job(text: str) -> Json:
    of_job = {"metadata": {"annotations": {names.GANG: text}}, "spec": job()["spec"]}
    return owner("batch/v1", "CronJob", {"schedule": "0 3 * * *", "jobTemplate": of_job})


def pod_group(api: str, **spec: Any) -> Json:
    return owner(api, "PodGroup", spec)


def find_mistakes(*objects: Json) -> list[tuple[str, str, str]]:
    found = schedule([node("a"), *objects])
    return [(one["object"], one["field"], one["problem"]) for one in found["mistakes"]]


@pytest.mark.parametrize(
    ("body", "name", "field", "problem"),
    [
        (ask(job()), "Job default/o", GANG_FIELD, NOT_ALLOWED),
        (cron_job("yes"), "CronJob default/o", f"spec.jobTemplate.{GANG_FIELD}", NOT_ALLOWED),
        (ask(ray_job()), "RayJob default/o", GANG_FIELD, NOT_ALLOWED),
        (job(ask(TEMPLATE)), "Job default/o", f"spec.template.{GANG_FIELD}", NOT_ALLOWED),
        (
            ask(leader_worker_set(startupPolicy="LeaderReady"), "all"),
            "LeaderWorkerSet default/o",
            "spec.startupPolicy",
            "LeaderReady makes the workers only when the leader runs, so they cannot be a group; write LeaderCreated",
        ),
        (
            ask(owner("apps/v1", "StatefulSet", {"replicas": 2, **ONE}), "all"),
            "StatefulSet default/o",
            "spec.podManagementPolicy",
            "makes one pod after the other, so they cannot be a group; write Parallel",
        ),
        (
            pod_group("scheduling.run.ai/v2alpha2", minMember=-1),
            "PodGroup default/o",
            "spec.minMember",
            "-1 is not an integer within 0..2147483647",
        ),
        (
            pod("k", annotations={f"{KOORDINATOR}name": "g", f"{KOORDINATOR}min-available": "x"}),
            "Pod default/k",
            f"metadata.annotations[{KOORDINATOR}min-available]",
            "'x' is not an integer within 1..2147483647",
        ),
        (
            pod("k", annotations={f"{KOORDINATOR}name": "g", names.KAI_GROUP: "h"}),
            "Pod default/k",
            "metadata",
            "the pod names Coscheduling group 'g' and KAI group 'h'; it can be in one group only",
        ),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)  # fmt: skip
def test_a_mistake_is_named_with_the_object_that_has_it(
    body: Json, name: str, field: str, problem: str
) -> None:
    assert (name, field, problem) in find_mistakes(body)
    result = CliRunner().invoke(
        cli.app, ["simulate", "-f", "-"], input=writing.dump_all([node("a"), body])
    )
    assert result.exit_code == 3, result.output
    assert f"{name}: {field}: {problem}" in unwrapped(result.stderr)
    with pytest.raises(InputProblem, match=name):
        schedule([node("a"), body], strict=True)


def test_a_mistake_that_several_pods_make_together_is_named_with_one_of_them() -> None:
    note = {f"{KOORDINATOR}name": "g", f"{KOORDINATOR}min-available": "2"}
    pods = [pod(name, annotations=note, priority=i) for i, name in enumerate("ab")]
    [(name, field, problem)] = find_mistakes(*pods)
    assert (name[:12], field) == ("Pod default/", "")
    assert "all pods in a single pod group should have the same priority" in problem


def test_a_topology_that_cannot_be_read_is_a_mistake() -> None:
    wrong = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": 5}}  # fmt: skip
    [(name, field, _)] = find_mistakes(wrong)
    assert (name, field) == ("Topology t", "spec.levels")


@pytest.mark.parametrize(
    "make", [lambda: leader_worker_set(startupPolicy="LeaderReady"), lambda: owner("apps/v1", "StatefulSet", ONE)]
)  # fmt: skip
def test_what_could_be_no_group_is_no_mistake_if_nobody_asks_for_one(
    make: Callable[[], Json],
) -> None:
    assert find_mistakes(make()) == []


def test_the_pods_of_a_group_with_a_mistake_are_held() -> None:
    body = pod_group("scheduling.run.ai/v2alpha2", minMember=-1)
    found = schedule([node("a"), body, pod("k", annotations={names.KAI_GROUP: "o"})])
    assert [one["node"] for one in found["pods"]] == [None]
    assert [one["object"] for one in found["mistakes"]] == ["PodGroup default/o"]
    assert [one["state"] for one in found["groups"]] == ["held"]


def test_a_run_of_a_cron_job_is_a_group_as_the_same_job_is() -> None:
    """The node has room for one of two pods, so neither gets it."""
    small = node("a", pods=1)
    for body in (ask(job(), "all"), cron_job("all")):
        found = schedule([small, body])
        assert [one["node"] for one in found["pods"]] == [None, None]
        assert [(one["minimum"], one["state"]) for one in found["groups"]] == [(2, "waits")]
    assert find_mistakes(cron_job("2")) == []


def test_ones_own_pods_of_one_group_that_name_several_schedulers_are_a_mistake(
    tmp_path: Path,
) -> None:
    """Alone, each of them would be placed, as the question is about one's own pods."""
    notes = {f"{KOORDINATOR}name": "g", f"{KOORDINATOR}min-available": "2"}
    mine = [pod("p", annotations=notes), pod("q", annotations=notes), pod("alone")]
    for one in mine[1:]:
        one["spec"]["schedulerName"] = "volcano"
    dump = [node("a"), pod("runs", node="a")]
    files = []
    for name, objects in (("dump", dump), ("mine", mine)):
        path = tmp_path / f"{name}.yaml"
        path.write_text(writing.dump_all(objects))
        files += ["-f", str(path)]
    result = CliRunner().invoke(cli.app, ["simulate", "--only-ours", "-o", "json", *files])
    found = json.loads(result.stdout)
    assert result.exit_code == 3
    assert {one["name"]: one["node"] for one in found["pods"]} == {"p": None, "q": None, "alone": "a"}  # fmt: skip
    (mistake,) = found["mistakes"]
    assert "the same .spec.schedulerName set" in mistake["problem"]
