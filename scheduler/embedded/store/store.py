"""Objects, versions, history and watchers: the etcd and the watch cache of this cluster.

A stored body is never changed in place: every write stores a new one, which may share parts with the old one, so that
a list, a page or a watcher can keep what it has seen. A body has neither ``kind`` nor ``apiVersion``, because one
object may be read through several API versions.

One counter numbers all writes, as etcd's revision does. Each bucket keeps its last ``window`` changes; a watch that
requests older ones gets 410.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from scheduler.embedded.store.kinds import Kind
from scheduler.embedded.store.selectors import Selector

Json = dict[str, Any]
Key = tuple[str, str]

_ENCODER = msgspec.json.Encoder()


class Record:
    """One version of one object: the body, and its encoding, which is made once for all readers."""

    __slots__ = ("_encoded", "body", "key", "version")

    def __init__(self, key: Key, body: Json, version: int) -> None:
        self.key = key
        self.body = body
        self.version = version
        self._encoded: dict[str, bytes] = {}

    def encode_tail(self, kind: Kind) -> bytes:
        """Return the encoded body without its opening brace, in the form of a kind."""
        # Versions of a CRD differ only in the prefix; converted forms are encoded separately.
        form = "" if kind.from_store is None else kind.api_version
        tail = self._encoded.get(form)
        if tail is None:
            body = self.body if kind.from_store is None else kind.from_store(self.body)
            tail = self._encoded[form] = _ENCODER.encode(body)[1:]
        return tail

    def encode_whole(self, kind: Kind) -> bytes:
        """Return the whole object as clients read it."""
        return kind.prefix + self.encode_tail(kind)


class Change(NamedTuple):
    """One write: the former state (None: created) and the new one."""

    version: int
    previous: Record | None
    record: Record
    deleted: bool


class Watcher:
    """One open watch: changes wait in its backlog until the connection takes them."""

    def __init__(
        self,
        kind: Kind,
        selector: Selector,
        encode: Callable[[Record], bytes] | None = None,
    ) -> None:
        self._encode = encode or (lambda record: record.encode_whole(kind))
        self.dropped = False
        self._selector = None if selector.is_everything() else selector
        self._backlog: list[bytes] = []
        self._ready = asyncio.Event()
        # Changes up to this version do not concern this watch.
        self.after = 0

    def offer(self, change: Change) -> None:
        """Queue a change if it concerns this watch.

        An object that begins to match is ADDED for this watch, and one that no longer matches is
        DELETED, whatever happened to it.
        """
        if change.version <= self.after:
            return
        selector, record, previous = self._selector, change.record, change.previous
        if selector is None:
            now, before = not change.deleted, previous is not None
        else:
            now = not change.deleted and selector.matches(*record.key, record.body)
            before = previous is not None and selector.matches(*previous.key, previous.body)
        if now:
            line = b'{"type":"MODIFIED","object":' if before else b'{"type":"ADDED","object":'
        elif before:
            line = b'{"type":"DELETED","object":'
            if not change.deleted and previous is not None:
                # As in the watch cache, this is the last state that matched, under the new version.
                record = restamp(previous, change.version)
        else:
            return
        self.push(line + self._encode(record) + b"}\n")

    def offer_initial(self, record: Record) -> None:
        """Queue an object that existed before the watch began, if it concerns the watch."""
        if self._selector is None or self._selector.matches(*record.key, record.body):
            self.push(b'{"type":"ADDED","object":' + self._encode(record) + b"}\n")

    def push(self, line: bytes) -> None:
        """Queue a line as it is."""
        self._backlog.append(line)
        self._ready.set()

    def drop(self) -> None:
        """End the watch from the server's side, as a restarted API server would."""
        self.dropped = True
        self._ready.set()

    def take(self) -> bytes:
        """Return the joined lines of the backlog, and empty it."""
        waiting = b"".join(self._backlog)
        self._backlog.clear()
        self._ready.clear()
        return waiting

    async def wait(self) -> None:
        """Wait until something is queued or the watch is dropped."""
        await self._ready.wait()


class Bucket:
    """All objects of one resource with their recent history."""

    def __init__(self, window: int) -> None:
        self.objects: dict[Key, Record] = {}
        self.watchers: set[Watcher] = set()
        self.compacted = 0
        self._window = window
        self._changes: list[Change] = []
        self._versions: list[int] = []
        self._sorted: list[Key] | None = []

    def list_ordered(self) -> list[Record]:
        """Return the objects by namespace and name, the order in which etcd lists them."""
        if self._sorted is None:
            self._sorted = sorted(self.objects)
        return [self.objects[key] for key in self._sorted]

    def list_since(self, version: int) -> list[Change] | None:
        """Return the changes after a version; None if some are no longer known."""
        if version < self.compacted:
            return None
        return self._changes[bisect_right(self._versions, version) :]

    def commit(self, change: Change) -> None:
        """Apply a change and offer it to every watcher."""
        key = change.record.key
        if change.deleted:
            del self.objects[key]
            self._sorted = None
        else:
            if change.previous is None:
                self._sorted = None
            self.objects[key] = change.record
        self._changes.append(change)
        self._versions.append(change.version)
        # The list is trimmed in steps: to cut its head on every write would cost its length each time.
        if len(self._changes) > 2 * self._window:
            self.compact(keep=self._window)
        for watcher in self.watchers:
            watcher.offer(change)

    def compact(self, keep: int) -> None:
        """Forget all but the newest changes."""
        cut = len(self._changes) - keep
        if cut > 0:
            self.compacted = self._versions[cut - 1]
            del self._changes[:cut]
            del self._versions[:cut]


class Store:
    """All buckets and the one version counter."""

    def __init__(self, window: int = 10_000) -> None:
        self.version = 1
        self._window = window
        self._buckets: dict[str, Bucket] = {}
        self._listeners: list[Callable[[str, Change], None]] = []

    def get_bucket(self, name: str) -> Bucket:
        """Return a bucket, made on first use."""
        found = self._buckets.get(name)
        if found is None:
            found = self._buckets[name] = Bucket(self._window)
        return found

    def drop_bucket(self, name: str) -> None:
        """Forget a resource and end its watches, because its CRD is gone."""
        gone = self._buckets.pop(name, None)
        for watcher in list(gone.watchers) if gone else []:
            watcher.drop()

    def get(self, bucket: str, namespace: str, name: str) -> Json | None:
        """Return a stored body, which must not be changed, or None."""
        record = self.get_bucket(bucket).objects.get((namespace, name))
        return record.body if record else None

    def list_bodies(self, bucket: str) -> Iterator[Json]:
        """Yield all stored bodies of a resource in list order; they must not be changed."""
        for record in self.get_bucket(bucket).list_ordered():
            yield record.body

    def listen(self, listener: Callable[[str, Change], None]) -> None:
        """Call a function after every write, for controllers inside the server."""
        self._listeners.append(listener)

    def put(self, bucket: str, key: Key, body: Json) -> Record:
        """Store a new version of an object; the body's metadata gets the version."""
        self.version += 1
        body["metadata"] = {**body["metadata"], "resourceVersion": str(self.version)}
        target = self.get_bucket(bucket)
        record = Record(key, body, self.version)
        self._commit(bucket, Change(self.version, target.objects.get(key), record, deleted=False))
        return record

    def remove(self, bucket: str, key: Key) -> Record:
        """Remove an object; its last state gets the version of the removal."""
        self.version += 1
        previous = self.get_bucket(bucket).objects[key]
        record = restamp(previous, self.version)
        self._commit(bucket, Change(self.version, previous, record, deleted=True))
        return record

    def compact(self, bucket: str | None = None) -> None:
        """Forget the whole history, so that every older watch gets 410 (a test's hook)."""
        for target in [self.get_bucket(bucket)] if bucket else list(self._buckets.values()):
            target.compact(keep=0)
            target.compacted = self.version

    def drop_watches(self, bucket: str | None = None) -> None:
        """End open watches from the server's side (a test's hook)."""
        for target in [self.get_bucket(bucket)] if bucket else list(self._buckets.values()):
            for watcher in list(target.watchers):
                watcher.drop()

    def _commit(self, bucket: str, change: Change) -> None:
        self.get_bucket(bucket).commit(change)
        for listener in self._listeners:
            listener(bucket, change)


def restamp(record: Record, version: int) -> Record:
    """Copy a record under another version."""
    metadata = {**record.body["metadata"], "resourceVersion": str(version)}
    return Record(record.key, {**record.body, "metadata": metadata}, version)
