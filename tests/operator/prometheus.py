"""Prometheus's own parser and engine, over scrapes of operators: no server, see ``controlplane/tools/promql``."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.controlplane import build
from tests.operator import installed

Json = dict[str, Any]
JOB = "evenkeel"
_DASHBOARDS = Path(installed.CHART) / "dashboards"
DASHBOARD, QUEUES = _DASHBOARDS / "evenkeel.json", _DASHBOARDS / "queues.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """What a target has answered; the names are those of the program's input."""

    seconds: float
    labels: dict[str, str]
    contentType: str  # noqa: N815 - see above
    text: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One of the dashboard: title, type, unit, and its queries with the texts of their legends.

    ``place`` is where it is in Grafana's grid: x, y, width and height.
    """

    title: str
    type: str
    unit: str
    place: tuple[int, int, int, int]
    queries: tuple[tuple[str, str], ...]


def scrape(port: int, instance: str, seconds: float, accept: str = "") -> Scrape:
    """Ask an operator as Prometheus does, and say that it was at that time."""
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept} if accept else {}
    )
    with urllib.request.urlopen(asked, timeout=60.0) as answer:
        text, kind = answer.read().decode(), answer.headers["Content-Type"]
    labels = {"job": JOB, "instance": instance}
    return Scrape(seconds=seconds, labels=labels, contentType=kind, text=text)


def ask(
    scrapes: Sequence[Scrape],
    queries: Sequence[str] = (),
    *,
    span: tuple[float, float, float] = (0.0, 0.0, 1.0),
    rules: str = "",
) -> Json:
    """What queries come to from ``span[0]`` to ``span[1]`` by steps of ``span[2]`` seconds.

    Raises:
        AssertionError: Prometheus could not read a scrape.
    """
    first, last, step = span
    asked = {
        "scrapes": [asdict(one) for one in scrapes],
        "queries": [{"expr": one, "from": first, "to": last, "step": step} for one in queries],
        "rules": rules,
    }
    done = subprocess.run(
        [build.ensure("promql")["promql"]],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: Json = json.loads(done.stdout)
    return told


def panels(
    interval: str = "1m", *, dashboard: Path = DASHBOARD, resource: str = ".*"
) -> list[Panel]:
    """A dashboard's, with its variables as Grafana would fill them in; ``resource`` is the one chosen."""
    found = []
    for one in json.loads(dashboard.read_text())["panels"]:
        if one["type"] == "row":
            continue
        queries = tuple(
            (
                _filled_in(target["expr"].replace("$resource", resource), interval),
                target["legendFormat"],
            )
            for target in one["targets"]
        )
        unit, at = one["fieldConfig"]["defaults"]["unit"], one["gridPos"]
        place = (at["x"], at["y"], at["w"], at["h"])
        found.append(Panel(one["title"], one["type"], unit, place, queries))
    return found


def _filled_in(query: str, interval: str) -> str:
    """With nothing chosen: everything."""
    for name in ("node", "model", "namespace", "cohort", "cluster_queue"):
        query = query.replace(f'=~"${name}"', '=~".*"')
    return query.replace("$job", JOB).replace("$__rate_interval", interval)


def labelled(labels: dict[str, str], legend: str) -> str:
    """The text of a legend for one series."""
    for name, value in labels.items():
        legend = legend.replace(f"{{{{{name}}}}}", value)
    # A label without a value is none.
    return re.sub(r"{{\w+}}", "", legend).strip()
