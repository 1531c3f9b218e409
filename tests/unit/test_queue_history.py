"""What local queues have used over time: the same whoever adds it up, in whatever order it is seen, before and after a restart."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import kueue
from scheduler.api.queues import reading
from scheduler.api.queues.settings import HistorySettings
from scheduler.tenancy.history import History
from tests.model.queue_shell import BEGAN, QueueShell
from tests.oracles.kueue import cases

HALF = 3600.0
SETTINGS = HistorySettings(half_life_seconds=HALF, sampling_seconds=0.0)
CPU = ("plain", "cpu")
QUEUE: dict[str, Any] = {"quotas": [{"plain": {"cpu": 4}}], "counts_usage": True}
# When a workload starts and ends, in seconds, and its cores.
Run = tuple[int, int, int]
runs = st.lists(
    st.tuples(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 8)), max_size=6
)


def integrate(some: list[Run], at: float) -> float:
    """Compute what was used by a given time, second by second: the slow and obvious way."""
    used, part = 0.0, 1 - math.pow(0.5, 1 / HALF)
    for second in range(int(at)):
        using = sum(cores for start, length, cores in some if start <= second < start + length)
        used += part * (using - used)
    return used


def add_up(history: History, some: list[Run], until: float, began: float = 0.0) -> None:
    """Let a history see all that happens from one time to another."""
    seen = sorted(
        (at, is_end, i)
        for i, (start, length, _) in enumerate(some)
        for is_end, at in ((False, start), (True, start + length))
    )
    for at, is_end, i in seen:
        amounts = {CPU: 1000 * some[i][2]}
        if not began < at <= until:
            continue
        if is_end:
            history.end("a/q", f"w{i}", amounts, BEGAN + at)
        else:
            history.start("a/q", f"w{i}", amounts, BEGAN + at, BEGAN + at)


def find(history: History, at: float) -> float:
    return history.list_consumed("a/q", BEGAN + at).get("cpu", 0.0)


@given(some=runs, at=st.integers(1, 8000))
def test_it_is_what_second_by_second_comes_to(some: list[Run], at: int) -> None:
    history = History(SETTINGS)
    history.open("a/q", {}, 0.0, BEGAN)
    add_up(history, some, at)
    assert find(history, at) == pytest.approx(integrate(some, at), abs=1e-9)


@given(
    some=runs,
    written=st.integers(1, 4000),
    down=st.integers(0, 3000),
    is_late=st.booleans(),
)
def test_a_restart_changes_nothing_in_whatever_order_objects_are_seen(
    some: list[Run], written: int, down: int, is_late: bool
) -> None:
    """Workloads that ended while nobody looked are the only ones that are not counted until their end."""
    up = written + down
    some = [one for one in some if not written < sum(one[:2]) <= up]
    before, whole = History(SETTINGS), History(SETTINGS)
    for one in before, whole:
        one.open("a/q", {}, 0.0, BEGAN)
    add_up(before, some, written)
    record = before.find_record("a/q")
    assert record is not None
    # What has happened since the last change is added up after the restart.
    after = History(SETTINGS)
    if not is_late:
        after.open("a/q", *record, BEGAN + up)
    for i, (start, length, cores) in enumerate(some):
        if start <= up < start + length:
            after.start("a/q", f"w{i}", {CPU: 1000 * cores}, BEGAN + up, BEGAN + start)
    if is_late:
        after.open("a/q", *record, BEGAN + up)
    add_up(after, some, 10_000, began=up)
    add_up(whole, some, 10_000)
    assert find(after, 10_000) == pytest.approx(find(whole, 10_000), abs=1e-9)


def test_what_ended_before_its_queue_was_seen_is_not_counted() -> None:
    history = History(SETTINGS)
    history.start("a/q", "w", {CPU: 1000}, BEGAN, BEGAN - 100)
    assert history.find_record("a/q") is None
    history.end("a/q", "w", {CPU: 1000}, BEGAN + 1)
    history.open("a/q", {"cpu": 2.0}, BEGAN, BEGAN + HALF)
    assert find(history, HALF) == 1.0


def test_entry_counts_at_once_only_of_what_has_just_started() -> None:
    history = History(HistorySettings(half_life_seconds=HALF, sampling_seconds=300.0))
    history.open("a/q", {"cpu": 0.0}, BEGAN - 1000, BEGAN)
    history.start("a/q", "old", {CPU: 1000}, BEGAN, BEGAN - 400)
    old = history.list_consumed("a/q", BEGAN)
    assert old == history.list_consumed("a/q", BEGAN, with_ahead=False)
    history.start("a/q", "new", {CPU: 1000}, BEGAN, BEGAN - 100)
    assert history.list_consumed("a/q", BEGAN)["cpu"] > old["cpu"] + history.find_part(300)


def make_shell() -> QueueShell:
    history = {"usageHalfLifeTime": "1h", "usageSamplingInterval": "5m"}
    shell = QueueShell(admissionFairSharing=history)
    for body in cases.make_objects({"queues": {"q": QUEUE}}):
        if body["kind"] != "Namespace":
            shell.put(body)
    return shell


def read_record(shell: QueueShell) -> tuple[dict[str, float], float]:
    found = shell.engine._queues.tenants.history.find_record("team/q")
    assert found is not None
    return found


async def test_it_grows_where_nothing_happens_and_is_known_after_a_restart() -> None:
    shell = make_shell()
    shell.put(cases.make_local_queue("team/q", "q"))
    shell.put(cases.make_workload("team/w", {"in": "q", "asks": {"cpu": 4}}))
    await shell.settle()
    for _ in range(12):
        assert shell.engine.find_due(shell.now) <= shell.now + 300
        await shell.settle(300)
    consumed, at = read_record(shell)
    # After one half-life half of it counts.
    assert consumed["cpu"] == pytest.approx(2.0)
    assert at == shell.now
    again = make_shell()
    again.now = shell.now + 60
    again.put(shell.get("w"))
    body = cases.make_local_queue("team/q", {"queue": "q", "used": consumed})
    usage = body["status"]["fairSharing"]["admissionFairSharingStatus"]
    usage["lastUpdate"] = "2027-01-15T09:00:00Z"
    again.put(body)
    await again.settle()
    wanted = shell.engine._queues.tenants.history.list_consumed("team/q", shell.now + 60)
    assert read_record(again)[0]["cpu"] == pytest.approx(wanted["cpu"], rel=1e-6)
    # Its own writes come back, and change nothing.
    usage["lastUpdate"] = "2027-01-15T08:00:00Z"
    again.put(body)
    assert read_record(again)[0]["cpu"] == pytest.approx(wanted["cpu"], rel=1e-6)


def test_without_a_setting_half_counts_after_a_week() -> None:
    assert HistorySettings().half_life_seconds == 7 * 24 * 3600


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"fairSharing": 7},
        {"fairSharing": {"admissionFairSharingStatus": {"lastUpdate": "soon"}}},
        {"fairSharing": {"admissionFairSharingStatus": {"consumedResources": [1]}}},
    ],
)
def test_a_status_that_says_nothing_of_it_is_no_mistake(status: Any) -> None:
    body = cases.make_local_queue("team/q", "q")
    found = kueue.LocalQueue(spec=body["spec"], status=status)
    assert reading.read_local_queue(found).consumed_at == 0.0
