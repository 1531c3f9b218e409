"""How Kubernetes' own specs come out side by side, and when that counts as a failure."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import suite, table
from tests.conformance.suite import Result

PASSED, FAILED, SKIPPED = Result("passed", 4.2), Result("failed", 9.0, "timed out\nat …"), Result("skipped", 0.0)  # fmt: skip


@pytest.mark.parametrize(
    ("peer", "ours", "is_lost"),
    [
        (PASSED, PASSED, False),
        (PASSED, FAILED, True),
        (PASSED, SKIPPED, True),
        (FAILED, FAILED, False),
        (FAILED, PASSED, False),
        (SKIPPED, SKIPPED, False),
    ],
)
def test_what_kube_scheduler_passes_and_evenkeel_does_not_is_lost(
    peer: Result, ours: Result, is_lost: bool
) -> None:
    results = {"spec": {"kube-scheduler": peer, "evenkeel": ours}}
    assert table.lost(results) == (["spec"] if is_lost else [])


def test_the_table_has_both_and_says_why_one_failed() -> None:
    spec = "[sig-scheduling] SchedulerPredicates validates x [Serial]"
    drawn = table.drawn({spec: {"kube-scheduler": PASSED, "evenkeel": FAILED}}).splitlines()
    assert drawn[1].split() == ["SchedulerPredicates", "validates", "x", "passed", "4", "s", "failed", "9", "s"]  # fmt: skip
    assert drawn[2].split() == ["passed", "of", "1", "1", "0"]
    assert drawn[-1] == "  evenkeel, failed: timed out"


def test_a_spec_is_found_in_a_report_of_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ginkgo reports all specs, those that were not chosen as skipped, and what runs before and after them."""

    def one(text: str, state: str, kind: str = "It") -> dict[str, Any]:
        where = ["[sig-scheduling] SchedulerPredicates"] if kind == "It" else None
        return {"LeafNodeType": kind, "LeafNodeText": text, "ContainerHierarchyTexts": where, "State": state, "RunTime": 2_500_000_000}  # fmt: skip

    reports = [one("", "passed", "BeforeSuite"), one("a (b)", "passed"), one("c", "skipped")]

    def run(*_: str, report: Path, **__: Path) -> Any:
        report.write_text(json.dumps([{"SpecReports": reports}]))
        return type("Done", (), {"returncode": 0, "stdout": ""})

    monkeypatch.setattr(suite, "_run", run)
    assert suite.specs(tmp_path, "") == ["[sig-scheduling] SchedulerPredicates a (b)"]
    assert suite.specs(tmp_path, "nothing") == []
    ran = suite.run("[sig-scheduling] SchedulerPredicates a (b)", tmp_path, tmp_path / "0")
    assert ran == Result("passed", 2.5)
