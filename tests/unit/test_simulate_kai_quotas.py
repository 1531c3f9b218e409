"""Other queues of KAI than those of the baseline, and changes where there are such queues: who gains and who loses."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from scheduler import cli
from scheduler.documents import writing
from scheduler.simulate.changes import kai_quotas
from scheduler.simulate.changes.kai_quotas import Moment
from scheduler.simulate.changes.quotas import By
from tests import make
from tests.docs import examples

Json = dict[str, Any]
TEAMS = examples.read("kai-queues.yaml")


def find_queue(name: str, **gpu: Any) -> Json:
    (found,) = [one for one in TEAMS if one["kind"] == "Queue" and one["metadata"]["name"] == name]
    found = copy.deepcopy(found)
    found["spec"]["resources"]["gpu"] |= gpu
    return found


def simulate(tmp_path: Path, own: list[Json], *more: str, output: str = "json") -> str:
    base = tmp_path / "base.yaml"
    base.write_text(writing.dump_all(TEAMS), encoding="utf-8")
    given = ["simulate", "--baseline", str(base), "-o", output, *more]
    if own:
        (tmp_path / "own.yaml").write_text(writing.dump_all(own), encoding="utf-8")
        given += ["-f", str(tmp_path / "own.yaml")]
    done = CliRunner().invoke(cli.app, given)
    assert done.exit_code == 0, done.output
    return done.stdout


def list_pods(changes: Json) -> dict[str, tuple[str, str | None, str | None]]:
    return {one["name"]: (one["change"], one["node"], one["by"]) for one in changes["pods"]}


def test_another_quota_says_who_keeps_a_node_and_who_gets_none(tmp_path: Path) -> None:
    """`vision` is owed the two GPUs that `speech` would get back by its own quota."""
    found = json.loads(simulate(tmp_path, [find_queue("vision", quota=6)]))
    assert found["queueChanges"] is None
    changes = found["kaiQueueChanges"]
    assert changes["by"] == "files"
    assert list_pods(changes) == {
        "translate": ("loses", None, None),
        "detect": ("gains", "gpu-1", None),
    }
    (lost,) = [one for one in changes["pods"] if one["name"] == "translate"]
    assert "Insufficient nvidia.com/gpu" in lost["message"]
    (vision,) = changes["queues"]
    gpus = [next(use for use in vision[when]["uses"] if use["resource"] == "gpu") for when in ("before", "after")]  # fmt: skip
    assert vision["name"] == "vision"
    assert [(use["quota"], use["fairShare"]) for use in gpus] == [("4", "4"), ("6", "6")]


def test_the_other_way_round_one_is_evicted_for_another(tmp_path: Path) -> None:
    changed = [
        find_queue("vision", quota=6) if one == find_queue("vision") else one for one in TEAMS
    ]
    (tmp_path / "b.yaml").write_text(writing.dump_all(changed), encoding="utf-8")
    (tmp_path / "o.yaml").write_text(writing.dump_all([find_queue("vision")]), encoding="utf-8")
    given = ["simulate", "--baseline", str(tmp_path / "b.yaml"), "-f", str(tmp_path / "o.yaml")]
    done = CliRunner().invoke(cli.app, [*given, "-o", "json"])
    assert done.exit_code == 0, done.output
    assert list_pods(json.loads(done.stdout)["kaiQueueChanges"]) == {
        "translate": ("gains", "gpu-1", None),
        "detect": ("loses", None, "speech/translate"),
    }


def test_a_new_team_has_nothing_before(tmp_path: Path) -> None:
    new = find_queue("speech", quota=0)
    new["metadata"]["name"] = "robots"
    changes = json.loads(simulate(tmp_path, [new]))["kaiQueueChanges"]
    robots = next(one for one in changes["queues"] if one["name"] == "robots")
    assert robots["before"] is None
    assert robots["after"]["parent"] == "research"


def test_the_same_queue_changes_nothing(tmp_path: Path) -> None:
    own = [find_queue("speech")]
    changes = json.loads(simulate(tmp_path, own))["kaiQueueChanges"]
    assert changes == {"by": "files", "queues": [], "pods": []}
    said = "The queues of your files change nothing: every queue and every pod has what it had"
    assert said in " ".join(simulate(tmp_path, own, output="table").split())
    assert said in simulate(tmp_path, own, output="markdown")


@pytest.mark.parametrize("output", ["json", "table", "markdown"])
def test_a_node_more_says_who_gains_by_it(tmp_path: Path, output: str) -> None:
    node = copy.deepcopy(next(one for one in TEAMS if one["kind"] == "Node"))
    node["metadata"]["name"] = "gpu-2"
    (tmp_path / "new.yaml").write_text(writing.dump_all([node]), encoding="utf-8")
    found = simulate(tmp_path, [], "--add-node", str(tmp_path / "new.yaml"), output=output)
    if output != "json":
        assert "By your changes: 2 pods gain a node" in " ".join(found.split())
        return
    changes = json.loads(found)["kaiQueueChanges"]
    assert changes["by"] == "changes"
    assert list_pods(changes) == {
        "depth": ("gains", "gpu-2", None),
        "detect": ("gains", "gpu-1", None),
    }


def make_moment(runs: dict[str, str], nodes: dict[str, str], victims: dict[str, str]) -> Moment:
    """Pods that run or wait at the start; those that are decided about, with their nodes; and those that one evicts."""
    rows = [
        {
            "namespace": "n", "name": name, "uid": name, "node": node or None, "nominated": None,
            "message": "waits", "unschedulable": None,
            "victims": [
                {"namespace": "n", "name": uid, "uid": uid, "node": "v"}
                for uid, by in victims.items()
                if by == name
            ],
        }
        for name, node in nodes.items()
    ]  # fmt: skip
    there = {**dict.fromkeys(nodes, ""), **runs}
    pods = [make.pod(name=name, namespace="n", uid=name, node=node) for name, node in there.items()]
    return Moment({"kaiQueues": [{"name": "q"}], "pods": rows}, pods)


R = {"r": "1"}


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (({}, {"a": "1"}, {}), ({}, {"a": "1"}, {}), {}),
        (({}, {"a": "1"}, {}), ({}, {"a": "2"}, {}), {}),
        (({}, {"a": "1"}, {}), ({}, {"a": ""}, {}), {"a": "loses"}),
        (({}, {"a": ""}, {}), ({}, {"a": ""}, {}), {}),
        ((R, {"a": ""}, {}), (R, {"a": "1"}, {"r": "a"}), {"a": "gains", "r": "loses"}),
        # Pods that only one of the two has.
        (({}, {"a": "1"}, {}), ({}, {"b": ""}, {}), {"a": "loses"}),
        ((R, {}, {}), ({}, {"b": "1"}, {}), {"r": "loses", "b": "gains"}),
        ((R, {"a": "1"}, {"r": "a"}), (R, {"b": "1"}, {"r": "b"}), {"a": "loses", "b": "gains"}),
    ],
)  # fmt: skip
def test_what_a_pod_has_before_and_after(before: Any, after: Any, wanted: Json) -> None:
    swapped = {"gains": "loses", "loses": "gains"}
    for first, second, words in ((before, after, {}), (after, before, swapped)):
        found = kai_quotas.compare(make_moment(*first), make_moment(*second), By.FILES)
        assert found is not None
        assert {
            one["name"]: words.get(one["change"], one["change"]) for one in found["pods"]
        } == wanted


def test_a_pod_that_a_smaller_deployment_no_longer_has_loses_its_node(tmp_path: Path) -> None:
    """Three replicas that run become one, and five: those that there are no longer lose, new ones without a node do not."""
    template = {
        "metadata": {"labels": {"app": "serve", "kai.scheduler/queue": "speech"}},
        "spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
    }  # fmt: skip
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serve-many", "namespace": "speech"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "serve"}},
            "template": template,
        },
    }
    objects = [one for one in TEAMS if one["kind"] != "Pod"] + [deployment]
    base = tmp_path / "base.yaml"
    base.write_text(writing.dump_all(objects), encoding="utf-8")

    def scale(n: int) -> Json:
        given = ["simulate", "--baseline", str(base), "--scale", f"speech/deployment/serve-many={n}"]  # fmt: skip
        done = CliRunner().invoke(cli.app, [*given, "-o", "json"])
        assert done.exit_code in {0, 1}, done.output
        found: Json = json.loads(done.stdout)["kaiQueueChanges"]
        return found

    (gone,) = scale(1)["pods"]
    assert (gone["change"], gone["message"]) == ("loses", "is no longer there")
    assert [one["change"] for one in scale(4)["pods"]] == ["gains", "gains"]
    assert [one["change"] for one in scale(12)["pods"]] == ["gains"] * 6
