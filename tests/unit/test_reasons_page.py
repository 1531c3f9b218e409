"""docs/reasons.md has every reason that there is, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from scheduler.api.door.decisions import Evict, Why
from scheduler.api.hami_config.chart import CHART
from scheduler.api.reasons import CARD_CODES, CardRefusal
from scheduler.devices.vendors.table import list_drivers
from scheduler.plugins import table
from scheduler.rebalance import service
from scheduler.shapes import diagnosis
from scheduler.state import checks
from scheduler.telling import sayings
from scheduler.telling.departures import describe_departure
from tests import make
from tests.model import mixed_fleet

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reasons.md"
# Who writes an event or a condition, and the argument of it that is the reason.
REPORTER = ROOT / "scheduler/kube/report/reporter.py"
WRITERS = {"_put_pod_event": 2, "report_on_node": 1}


def name_vendor(text: str) -> str:
    """The text with VENDOR for HAMi's name of a kind of devices: all of them have the same texts."""
    for driver in list_drivers(CHART):
        if text in (driver.none_told, driver.not_told):
            return text.replace(driver.name.removeprefix("HAMi "), "VENDOR")
    return text


def test_every_reason_has_a_heading_and_every_heading_is_a_reason() -> None:
    headings = re.findall(r"^### `(.+)`$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    rules = {name_vendor(text).replace("{}", "RESOURCE") for text in table.list_texts()}
    codes = {code for driver in list_drivers(CHART) for code in driver.codes.values()}
    reasons = [sayings.NO_NODES, *rules, *codes | set(CARD_CODES.values())]
    assert sorted(headings) == sorted(reasons)
    assert CARD_CODES.keys() == set(CardRefusal)


def test_what_pods_are_told_on_a_mixed_fleet_is_in_the_table() -> None:
    known = [re.escape(text).replace(r"\{\}", ".+") for text in table.list_texts()]
    cluster = make.cluster(nodes=mixed_fleet.nodes(), pods=mixed_fleet.running())
    cycle = make.cycle(cluster=cluster)
    seen = set()
    for pod in mixed_fleet.pending():
        record = cluster.see_pod(pod)
        assert record is not None
        (hold,) = cycle.schedule([record]).holds
        assert hold.diagnosis is not None
        assert hold.diagnosis.n_nodes == diagnosis.list_rows(cluster).size
        seen |= {text for text, _ in hold.diagnosis.reasons}
        for detail in hold.diagnosis.details:
            assert detail.about in CARD_CODES.values() or detail.about in seen
    assert len(seen) > 6
    assert all(any(re.fullmatch(one, text) for one in known) for text in seen)


def _first_column(after: str) -> list[str]:
    """What the first column of the table after a text names."""
    _, found, rest = PAGE.read_text(encoding="utf-8").partition(after)
    assert found
    rows = rest.partition("\n|")[2].partition("\n\n")[0]
    return re.findall(r"^\| `([^`]+)` \|", rows, re.MULTILINE)


def _calls() -> Iterator[tuple[str, ast.Call]]:
    for path in (ROOT / "scheduler/kube").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield node.func.attr, node


def test_every_event_is_in_its_table() -> None:
    written = [call.args[WRITERS[name]] for name, call in _calls() if name in WRITERS]
    # A reason that is put together or handed on would be missed, except those of pods that are sent away or moved.
    others = [ast.unparse(reason) for reason in written if not isinstance(reason, ast.Constant)]
    assert others == ["words.event", "reason"]
    reasons = {reason.value for reason in written if isinstance(reason, ast.Constant)}
    reasons |= {describe_departure(Evict("u", "n", (), why), "s").event for why in Why}
    # What has become of a pod that was to be moved.
    reasons |= {reason for _, reason in service.EVENTS.values()}
    assert set(_first_column("## Events")) == reasons
    # Nothing else in the scheduler writes events.
    writers = [
        p for p in (ROOT / "scheduler/kube").rglob("*.py") if '"kind": "Event"' in p.read_text()
    ]
    assert writers == [REPORTER]


def test_every_reason_of_the_condition_is_in_its_table() -> None:
    assert _first_column("The `PodScheduled` condition") == [sayings.UNSCHEDULABLE, sayings.ERROR]


def test_every_reason_for_a_closed_node_is_in_its_table() -> None:
    closed = checks.count_closed_nodes(make.cluster())
    assert _first_column("### Nodes that allocate nothing") == list(closed)
