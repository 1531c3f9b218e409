"""docs/metrics.md tells every metric and alert there is, with its labels, and nothing else."""

import re
from pathlib import Path

from scheduler.kube.report.metrics import catalogue

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "metrics.md").read_text()
ALERTS = (ROOT / "manifests" / "chart" / "templates" / "alerts.yaml").read_text()


def rows() -> dict[str, set[str]]:
    """Labels by name, of every row of a table that begins with metrics."""
    found = {}
    for line in PAGE.splitlines():
        if line.startswith(("| `evenkeel_", "| `scheduler_")):
            _, named, labels, *_ = line.split("|")
            for name in re.findall(r"`(\w+)`", named):
                assert name not in found
                found[name] = set(re.findall(r"`(\w+)`", labels))
    return found


def test_the_page_has_every_metric_with_its_labels() -> None:
    assert rows() == {one.full_name: set(one.labels) for one in catalogue.ALL}


def test_no_metric_is_catalogued_twice() -> None:
    names = [one.name for one in catalogue.ALL]
    assert len(names) == len(set(names)) > 40


def test_the_page_has_every_alert() -> None:
    told = set(re.findall(r"^\| `(Evenkeel\w+)`", PAGE, re.MULTILINE))
    assert told == set(re.findall(r"alert: (\w+)", ALERTS))
