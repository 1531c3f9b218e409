"""Kubernetes' end-to-end suite as a program: which specs there are, and what comes of one."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from tests.controlplane import build

CHOSEN = r"\[sig-scheduling\] (SchedulerPredicates|SchedulerPriorities|SchedulerPreemption)"
# The longest waits five minutes for a pod that must not be scheduled.
_SPEC_SECONDS = 1200
_OF_REGEX = re.compile(r"([\\.+*?()|\[\]{}^$])")
_PROVIDER = ("--provider=skeleton", "-ginkgo.no-color", "--dump-logs-on-failure=false")


class Result(NamedTuple):
    """What came of a spec.

    Attributes:
        state: passed, skipped, failed, or another word of Ginkgo's.
        seconds: how long it took.
        message: why it was skipped or failed; empty when it passed.
    """

    state: str
    seconds: float
    message: str = ""


def specs(folder: Path, only: str) -> list[str]:
    """The full texts of the chosen specs that also match a pattern of the user's, in order.

    Raises:
        RuntimeError: the suite did not say.
    """
    report = folder / "specs.json"
    done = _run(
        "-ginkgo.dry-run", f"-ginkgo.focus={CHOSEN}", report=report, kubeconfig=Path("none")
    )
    if done.returncode:
        raise RuntimeError(f"the suite does not list its specs:\n{done.stdout[-2000:]}")
    texts = (_text(one) for one in _reports(report) if one["State"] != "skipped")
    return sorted(text for text in texts if text and re.search(only, text))


def run(spec: str, kubeconfig: Path, folder: Path) -> Result:
    """Run one spec against a cluster; its log and its report are left in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "report.json"
    literally = _OF_REGEX.sub(r"\\\1", spec)
    try:
        done = _run(f"-ginkgo.focus={literally}$", report=report, kubeconfig=kubeconfig)
    except subprocess.TimeoutExpired:
        return Result("failed", _SPEC_SECONDS, "the suite did not end")
    (folder / "log").write_text(done.stdout)
    found = [one for one in _reports(report) if _text(one) == spec] if report.exists() else []
    if not found:
        return Result("failed", 0.0, f"it was not run: {done.stdout[-500:]}")
    (one,) = found
    return Result(one["State"], one["RunTime"] / 1e9, one.get("Failure", {}).get("Message", ""))


def _run(*arguments: str, report: Path, kubeconfig: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            build.ensure("e2e.test")["e2e.test"],
            *_PROVIDER,
            f"--kubeconfig={kubeconfig}",
            f"-ginkgo.json-report={report}",
            *arguments,
        ],
        cwd=report.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SPEC_SECONDS,
        check=False,
    )


def _reports(path: Path) -> list[dict[str, Any]]:
    (suite,) = json.loads(path.read_text())
    found: list[dict[str, Any]] = suite["SpecReports"]
    return found


def _text(one: dict[str, Any]) -> str:
    """Empty for what is no spec, such as what runs before all of them."""
    if one["LeafNodeType"] != "It":
        return ""
    return " ".join([*one["ContainerHierarchyTexts"], one["LeafNodeText"]])
