"""Formats of Kubernetes: whether a text is a label, a name, a date, and what is wrong with it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from math import ceil
from typing import Any

from scheduler.devices.cel.overloads import Library, Work
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.semver import quote
from scheduler.devices.cel.urls import UrlError, parse_url
from scheduler.devices.cel.values import NONE, NamedFormat, Optional

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"
_ALPHANUMERIC = "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_SAYS = {
    _LABEL: "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and"
    " end with an alphanumeric character (e.g. 'my-name',  or '123-abc', ",
    _SUBDOMAIN: "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must"
    " start and end with an alphanumeric character (e.g. 'example.com', ",
    _LABEL_1035: "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic"
    " character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', ",
    _KEY: f"must consist of {_ALPHANUMERIC} (e.g. 'MyName',  or 'my.name',  or '123-abc', ",
    _VALUE: f"a valid label must be an empty string or consist of {_ALPHANUMERIC} (e.g. 'MyValue',  or 'my_value',  or"
    " '12345', ",
}
_COMPILED = {text: re.compile(text, re.ASCII) for text in _SAYS}
_UUID = re.compile(
    "[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE
)
_BASE64 = re.compile(
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})", re.ASCII
)
_TIME = re.compile(
    "([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))", re.ASCII
)
_DATE = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})", re.ASCII)


def _explain(pattern: str) -> str:
    return f"{_SAYS[pattern]}regex used for validation is '{pattern}')"


def _check(text: str, pattern: str, limit: int) -> list[str]:
    problems = [f"must be no more than {limit} bytes"] if len(text.encode()) > limit else []
    # What is too long is not looked at any closer than it takes to say so.
    if not _COMPILED[pattern].fullmatch(text[: 10 * limit]):
        is_dotted = pattern == _LABEL and _COMPILED[_SUBDOMAIN].fullmatch(text[: 10 * limit])
        problems.append("must not contain dots" if is_dotted else _explain(pattern))
    return problems


def _mask(text: str) -> str:
    """Put something in place of a hyphen at the end, where more of the name will follow."""
    return f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text


def _check_key(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [
            f"a valid label key {_explain(_KEY)} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems: list[str] = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in _check(prefix, _SUBDOMAIN, 253)]
    if not name:
        problems.append("name part must be non-empty")
    return problems + [f"name part {problem}" for problem in _check(name, _KEY, 63)]


def _check_uri(text: str) -> list[str]:
    try:
        parse_url(text)
    except UrlError as error:
        return [f"parse {quote(text)}: {error}"]
    return []


def _check_date(text: str) -> list[str]:
    found = _DATE.fullmatch(text)
    try:
        if found is None:
            return ["invalid date"]
        dt.date(int(found[1]) or 4, int(found[2]), int(found[3]))
    except ValueError:
        return ["invalid date"]
    return []


def _check_datetime(text: str) -> list[str]:
    date, *rest = text.lower().split("t")
    found = _TIME.fullmatch(rest[0]) if rest else None
    is_right = found and not _check_date(date) and found[1] <= "23" and found[2] <= "59" >= found[3]
    return [] if is_right else ["invalid datetime"]


def _match(pattern: re.Pattern[str], problem: str) -> Callable[[str], list[str]]:
    return lambda text: [] if pattern.fullmatch(text) else [problem]


# By the name in expressions: the format's own name, the check, and how long upstream takes its pattern to be.
_FORMATS: dict[str, tuple[str, Callable[[str], list[str]], int]] = {
    "dns1123Label": ("DNS1123Label", lambda text: _check(text, _LABEL, 63), 30),
    "dns1123LabelPrefix": ("DNS1123LabelPrefix", lambda text: _check(_mask(text), _LABEL, 63), 30),
    "dns1123Subdomain": ("DNS1123Subdomain", lambda text: _check(text, _SUBDOMAIN, 253), 60),
    "dns1123SubdomainPrefix": (
        "DNS1123SubdomainPrefix",
        lambda text: _check(_mask(text), _SUBDOMAIN, 253),
        60,
    ),
    "dns1035Label": ("DNS1035Label", lambda text: _check(text, _LABEL_1035, 63), 30),
    "dns1035LabelPrefix": (
        "DNS1035LabelPrefix",
        lambda text: _check(_mask(text), _LABEL_1035, 63),
        30,
    ),
    "qualifiedName": ("QualifiedName", _check_key, 60),
    "labelValue": ("LabelValue", lambda text: _check(text, _VALUE, 63), 40),
    "uri": ("URI", _check_uri, 1103),
    "uuid": ("uuid", _match(_UUID, "does not match the UUID format"), 70),
    "byte": ("byte", _match(_BASE64, "invalid base64"), 84),
    "date": ("date", _check_date, 71),
    "datetime": ("datetime", _check_datetime, 71),
}
_CHECKS = {name: (check, size) for name, check, size in _FORMATS.values()}


def _validate(run: Run, wanted: NamedFormat, text: str) -> Optional:
    run.toil(len(text))
    problems = _CHECKS[wanted.name][0](text)
    return Optional(problems) if problems else NONE


def _find(_run: Run, name: str) -> Optional:
    found = _FORMATS.get(name)
    return Optional(NamedFormat(found[0])) if found else NONE


def _cost(wanted: Any, text: Any) -> int:
    if type(wanted) is not NamedFormat or type(text) is not str:
        return 1
    return ceil((1 + len(text)) * 0.1) * ceil(_CHECKS[wanted.name][1] * 0.25)


def _make(name: str) -> Work:
    value = NamedFormat(_FORMATS[name][0])
    return lambda _run: value


FORMATS = Library(
    functions={
        "format.named(string): optional(named_format)": _find,
        **{f"format.{name}(): named_format": _make(name) for name in _FORMATS},
    },
    members={"validate(named_format, string): optional(list(string))": _validate},
    costs={"validate": _cost},
)
