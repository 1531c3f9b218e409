"""Other queues than those of the baseline: who gains and who loses."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from scheduler import cli
from scheduler.documents import writing
from scheduler.simulate.changes import quotas
from tests.docs import examples
from tests.unit.test_queues_places import make_node

Json = dict[str, Any]
NODE = make_node("n", "r", 0)
TEAMS = examples.read("queues.yaml")
NEVER = {"reclaimWithinCohort": "Never"}


def find_queue(name: str) -> Json:
    (found,) = [
        one for one in TEAMS if one["kind"] == "ClusterQueue" and one["metadata"]["name"] == name
    ]
    return copy.deepcopy(found)


def set_quota(queue: Json, **quota: Any) -> Json:
    queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0] |= quota
    return queue


def simulate(tmp_path: Path, baseline: list[Json], own: list[Json], output: str = "json") -> str:
    files = {"baseline.yaml": [NODE, *baseline], "own.yaml": own}
    for name, objects in files.items():
        (tmp_path / name).write_text(writing.dump_all(objects), encoding="utf-8")
    given = ["--baseline", str(tmp_path / "baseline.yaml"), "-f", str(tmp_path / "own.yaml")]
    done = CliRunner().invoke(cli.app, ["simulate", *given, "-o", output])
    assert done.exit_code == 0, done.output
    return done.stdout


def find_changes(tmp_path: Path, baseline: list[Json], own: list[Json]) -> Json:
    found: Json = json.loads(simulate(tmp_path, baseline, own))["queueChanges"]
    return found


def replace_queue(queue: Json) -> list[Json]:
    key = queue["kind"], queue["metadata"]["name"]
    return [queue if (one["kind"], one["metadata"]["name"]) == key else one for one in TEAMS]


def test_who_may_take_quota_back_gains_it_and_who_has_borrowed_it_loses_it(tmp_path: Path) -> None:
    patient = find_queue("speech")
    patient["spec"]["preemption"] = NEVER
    found = find_changes(tmp_path, replace_queue(patient), [find_queue("speech")])
    gains, loses = sorted(found["workloads"], key=lambda one: one["change"])
    assert (gains["name"], gains["change"], gains["by"]) == ("translate", "gains", None)
    assert gains["after"]["uses"] == [
        {"flavor": "h100", "resource": "nvidia.com/gpu", "amount": "4"}
    ]
    assert (loses["name"], loses["change"], loses["by"]) == ("detect", "loses", "speech/translate")
    assert loses["reason"] == "InCohortReclamation"
    uses = {
        one["name"]: [one[when]["uses"][0]["used"] for when in ("before", "after")]
        for one in found["queues"]
    }
    assert uses == {"speech": ["4", "8"], "vision": ["12", "8"]}


def test_a_change_of_nodes_is_there_before_and_after(tmp_path: Path) -> None:
    more = {"new.yaml": [make_node("new", "r")], "b.yaml": [NODE, *TEAMS], "o.yaml": [find_queue("speech")]}  # fmt: skip
    for name, objects in more.items():
        (tmp_path / name).write_text(writing.dump_all(objects), encoding="utf-8")
    given = ["--baseline", str(tmp_path / "b.yaml"), "-f", str(tmp_path / "o.yaml")]
    given += ["--add-node", str(tmp_path / "new.yaml"), "--without-node", "n", "-o", "json"]
    done = CliRunner().invoke(cli.app, ["simulate", *given])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["queueChanges"] == {"by": "files", "queues": [], "workloads": []}
    assert found["summary"]["nodes"] == 1


def test_a_new_team_has_nothing_before(tmp_path: Path) -> None:
    base = examples.read("nodes.yaml") + examples.read("queued-jobs.yaml")
    found = find_changes(tmp_path, base, examples.read("other-quotas.yaml"))
    assert {one["job"]["name"]: one["change"] for one in found["workloads"]} == {
        "grasp": "gains", "detect": "gains", "segment": "loses",
    }  # fmt: skip
    robots = next(one for one in found["queues"] if one["name"] == "robots")
    assert robots["before"] is None
    assert robots["after"]["holding"] == 1


def test_a_queue_that_stays_as_it_is_changes_nothing(tmp_path: Path) -> None:
    own = [find_queue("speech")]
    assert find_changes(tmp_path, TEAMS, own) == {"by": "files", "queues": [], "workloads": []}
    said = "The queues of your files change nothing: every queue and every workload has what it had"
    assert said in " ".join(simulate(tmp_path, TEAMS, own, "table").split())
    assert said in simulate(tmp_path, TEAMS, own, "markdown")


@pytest.mark.parametrize("output", ["json", "table"])
def test_a_change_without_other_queues_says_who_gains_and_who_loses(
    tmp_path: Path, output: str
) -> None:
    """A job of six GPUs that becomes one of two leaves room for the one behind it."""
    base = tmp_path / "base.yaml"
    objects = examples.read("nodes.yaml") + examples.read("queued-jobs.yaml")
    base.write_text(writing.dump_all(objects), encoding="utf-8")
    given = ["--baseline", str(base), "--scale", "vision/job/segment=1", "-o", output]
    done = CliRunner().invoke(cli.app, ["simulate", *given])
    assert done.exit_code == 0, done.output
    if output == "table":
        assert (
            "By your changes: 1 workload gains quota, 1 workload has another amount" in done.stdout
        )
        return
    found = json.loads(done.stdout)["queueChanges"]
    assert found["by"] == "changes"
    changed = {one["job"]["name"]: one for one in found["workloads"]}
    assert {name: one["change"] for name, one in changed.items()} == {
        "detect": "gains",
        "segment": "changes",
    }
    (before,), (after,) = (changed["segment"][one]["uses"] for one in ("before", "after"))
    assert (before["amount"], after["amount"]) == ("6", "2")


def test_a_change_that_concerns_no_queue_changes_nothing(tmp_path: Path) -> None:
    base = tmp_path / "base.yaml"
    base.write_text(writing.dump_all([NODE, *TEAMS]), encoding="utf-8")
    given = ["--baseline", str(base), "--cordon", "n"]
    done = CliRunner().invoke(cli.app, ["simulate", *given])
    said = (
        "Your changes change nothing in the queues: every queue and every workload has what it had"
    )
    assert said in " ".join(done.stdout.split())


def test_without_queues_of_ones_own_nothing_is_compared(tmp_path: Path) -> None:
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main"}]},
    }  # fmt: skip
    assert find_changes(tmp_path, TEAMS, [pod]) is None
    assert "queues of your files" not in simulate(tmp_path, TEAMS, [pod], "table")


def test_without_queues_of_the_baseline_nothing_is_compared(tmp_path: Path) -> None:
    assert find_changes(tmp_path, [], TEAMS) is None


def test_a_weight_alone_is_a_change_of_its_queue(tmp_path: Path) -> None:
    heavy = find_queue("vision")
    heavy["spec"]["fairSharing"] = {"weight": "2"}
    found = find_changes(tmp_path, TEAMS, [heavy])
    (row,) = found["queues"]
    assert [row[when]["weight"] for when in ("before", "after")] == [1, 2]
    assert not found["workloads"]


def test_the_text_and_the_comment_name_both(tmp_path: Path) -> None:
    own = [set_quota(find_queue("speech"), nominalQuota=4)]
    text = simulate(tmp_path, TEAMS, own, "table")
    lines = [line.split("  ") for line in text.splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert ["speech", "h100", "nvidia.com/gpu", "8 -> 4", "8 -> 4", "0"] in cells
    assert ["vision/detect", "vision", "gains", "4 nvidia.com/gpu (h100)"] in cells
    assert ["speech/translate", "speech", "loses", "WaitingForQuota"] in cells
    assert "1 workload gains quota, 1 workload loses quota" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "| speech | h100 | nvidia.com/gpu | 8 → 4 | 8 → 4 | 0 |" in simulate(
        tmp_path, TEAMS, own, "markdown"
    )


def test_a_queue_with_a_mistake_is_named_and_admits_nobody(tmp_path: Path) -> None:
    bad = set_quota(find_queue("speech"), nominalQuota="many")
    for name, objects in {"b.yaml": [NODE, *TEAMS], "o.yaml": [bad]}.items():
        (tmp_path / name).write_text(writing.dump_all(objects), encoding="utf-8")
    given = ["--baseline", str(tmp_path / "b.yaml"), "-f", str(tmp_path / "o.yaml")]
    done = CliRunner().invoke(cli.app, ["simulate", *given])
    assert done.exit_code == 3
    assert "ClusterQueue speech: spec.resourceGroups" in " ".join(done.stderr.split())


def make_result(**held: str) -> Json:
    """Workloads with so much quota each; empty: none."""
    return {
        "queues": [],
        "workloads": [
            {
                "namespace": "n", "name": name, "job": None, "queue": "q", "preempted": None,
                "state": "running" if amount else "waits", "reason": "", "message": "",
                "uses": [{"flavor": "f", "resource": "cpu", "amount": amount}] if amount else [],
            }
            for name, amount in held.items()
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ({"a": "1"}, {"a": "1"}, {}),
        ({"a": "1"}, {"a": ""}, {"a": "loses"}),
        ({"a": ""}, {"a": "1"}, {"a": "gains"}),
        ({"a": "1"}, {"a": "2"}, {"a": "changes"}),
        ({"a": "1"}, {}, {"a": "loses"}),
        ({}, {"a": "1", "b": ""}, {"a": "gains"}),
        ({"a": "1", "b": "1", "c": ""}, {"a": "", "b": "1", "c": "2"}, {"a": "loses", "c": "gains"}),
    ],
)  # fmt: skip
def test_what_a_workload_has_before_and_after(before: Json, after: Json, wanted: Json) -> None:
    found = quotas.compare(make_result(**before), make_result(**after), quotas.By.FILES) or {}
    assert {one["name"]: one["change"] for one in found["workloads"]} == wanted
    back = quotas.compare(make_result(**after), make_result(**before), quotas.By.FILES) or {}
    swapped = {"gains": "loses", "loses": "gains", "changes": "changes"}
    assert {one["name"]: swapped[one["change"]] for one in back["workloads"]} == wanted


@pytest.mark.parametrize("field", ["queue", "flavor"])
def test_another_queue_or_flavor_is_a_move(field: str) -> None:
    before, after = make_result(a="1"), make_result(a="2")
    (row,) = after["workloads"]
    if field == "queue":
        row["queue"] = "other"
    else:
        row["uses"][0]["flavor"] = "other"
    found = quotas.compare(before, after, quotas.By.FILES) or {}
    assert [one["change"] for one in found["workloads"]] == ["moves"]
