"""docs/metrics.md tells every metric and alert there is, with its labels, and nothing else; the dashboard lays them out."""

import json
import re
from pathlib import Path

import pytest

from scheduler.kube.report.metrics import catalogue
from tests.operator import prometheus

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "metrics.md").read_text()
DASHBOARDS = prometheus.DASHBOARD, prometheus.QUEUES
NAMES = [one.stem for one in DASHBOARDS]
ALERTS = (ROOT / "manifests" / "chart" / "templates" / "alerts.yaml").read_text()


def rows() -> dict[str, set[str]]:
    """Labels by name, of every row of a table that begins with metrics."""
    found = {}
    for line in PAGE.splitlines():
        if line.startswith(("| `evenkeel_", "| `scheduler_", "| `kueue_")):
            _, named, labels, *_ = line.split("|")
            for name in re.findall(r"`(\w+)`", named):
                assert name not in found
                found[name] = set(re.findall(r"`(\w+)`", labels))
        elif line.startswith("| `hami_"):
            for cell in line.split("|")[1:3]:
                if words := re.findall(r"`(\w+)`", cell):
                    assert words[0] not in found
                    found[words[0]] = set(words[1:])
    return found


def test_the_page_has_every_metric_with_its_labels() -> None:
    assert rows() == {one.full_name: set(one.labels) for one in catalogue.ALL}


def test_no_metric_is_catalogued_twice() -> None:
    names = [one.name for one in catalogue.ALL]
    assert len(names) == len(set(names)) > 40


def test_the_page_has_every_alert() -> None:
    told = set(re.findall(r"^\| `(Evenkeel\w+)`", PAGE, re.MULTILINE))
    assert told == set(re.findall(r"alert: (\w+)", ALERTS))


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=NAMES)
def test_a_dashboard_lays_its_panels_out_without_overlap_and_says_what_each_is(
    dashboard: Path,
) -> None:
    panels = json.loads(dashboard.read_text())["panels"]
    taken: set[tuple[int, int]] = set()
    for one in panels:
        at = one["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}  # fmt: skip
        assert not cells & taken
        taken |= cells
        assert one["type"] == "row" or one["description"]
    assert len({one["id"] for one in panels}) == len(panels)


def test_the_dashboard_opens_with_what_is_wanted_first() -> None:
    dashboard = json.loads(prometheus.DASHBOARD.read_text())
    first = [(one["type"], one["title"]) for one in dashboard["panels"][:8]]
    assert first == [
        ("row", "Overview"),
        ("stat", "Free GPUs"),
        ("stat", "Stranded GPUs"),
        ("stat", "Pending pods"),
        ("stat", "Oldest wait"),
        ("table", "GPU nodes"),
        ("heatmap", "Cards by memory allocated"),
        ("status-history", "Memory allocated, card by card"),
    ]
    variables = {one["name"]: one for one in dashboard["templating"]["list"]}
    assert {"node", "model", "namespace"} <= variables.keys()
    text = json.dumps(dashboard["panels"])
    for name in ("node", "model", "namespace"):
        # A panel that filters by it matches everything when nothing is chosen.
        assert f'=~\\"${name}\\"' in text
        assert variables[name]["allValue"] == ".*"
    assert "given away" not in text


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=NAMES)
def test_every_metric_of_a_dashboard_exists(dashboard: Path) -> None:
    """Of its panels and of its variables; a panel on a name that nobody exports stays empty without a word."""
    read = json.loads(dashboard.read_text())
    asked = [t["expr"] for one in read["panels"] for t in one.get("targets", ())]
    asked += [one["query"] for one in read["templating"]["list"] if one["type"] == "query"]
    found = (re.findall(r"(?:evenkeel|scheduler|kueue)_\w+", query) for query in asked)
    names = {name for one in found for name in one}
    assert len(names) > 8
    told = {one.full_name for one in catalogue.ALL}
    told |= {f"{one.name}_bucket" for one in catalogue.ALL if one.buckets}
    # The variable of namespaces takes them from whatever is told by namespace.
    assert names - told <= {"evenkeel_namespace_"}
