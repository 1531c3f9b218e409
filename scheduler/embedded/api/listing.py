"""Lists: selectors, versions, and pages that all show one moment."""

import base64
import json
from collections.abc import Mapping
from typing import NamedTuple

from scheduler.embedded.store import selectors
from scheduler.embedded.store.kinds import Kind
from scheduler.embedded.store.statuses import (
    Cause,
    bad_request,
    expired,
    forbidden_field,
    internal,
    invalid,
    too_large_version,
    unsupported_value,
)
from scheduler.embedded.store.store import Record, Store

Query = Mapping[str, str]

# So many moments are kept: a client that pages slower than so many other lists must start again (410).
_KEPT_SNAPSHOTS = 64
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can"
    " start a new list without the continue parameter, or use the continue token in this response"
    " to retrieve the remainder of the results. Continuing with the provided token results in an"
    " inconsistent list - objects that were created, modified, or deleted between the time the"
    " first chunk was returned and now may show up in the list."
)


class Page(NamedTuple):
    """The answer to one list request."""

    records: list[Record]
    version: int
    continues: str = ""
    remaining: int | None = None


class Lister:
    """Answers list requests; remembers the moments whose pages are not all read yet."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._snapshots: dict[tuple[str, int], list[Record]] = {}

    def read_page(self, kind: Kind, namespace: str, query: Query) -> Page:
        """Return one page of a list."""
        check_list_options(query)
        selector = selectors.parse_selector(
            kind, namespace, query.get("labelSelector", ""), query.get("fieldSelector", "")
        )
        limit = read_number(query.get("limit", ""), "limit")
        token = query.get("continue", "")
        start: tuple[str, str] | None = None
        if token:
            version, start = _read_token(token)
            records = self._read_snapshot(kind, version)
        else:
            version = self._store.version
            records = self._list_moment(kind, query)
            if query.get("resourceVersionMatch") == "Exact":
                version = int(query["resourceVersion"])
        found = [
            record
            for record in records
            if (start is None or record.key > start) and selector.matches(*record.key, record.body)
        ]
        if not limit or len(found) <= limit:
            return Page(found, version)
        if not token:
            self._keep(kind, version, records)
        last = found[limit - 1].key
        # As in the real server, the remaining items are counted only if no selector leaves any out.
        whole = not selector.tests and selector.name is None
        remaining = len(found) - limit if whole else None
        return Page(found[:limit], version, _write_token(version, last), remaining)

    def _list_moment(self, kind: Kind, query: Query) -> list[Record]:
        """Return the objects at the requested version; only "Exact" can request the past."""
        text = query.get("resourceVersion", "")
        asked = read_version(text)
        current = self._store.version
        if asked > current:
            raise too_large_version(asked, current)
        bucket = self._store.get_bucket(kind.bucket)
        if query.get("resourceVersionMatch") != "Exact":
            return bucket.list_ordered()
        changes = bucket.list_since(asked)
        if changes is None:
            raise expired(f"The resourceVersion for the provided list is too old: {asked}")
        past = dict(bucket.objects)
        for change in reversed(changes):
            if change.previous is None:
                past.pop(change.record.key, None)
            else:
                past[change.record.key] = change.previous
        return [past[key] for key in sorted(past)]

    def _keep(self, kind: Kind, version: int, records: list[Record]) -> None:
        self._snapshots[kind.bucket, version] = records
        while len(self._snapshots) > _KEPT_SNAPSHOTS:
            del self._snapshots[next(iter(self._snapshots))]

    def _read_snapshot(self, kind: Kind, version: int) -> list[Record]:
        records = self._snapshots.get((kind.bucket, version))
        if records is None or version < self._store.get_bucket(kind.bucket).compacted:
            raise expired(_TOO_OLD)
        return records


def read_version(text: str, *, watch: bool = False) -> int:
    """Read a resourceVersion; empty counts as 0."""
    if not text:
        return 0
    try:
        return int(text)
    except ValueError:
        why = (
            f'resourceVersion: Invalid value: "{text}":'
            f' strconv.ParseUint: parsing "{text}": invalid syntax'
        )
        # In a watch the same mistake counts as a failure of the server.
        raise (
            internal(why) if watch else bad_request(f"invalid resource version: {why}")
        ) from None


def read_number(text: str, name: str) -> int:
    """Read a whole number of the query; empty counts as 0."""
    if not text:
        return 0
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax ({name})') from None


def read_truth(text: str) -> bool:
    """Read a boolean of the query as Go does; present but empty counts as true."""
    return text.lower() not in {"false", "f", "0"}


def check_list_options(query: Query) -> None:
    """Refuse combinations of options that a list does not have."""
    causes: list[Cause] = []
    match = query.get("resourceVersionMatch", "")
    field = "resourceVersionMatch"
    if match:
        version = query.get("resourceVersion", "")
        if not version:
            why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            causes.append(forbidden_field(field, why))
        if query.get("continue"):
            why = "resourceVersionMatch is forbidden when continue is provided"
            causes.append(forbidden_field(field, why))
        if match not in {"Exact", "NotOlderThan"}:
            causes.append(unsupported_value(field, match, ["Exact", "NotOlderThan", ""]))
        if match == "Exact" and version == "0":
            why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            causes.append(forbidden_field(field, why))
    if "sendInitialEvents" in query:
        why = "sendInitialEvents is forbidden for list"
        causes.append(forbidden_field("sendInitialEvents", why))
    if causes:
        raise invalid("ListOptions.meta.k8s.io", "", causes)


def check_watch_options(query: Query) -> None:
    """Refuse combinations of options that a watch does not have."""
    causes: list[Cause] = []
    match = query.get("resourceVersionMatch", "")
    field = "resourceVersionMatch"
    if "sendInitialEvents" in query:
        if match != "NotOlderThan":
            why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            causes.append(forbidden_field(field, why))
    elif match:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(forbidden_field(field, why))
    if match and match != "NotOlderThan":
        causes.append(unsupported_value(field, match, ["NotOlderThan"]))
    if causes:
        raise invalid("ListOptions.meta.k8s.io", "", causes)


def _write_token(version: int, last: tuple[str, str]) -> str:
    token = {"v": "meta.k8s.io/v1", "rv": version, "start": "\0".join(last)}
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")


def _read_token(text: str) -> tuple[int, tuple[str, str]]:
    try:
        token = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        namespace, _, name = token["start"].partition("\0")
        return int(token["rv"]), (namespace, name)
    except (ValueError, KeyError, TypeError):
        raise bad_request(f"continue key is not valid: {text}") from None
