"""The example workflow of a pull request: what it runs is run here, with stand-ins for docker and gh."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs import examples

WORKFLOW: dict[Any, Any] = yaml.safe_load(
    (examples.FOLDER / "pull-request" / "workflow.yaml").read_text(encoding="utf-8")
)
(JOB,) = WORKFLOW["jobs"].values()
RUNS = {step["name"]: step["run"] for step in JOB["steps"] if "run" in step}
# The cluster is read from a file, and nothing is printed of docker's own arguments.
DOCKER = """#!/bin/bash
while [ "$1" != simulate ]; do shift; done
args=("${@//\\/change\\//}")
args=("${args[@]/--kubeconfig/-f}")
exec %s -m scheduler "${args[@]/\\/kubeconfig/%s}"
"""
GH = """#!/bin/bash
echo "$@" >> gh.log
if [ "$2" = --paginate ]; then cat ids; fi
"""


def run(name: str, at: Path) -> int:
    """A step as GitHub runs it; how it ends."""
    environment = os.environ | {
        "PATH": f"{at / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "RUNNER_TEMP": str(at),
        "GITHUB_OUTPUT": str(at / "output"),
        "GITHUB_STEP_SUMMARY": str(at / "summary.md"),
        "GITHUB_REPOSITORY": "o/r",
        "PULL_REQUEST": "7",
        "IMAGE": JOB["env"]["IMAGE"],
        "KUBECONFIG_TEXT": "x",
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", RUNS[name]]
    return subprocess.run(command, cwd=at, env=environment, check=False).returncode


@pytest.fixture(name="at")
def at_(tmp_path: Path) -> Path:
    for name, text in (("docker", DOCKER % (sys.executable, str(examples.NODES).replace("/", "\\/"))), ("gh", GH)):  # fmt: skip
        (tmp_path / "bin").mkdir(exist_ok=True)
        program = tmp_path / "bin" / name
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
    (tmp_path / "ids").write_text("", encoding="utf-8")
    return tmp_path


def test_a_comment_is_written_once_and_replaced_after_that(at: Path) -> None:
    text = (examples.FOLDER / "inference.yaml").read_text(encoding="utf-8")
    (at / "change.yaml").write_text(text, encoding="utf-8")
    assert run("Simulate", at) == 0
    assert (at / "output").read_text(encoding="utf-8") == "code=0\n"
    assert run("Write the comment, or replace it", at) == 0
    lines = (at / "comment.md").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == [
        "<!-- evenkeel simulate -->",
        "### :white_check_mark: All 6 pods of your files fit",
    ]
    (at / "ids").write_text("42\n43\n", encoding="utf-8")
    assert run("Write the comment, or replace it", at) == 0
    said = (at / "gh.log").read_text(encoding="utf-8").splitlines()
    assert said[1] == "pr comment 7 --body-file comment.md"
    assert said[3] == "api --method PATCH repos/o/r/issues/comments/42 -F body=@comment.md"
    assert not (at / "kubeconfig").exists()


def test_the_check_fails_when_a_pod_does_not_fit_and_the_comment_is_written_first(at: Path) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    pod["spec"] = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "9999"}}}]}
    (at / "change.yaml").write_text(yaml.safe_dump(pod), encoding="utf-8")
    assert run("Simulate", at) == 0
    assert (at / "output").read_text(encoding="utf-8") == "code=1\n"
    assert "does not fit" in (at / "summary.md").read_text(encoding="utf-8")
    names = [step.get("name") for step in JOB["steps"]]
    last = "Fail if a pod does not fit"
    assert names.index("Write the comment, or replace it") < names.index(last)
    assert RUNS[last] == "exit ${{ steps.simulate.outputs.code }}"


def test_what_is_no_answer_ends_the_job_without_a_comment(at: Path) -> None:
    assert run("Simulate", at) == 2
    assert not (at / "output").exists()
    assert not (at / "summary.md").exists()


def test_the_workflow_reads_code_and_writes_pull_requests_and_nothing_else() -> None:
    # YAML's own rule: ``on`` is true.
    assert WORKFLOW[True]["pull_request"]["paths"] == ["deploy/**"]
    assert WORKFLOW["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert JOB["if"].endswith("== github.repository")
