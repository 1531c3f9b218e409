"""One's own files beside a dump or a cluster: whose pods count, come first, and are ours."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from scheduler import cli
from scheduler.config import Config
from scheduler.documents import writing
from scheduler.simulate import command
from scheduler.simulate.reading.gathering import Live
from tests.unit.test_simulate_what_if import node, pod, workload

Json = dict[str, Any]


def elsewhere(name: str, **figures: Any) -> Json:
    """A pod that names no scheduler."""
    body = pod(name, **figures)
    del body["spec"]["schedulerName"]
    return body


def run(folder: Path, *arguments: str, **files: list[Json]) -> Result:
    given = []
    for name, objects in files.items():
        path = folder / f"{name}.yaml"
        path.write_text(writing.dump_all(objects))
        given += ["-f", str(path)]
    return CliRunner().invoke(cli.app, ["simulate", *given, *arguments])


def named(result: Result) -> dict[str, tuple[str | None, bool]]:
    found: Json = json.loads(result.stdout)
    return {one["name"]: (one["node"], one["own"]) for one in found["pods"]}


DUMP = [node("a", cpu=4), pod("runs", node="a"), pod("old", cpu=9), elsewhere("foreign")]


def test_only_ours_leaves_no_pod_of_a_file_of_ones_own_out(tmp_path: Path) -> None:
    job = workload("Job", "job")
    result = run(tmp_path, "--only-ours", "-o", "json", dump=DUMP, mine=[elsewhere("mine"), job])
    found = named(result)
    made = next(name for name in found if name.startswith("job-"))
    assert found == {"old": (None, False), "mine": ("a", True), made: ("a", True)}
    # A dump alone is nobody's own file.
    assert named(run(tmp_path, "--only-ours", "-o", "json", dump=DUMP)) == {"old": (None, False)}
    # Names of other schedulers do not matter there either.
    other = pod("other") | {"spec": pod("other")["spec"] | {"schedulerName": "volcano"}}
    assert named(run(tmp_path, "--only-ours", "-o", "json", dump=DUMP, mine=[other]))["other"] == (
        "a", True,
    )  # fmt: skip


def test_a_file_beside_a_cluster_is_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(writing.dump_all([elsewhere("mine")]))
    asked = command.Request(config=Config(), files=[str(path)], only_ours=True)
    found = command.answer(asked, Live(DUMP), io.StringIO(), lambda *_: None).results[""]
    assert {one["name"]: one["own"] for one in found["pods"]} == {"old": False, "mine": True}


@pytest.mark.parametrize(
    ("mine", "arguments", "code"),
    [
        ([pod("mine")], [], 0),
        ([pod("mine", cpu=9)], [], 1),
        (None, [], 1),
        (None, ["--cordon", "a"], 0),
        (None, ["--without-node", "a"], 1),
        ([workload("Job", "mine")], ["--cordon", "a"], 1),
    ],
)
def test_what_waits_in_a_dump_is_the_baseline(
    tmp_path: Path, mine: list[Json] | None, arguments: list[str], code: int
) -> None:
    files = {"dump": DUMP} | ({"mine": mine} if mine else {})
    result = run(tmp_path, "--fail-if-pending", *arguments, **files)
    assert result.exit_code == code, result.output


def test_a_dump_in_several_files_is_a_dump(tmp_path: Path) -> None:
    files = {"nodes": [DUMP[0]], "pods": DUMP[1:], "mine": [pod("mine")]}
    result = run(tmp_path, "--fail-if-pending", "-o", "json", **files)
    assert result.exit_code == 0
    assert named(result)["mine"] == ("a", True)
    assert named(result)["old"] == (None, False)


def test_ones_own_pods_come_first_and_are_marked(tmp_path: Path) -> None:
    result = run(tmp_path, dump=DUMP, mine=[pod("mine"), pod("mine-too", cpu=9)])
    lines = result.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines[1:5]] == [
        "* default/mine", "* default/mine-too", "default/foreign", "default/old",
    ]  # fmt: skip
    assert lines[-1] == "* of your files: 1 of 2 pods scheduled"
    alone = run(tmp_path, dump=DUMP).stdout
    assert "*" not in alone
