"""Durations and timestamps. No driver publishes any; they are here because selectors that use them are valid."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from typing import Any

from scheduler.devices.cel.errors import CelError
from scheduler.devices.cel.overloads import Library, Work
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.values import INT_MAX, INT_MIN, Duration, Timestamp

_SECOND = 10**9
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)
_OFFSET = re.compile(r"([+-]?)([0-9]{2}):([0-9]{2})", re.ASCII)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST, _LAST = -62_135_596_800, 253_402_300_799
_LONGEST = 64


def check_span(nanos: int) -> Duration:
    """Return a duration.

    Raises:
        CelError: it is too long.
    """
    if INT_MIN <= nanos <= INT_MAX:
        return Duration(nanos)
    raise CelError("integer overflow")


def check_moment(nanos: int) -> Timestamp:
    """Return a timestamp.

    Raises:
        CelError: it is outside the years 1 to 9999.
    """
    if _FIRST <= nanos // _SECOND <= _LAST:
        return Timestamp(nanos)
    raise CelError("timestamp overflow")


def add_times(_run: Run, a: Any, b: Any) -> Any:
    """Add durations, or a duration and a timestamp."""
    total = a.nanos + b.nanos
    return check_span(total) if type(a) is type(b) else check_moment(total)


def read_duration(text: str) -> Duration:
    """Read a duration such as ``1h30m``.

    Raises:
        CelError: it is none.
    """
    rest = text[1:] if text[:1] in {"+", "-"} else text
    problem = CelError("type conversion error from 'string' to 'google.protobuf.Duration'")
    if rest == "0":
        return Duration(0)
    if not rest or len(rest) > _LONGEST:
        raise problem
    nanos, at = 0, 0
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None or not (part[1] or part[2]):
            raise problem
        fraction = part[2] or ""
        unit = _UNITS[part[3]]
        nanos += int(part[1] or 0) * unit + int(fraction or 0) * unit // 10 ** len(fraction)
        at = part.end()
    if nanos > INT_MAX:
        raise problem
    return Duration(-nanos if text[0] == "-" else nanos)


def read_timestamp(text: str) -> Timestamp:
    """Read a moment in the form of RFC 3339.

    Raises:
        CelError: it is none.
    """
    problem = CelError("type conversion error from 'string' to 'google.protobuf.Timestamp'")
    found = _MOMENT.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise problem
    try:
        moment = dt.datetime(*(int(found[i]) for i in range(1, 7)), tzinfo=dt.UTC)  # type: ignore[arg-type,misc]
    except ValueError:
        raise problem from None
    offset = 0
    if found[8] != "Z":
        hours, minutes = int(found[8][1:3]), int(found[8][4:])
        if hours > 24 or minutes > 60:
            raise problem
        offset = (hours * 60 + minutes) * 60 * (-1 if found[8][0] == "-" else 1)
    fraction = (found[7] or "")[:9].ljust(9, "0")
    seconds = (moment - _EPOCH) // dt.timedelta(seconds=1) - offset
    read = check_moment(seconds * _SECOND + int(fraction))
    read.offset = offset
    return read


def show_duration(span: Duration) -> str:
    """Write a duration in seconds."""
    sign = "-" if span.nanos < 0 else ""
    whole, rest = divmod(abs(span.nanos), _SECOND)
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    return f"{sign}{whole}{fraction}s"


def show_timestamp(moment: Timestamp) -> str:
    """Write a moment in the form of RFC 3339, at the offset at which it was written."""
    minutes = moment.offset // 60
    at = _EPOCH + dt.timedelta(seconds=moment.nanos // _SECOND + moment.offset)
    rest = moment.nanos % _SECOND
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    zone = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    return f"{at:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + fraction + (zone if minutes else "Z")


def _date(moment: Timestamp, zone: str) -> dt.datetime:
    found = _OFFSET.fullmatch(zone)
    at = _EPOCH + dt.timedelta(seconds=moment.nanos // _SECOND)
    try:
        if found is None:
            return at.astimezone(dt.UTC if zone in {"", "UTC"} else zoneinfo.ZoneInfo(zone))
        minutes = (int(found[2]) * 60 + int(found[3])) * (-1 if found[1] == "-" else 1)
        return at.astimezone(dt.timezone(dt.timedelta(minutes=minutes)))
    except (ValueError, OverflowError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise CelError(f"unknown time zone {zone}") from None


_PARTS: dict[str, Any] = {
    "getFullYear": lambda at: at.year,
    "getMonth": lambda at: at.month - 1,
    "getDayOfYear": lambda at: at.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda at: at.day - 1,
    "getDate": lambda at: at.day,
    "getDayOfWeek": lambda at: at.isoweekday() % 7,
    "getHours": lambda at: at.hour,
    "getMinutes": lambda at: at.minute,
    "getSeconds": lambda at: at.second,
}
_SPANS = {"getHours": 3600 * _SECOND, "getMinutes": 60 * _SECOND, "getSeconds": _SECOND}


def _make_part(name: str) -> Work:
    return lambda _run, moment, zone="UTC": int(_PARTS[name](_date(moment, zone)))


def _shorten(nanos: int, unit: int) -> int:
    return nanos // unit if nanos >= 0 else -(-nanos // unit)


TIMES = Library(
    functions={
        "duration(duration): duration": lambda _, a: a,
        "duration(string): duration": lambda _, a: read_duration(a),
        "timestamp(timestamp): timestamp": lambda _, a: a,
        "timestamp(int): timestamp": lambda _, a: check_moment(a * _SECOND),
        "timestamp(string): timestamp": lambda _, a: read_timestamp(a),
    },
    members={
        **{f"{name}(timestamp): int": _make_part(name) for name in _PARTS},
        **{f"{name}(timestamp, string): int": _make_part(name) for name in _PARTS},
        **{
            f"{name}(duration): int": lambda _, a, unit=unit: _shorten(a.nanos, unit)
            for name, unit in _SPANS.items()
        },
        "getMilliseconds(timestamp): int": lambda _, a: a.nanos % _SECOND // 10**6,
        "getMilliseconds(timestamp, string): int": lambda _, a, __: a.nanos % _SECOND // 10**6,
        "getMilliseconds(duration): int": lambda _, a: _shorten(a.nanos, 10**6),
    },
)
