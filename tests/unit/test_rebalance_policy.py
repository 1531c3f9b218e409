"""What the spec of a RebalancePolicy means, and the hours that it names."""

import datetime as dt
import zoneinfo
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import wire
from scheduler.api.rebalancing import policy
from scheduler.api.rebalancing.hours import DAYS, read_hours
from scheduler.api.rebalancing.policy import When, read_policy
from scheduler.api.steering import RebalancePolicy
from scheduler.errors import BadInput
from scheduler.rebalance.budgets import Outcome, PastMove, write_moves

Json = dict[str, Any]
_ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu")
# Of 2026 and 2027, with all changes of the clocks.
_TIMES = st.integers(1_767_225_600, 1_830_297_600)


def read(**spec: Any) -> Any:
    return read_policy(RebalancePolicy(metadata=wire.Meta(name="p"), spec=spec))


def test_a_policy_without_fields_has_the_defaults() -> None:
    found = read()
    assert (found.is_dry, found.when, found.hours.windows) == (False, When.ALWAYS, ())
    assert (found.every, found.min_run, found.move_seconds) == (600.0, 600.0, 600.0)
    assert (found.per_hour, found.per_namespace) == (10, 5)
    assert found.namespaces.matches({})
    assert found.pods.matches({"any": "label"})


def test_a_namespace_has_no_more_than_all_together() -> None:
    found = read(budgets={"movesPerHour": 3}, when="PodsWait", every="90s", minRun="2h")
    assert (found.per_hour, found.per_namespace, found.when) == (3, 3, When.PODS_WAIT)
    assert (found.every, found.min_run) == (90.0, 7200.0)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"dry": True}, "spec.dry: unknown field; allowed are dryRun, when,"),
        ({"dryRun": "no"}, "spec.dryRun: 'no' is neither true nor false"),
        ({"when": "Never"}, "spec.when: 'Never' is unknown; allowed are Always and PodsWait"),
        ({"when": []}, "spec.when: [] is unknown"),
        ({"every": "10s"}, "spec.every: '10s' is too short; at least 60 s are allowed"),
        ({"every": 600}, "spec.every: 600 is not a duration"),
        ({"minRun": "soon"}, "spec.minRun: 'soon' is not a duration"),
        ({"budgets": {"perDay": 1}}, "spec.budgets.perDay: unknown field"),
        ({"budgets": {"movesPerHour": 101}}, "spec.budgets.movesPerHour: 101 is not an integer within 1..100"),
        ({"hours": {"timeZone": "../etc/passwd"}}, "spec.hours.timeZone: '../etc/passwd' is not a time zone"),
        ({"hours": {"timeZone": "Mars/Base"}}, "spec.hours.timeZone: 'Mars/Base' is not a time zone"),
        ({"hours": {"timeZone": ""}}, "spec.hours.timeZone: '' is not a time zone"),
        ({"hours": {"timeZone": "UTC\0"}}, "spec.hours.timeZone: 'UTC\\x00' is not a time zone"),
        ({"hours": {"windows": [{"begin": "1:00", "end": "02:00"}]}}, "spec.hours.windows[0].begin: '1:00' is not a time of day"),
        ({"hours": {"windows": [{"begin": "01:00"}]}}, "spec.hours.windows[0].end: None is not a time of day"),
        ({"hours": {"windows": [{"begin": "01:00", "end": "02:00", "days": ["Sunday"]}]}}, "spec.hours.windows[0].days[0]: 'Sunday' is not a day"),
        ({"hours": {"windows": [{}] * 51}}, "spec.hours.windows: has 51 items; at most 50 are allowed"),
        ({"podSelector": {"matchLabels": {"a": 1}}}, "spec.podSelector.matchLabels"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(spec: Json, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        read(**spec)
    assert str(refused.value).startswith(said)


def _is_open(windows: list[Json], zone: str, at: int) -> bool:
    """The rule word by word: a window begins on its days, and lasts until its end, perhaps on the next day."""
    local = dt.datetime.fromtimestamp(at, zoneinfo.ZoneInfo(zone))
    clock = f"{local:%H:%M}"
    yesterday = DAYS[(local.weekday() + 6) % 7]
    for window in windows:
        begin, end = window["begin"], window["end"]
        days = window.get("days") or DAYS
        if end > begin:
            if DAYS[local.weekday()] in days and begin <= clock < end:
                return True
        elif (DAYS[local.weekday()] in days and clock >= begin) or (
            yesterday in days and clock < end
        ):
            return True
    return not windows


_CLOCKS = st.builds(lambda hour, minute: f"{hour:02}:{minute:02}", st.integers(0, 23), st.sampled_from((0, 1, 30, 59)))  # fmt: skip
_WINDOWS = st.lists(
    st.fixed_dictionaries(
        {"begin": _CLOCKS, "end": _CLOCKS},
        optional={"days": st.lists(st.sampled_from(DAYS), unique=True)},
    ),
    max_size=3,
)


@given(_WINDOWS, st.sampled_from(_ZONES), _TIMES)
def test_hours_are_as_the_clocks_there_say(windows: list[Json], zone: str, at: int) -> None:
    hours = read_hours({"timeZone": zone, "windows": windows}, "spec.hours")
    assert hours.has(at) == _is_open(windows, zone, at)
    found = hours.find_next(at)
    assert _is_open(windows, zone, int(found))
    if not hours.has(at):
        assert found > at
        assert found % 60 == 0
        # No earlier minute is within the hours; of some of them at least it is checked.
        before = range(int(at) // 60 + 1, int(found) // 60)
        assert not any(_is_open(windows, zone, minute * 60) for minute in before[:: max(1, len(before) // 50)])  # fmt: skip
        assert not before or not _is_open(windows, zone, before[-1] * 60)


def test_a_window_that_does_not_exist_on_one_day_comes_a_week_later() -> None:
    window = {"days": ["Sun"], "begin": "02:10", "end": "02:50"}
    hours = read_hours({"timeZone": "Europe/Berlin", "windows": [window]}, "spec.hours")
    before = dt.datetime(2027, 3, 27, 8, tzinfo=dt.UTC).timestamp()
    assert hours.find_next(before) == dt.datetime(2027, 4, 4, 0, 10, tzinfo=dt.UTC).timestamp()


def test_the_schema_has_the_fields_that_are_read_and_their_defaults() -> None:
    text = (Path(__file__).parents[2] / "crds/rebalancepolicies.yaml").read_text(encoding="utf-8")
    (version,) = yaml.safe_load(text)["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    fields = schema["spec"]["properties"]
    assert tuple(fields) == policy._FIELDS
    assert tuple(fields["budgets"]["properties"]) == tuple(policy._BUDGETS)
    hours = fields["hours"]["properties"]
    filled = {key: one["default"] for key, one in fields.items() if "default" in one}
    filled["budgets"] = {
        key: one["default"] for key, one in fields["budgets"]["properties"].items()
    }
    filled["hours"] = {key: one["default"] for key, one in hours.items() if "default" in one}
    found = read(**filled)
    assert str(found.hours.zone) == "UTC"
    assert replace(found, hours=read().hours) == read()
    window = {key: "00:00" for key in hours["windows"]["items"]["properties"] if key != "days"}
    assert read_hours({"windows": [{**window, "days": list(DAYS)}]}, "x").windows
    move = schema["status"]["properties"]["moves"]["items"]["properties"]
    full = PastMove(0, "n", "p", "a", "b", Outcome.BEGUN, "why", "ReplicaSet r")
    (written,) = write_moves([full])
    assert written.keys() == move.keys()
    assert move["outcome"]["enum"] == list(Outcome)
