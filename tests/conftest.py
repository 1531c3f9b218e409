"""What holds for all tests."""

import re
from collections.abc import Generator

import pytest

from scheduler import progress
from tests import slices

slices.load_profile()
# A line on standard error comes or not by how busy the machine is.
progress._PATIENCE_SECONDS = 1e6

_EXAMPLES = "examples of hypothesis"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a test's last report how many examples hypothesis tried: reports go to whoever sums up."""
    report = yield
    if report.when == "teardown":
        told = re.findall(r"(\d+) passing,", getattr(item, "hypothesis_statistics", ""))
        report.user_properties.append((_EXAMPLES, sum(map(int, told))))
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say how much hypothesis tried, and by which seed."""
    reports = (one for many in terminalreporter.stats.values() for one in many)
    n = sum(dict(getattr(one, "user_properties", ())).get(_EXAMPLES, 0) for one in reports)
    if n:
        seed = config.getoption("--hypothesis-seed") if slices.IS_SOAK else None
        which = f"of seed {seed}" if seed else "any" if slices.IS_SOAK else "the same each time"
        terminalreporter.write_line(f"hypothesis tried {n:,} examples ({which})")
