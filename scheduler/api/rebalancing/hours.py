"""The hours of a week at which pods may be moved."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple

from scheduler.api import values
from scheduler.errors import BadInput

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
WINDOWS_MAX = 50
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
# No name of a time zone is longer.
_ZONE_MAX = 64


class Window(NamedTuple):
    """A part of some days of the week; one that ends before it begins lasts into the next day.

    Attributes:
        days: the days on which it begins, from 0 for Monday.
        begin, end: minutes since midnight; equal ones are a whole day.
    """

    days: frozenset[int]
    begin: int
    end: int

    def has(self, day: int, minute: int) -> bool:
        """Whether a minute of a day of the week is within the window."""
        if self.begin < self.end:
            return day in self.days and self.begin <= minute < self.end
        is_first_day = day in self.days and minute >= self.begin
        return is_first_day or ((day - 1) % len(DAYS) in self.days and minute < self.end)


class Hours(NamedTuple):
    """The hours of a week by the clocks of one place; all hours without windows."""

    zone: tzinfo = UTC
    windows: tuple[Window, ...] = ()

    def has(self, at: float) -> bool:
        """Whether a time, in seconds since 1970, is within the hours."""
        if not self.windows:
            return True
        local = datetime.fromtimestamp(at, self.zone)
        minute = local.hour * 60 + local.minute
        return any(window.has(local.weekday(), minute) for window in self.windows)

    def find_next(self, at: float) -> float:
        """Find the first time from ``at`` on that is within the hours, to the minute; both in seconds since 1970."""
        if self.has(at):
            return at
        # Minute by minute, since clocks are set forward and back. Within two weeks a window comes, even if one does not
        # exist on the day on which clocks are set forward.
        minutes = range(int(at) // 60 + 1, int(at) // 60 + 2 * len(DAYS) * 24 * 60 + 1)
        return next(minute * 60.0 for minute in minutes if self.has(minute * 60.0))


ALL_HOURS = Hours()


def read_hours(raw: Any, field: str) -> Hours:
    """Read ``spec.hours``.

    Raises:
        BadInput: a field is not what is allowed; the error names it.
    """
    body = values.read_mapping(raw, field)
    values.refuse_unknown(body, field, ("timeZone", "windows"))
    zone = body.get("timeZone", "UTC")
    listed = values.read_items(body.get("windows"), f"{field}.windows", dict)
    if len(listed) > WINDOWS_MAX:
        raise BadInput(
            f"{field}.windows", f"has {len(listed)} items; at most {WINDOWS_MAX} are allowed"
        )
    windows = tuple(_read_window(one, f"{field}.windows[{i}]") for i, one in enumerate(listed))
    return Hours(_read_zone(zone, f"{field}.timeZone"), windows)


def _read_zone(raw: Any, field: str) -> tzinfo:
    try:
        if isinstance(raw, str) and 0 < len(raw) <= _ZONE_MAX:
            return zoneinfo.ZoneInfo(raw)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        pass
    problem = f"{values.quote(raw)} is not a time zone: write one of the IANA database, such as Europe/Berlin or UTC"
    raise BadInput(field, problem)


def _read_window(raw: Mapping[str, Any], field: str) -> Window:
    values.refuse_unknown(raw, field, ("days", "begin", "end"))
    days = values.read_items(raw.get("days"), f"{field}.days", str)
    for i, day in enumerate(days):
        if day not in DAYS:
            problem = f"{values.quote(day)} is not a day; allowed are {', '.join(DAYS)}"
            raise BadInput(f"{field}.days[{i}]", problem)
    return Window(
        frozenset(map(DAYS.index, days or DAYS)),
        _read_minute(raw.get("begin"), f"{field}.begin"),
        _read_minute(raw.get("end"), f"{field}.end"),
    )


def _read_minute(raw: Any, field: str) -> int:
    found = _TIME.fullmatch(raw) if isinstance(raw, str) else None
    if found is None:
        raise BadInput(
            field,
            f"{values.quote(raw)} is not a time of day: write 00:00 to 23:59, in quotation marks",
        )
    return int(found[1]) * 60 + int(found[2])
