"""Watches: initial events, then every change, with a bookmark now and then, until the timeout."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, NamedTuple

import msgspec

from scheduler.embedded.api import bodies, tables
from scheduler.embedded.api.listing import (
    Query,
    check_watch_options,
    read_number,
    read_truth,
    read_version,
)
from scheduler.embedded.store import selectors
from scheduler.embedded.store.kinds import Kind
from scheduler.embedded.store.statuses import ApiError, expired
from scheduler.embedded.store.store import Record, Store, Watcher

Json = dict[str, Any]

# The parts that Go writes even if they are empty: typed clients need them.
_EMPTY_BODIES: dict[str, Json] = {
    "pods": {"spec": {"containers": None}, "status": {}},
    "nodes": {
        "spec": {},
        "status": {
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": dict.fromkeys(
                (
                    "machineID",
                    "systemUUID",
                    "bootID",
                    "kernelVersion",
                    "osImage",
                    "containerRuntimeVersion",
                    "kubeletVersion",
                    "kubeProxyVersion",
                    "operatingSystem",
                    "architecture",
                ),
                "",
            ),
        },
    },
}
_MIN_TIMEOUT_SECONDS = 1_800


class Options(NamedTuple):
    """The options of a watch request."""

    kind: Kind
    selector: selectors.Selector
    version: str
    initial: bool
    bookmarks: bool
    timeout: float
    # "Table" for kubectl get -w, "PartialObjectMetadata" for metadata clients.
    form: str
    include: str


def read_options(kind: Kind, namespace: str, query: Query, accepted: bodies.Accepted) -> Options:
    """Read and check the query of a watch."""
    check_watch_options(query)
    version = query.get("resourceVersion", "")
    read_version(version, watch=True)
    asked = query.get("sendInitialEvents")
    initial = version in {"", "0"} if asked is None else read_truth(asked)
    timeout = read_number(query.get("timeoutSeconds", ""), "timeoutSeconds")
    return Options(
        kind,
        selectors.parse_selector(
            kind, namespace, query.get("labelSelector", ""), query.get("fieldSelector", "")
        ),
        version,
        initial,
        read_truth(query.get("allowWatchBookmarks", "false")),
        # Timeouts are spread, so that many clients do not come back at the same time.
        timeout or _MIN_TIMEOUT_SECONDS + secrets.randbelow(_MIN_TIMEOUT_SECONDS),
        accepted.form,
        query.get("includeObject", "Metadata"),
    )


async def write_lines(
    store: Store, options: Options, *, announce: bool, bookmark_seconds: float
) -> AsyncGenerator[bytes, None]:
    """Yield the lines of a watch; lines that are due together are joined.

    ``announce`` asks for the bookmark that ends the initial events (sendInitialEvents=true).
    """
    kind = options.kind
    bucket = store.get_bucket(kind.bucket)
    watcher = Watcher(kind, options.selector, _find_encoding(options))
    try:
        _fill_backlog(store, watcher, options, announce=announce)
    except ApiError as error:
        # A valid watch fails inside the stream, with HTTP 200.
        yield msgspec.json.encode({"type": "ERROR", "object": error.make_body()}) + b"\n"
        return
    bucket.watchers.add(watcher)
    try:
        async for waiting in _wait_until_dropped(watcher, options, bookmark_seconds):
            yield waiting or make_bookmark(kind, store.version)
    finally:
        bucket.watchers.discard(watcher)


async def _wait_until_dropped(
    watcher: Watcher, options: Options, bookmark_seconds: float
) -> AsyncIterator[bytes]:
    """Yield the queued lines; empty bytes when a bookmark is due."""
    loop = asyncio.get_running_loop()
    end = loop.time() + options.timeout
    next_bookmark = loop.time() + bookmark_seconds if options.bookmarks else end + 1
    while not watcher.dropped:
        if waiting := watcher.take():
            yield waiting
        now = loop.time()
        if now >= end:
            return
        if now >= next_bookmark:
            next_bookmark = now + bookmark_seconds
            yield b""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(watcher.wait(), min(end, next_bookmark) - now)
    if waiting := watcher.take():
        yield waiting


def _find_encoding(options: Options) -> Callable[[Record], bytes] | None:
    """Return the function that writes objects; None to write them as they are, which is fast."""
    if options.form == "Table":

        def row(record: Record) -> bytes:
            table = tables.make_table(options.kind, [record], options.include)
            version = record.body["metadata"]["resourceVersion"]
            return msgspec.json.encode({**table, "metadata": {"resourceVersion": version}})

        return row
    if options.form:
        return lambda record: msgspec.json.encode(tables.make_partial(record))
    return None


def _fill_backlog(store: Store, watcher: Watcher, options: Options, *, announce: bool) -> None:
    kind, bucket = options.kind, store.get_bucket(options.kind.bucket)
    if options.initial:
        for record in bucket.list_ordered():
            watcher.offer_initial(record)
        if announce and options.bookmarks:
            watcher.push(make_bookmark(kind, store.version, initial_end=True))
        return
    asked = read_version(options.version)
    if not asked:
        return
    watcher.after = asked
    changes = bucket.list_since(asked)
    if changes is None:
        raise expired(f"too old resource version: {asked} ({bucket.compacted})")
    for change in changes:
        watcher.offer(change)


def make_bookmark(kind: Kind, version: int, *, initial_end: bool = False) -> bytes:
    """Return the line of a bookmark: an object with nothing but its version."""
    metadata: Json = {"resourceVersion": str(version)}
    if initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    body = {"metadata": metadata, **_EMPTY_BODIES.get(kind.bucket, {})}
    encoded = kind.prefix + msgspec.json.encode(body)[1:]
    return b'{"type":"BOOKMARK","object":' + encoded + b"}\n"
