"""The log of an engine whose pods have claims gives the same decisions again, with the same devices, from any of its files."""

import re

import pytest

from scheduler.engine import rerun
from scheduler.state import checks
from tests.model.claim_stories import ClaimStory


@pytest.mark.parametrize("pauses", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_every_file_of_the_log_gives_the_same_decisions(seed: int, pauses: bool) -> None:
    story = ClaimStory(seed, pauses=pauses)
    for i in range(180):
        story.happen()
        if i % 20 == 0:
            story.settle()
            checks.verify(story.engine._cluster)
        if i in {60, 120}:
            story.anew()
    story.settle()
    reports = [rerun.rerun(lines) for lines in story.files]
    assert [report.difference for report in reports] == [None] * 3
    assert sum(report.n_binds for report in reports) > 10
    text = b"".join(line for lines in story.files for line in lines)
    assert text.count(b'"allotted":[[') > 10


def test_a_decision_with_other_devices_is_a_difference() -> None:
    """The devices of claims are a part of what is compared."""
    story = ClaimStory(1)
    for _ in range(40):
        story.happen()
    [lines] = story.files
    at = next(i for i, line in enumerate(lines) if b'"allotted":[[' in line)
    assert rerun.rerun(lines).difference is None
    lines[at] = re.sub(rb'"(part|whole)-\d"', b'"whole-9"', lines[at])
    found = rerun.rerun(lines).difference
    assert found is not None
    assert "whole-9" in rerun.write_report(rerun.rerun(lines))
