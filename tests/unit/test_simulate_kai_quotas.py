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
from scheduler.simulate.changes.quotas import By
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


def make_result(nodes: dict[str, str], victims: dict[str, str]) -> Json:
    """Pods that are decided about with their nodes, empty for none; and those that one of them evicts."""
    return {
        "kaiQueues": [{"name": "q"}],
        "pods": [
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
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (({"a": "1"}, {}), ({"a": "1"}, {}), {}),
        (({"a": "1"}, {}), ({"a": "2"}, {}), {}),
        (({"a": "1"}, {}), ({"a": ""}, {}), {"a": "loses"}),
        (({"a": ""}, {}), ({"a": ""}, {}), {}),
        (({"a": ""}, {}), ({"a": "1"}, {"r": "a"}), {"a": "gains", "r": "loses"}),
        (({"a": "1"}, {"r": "a"}), ({"b": "1"}, {"r": "b"}), {}),
    ],
)  # fmt: skip
def test_what_a_pod_has_before_and_after(before: Any, after: Any, wanted: Json) -> None:
    swapped = {"gains": "loses", "loses": "gains"}
    for first, second, words in ((before, after, {}), (after, before, swapped)):
        found = kai_quotas.compare(make_result(*first), make_result(*second), By.FILES)
        assert found is not None
        assert {
            one["name"]: words.get(one["change"], one["change"]) for one in found["pods"]
        } == wanted
