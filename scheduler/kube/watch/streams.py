"""Lists and watches of kinds with many objects: a stream lists, then watches, for ever.

Each stream is one task. A list comes in pages, and each page is handed over when it is read. A watch resumes from the
last version that it saw, bookmarks included; after 410 Gone, the stream lists again and compares. A stream that
receives nothing for longer than bookmarks take is dead, and reconnects.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Generic, Protocol, TypeVar

import msgspec
import structlog

from scheduler.api import wire
from scheduler.api.kind import Kind
from scheduler.errors import ApiError
from scheduler.kube import answers, client, troubles
from scheduler.kube.client import ApiClient
from scheduler.kube.troubles import Trouble
from scheduler.kube.watch import listing
from scheduler.kube.watch.listing import Expired
from scheduler.kube.watch.sources import Put, Source

# The API server sends a bookmark about once a minute.
_SILENCE_SECONDS = 90.0
# After so long a kind that is not served is looked for again.
_ABSENT_SECONDS = 30.0
_log = structlog.get_logger("evenkeel.streams")


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Bookmarked(msgspec.Struct):
    metadata: wire.Meta


class _Bookmark(msgspec.Struct):
    """A bookmark; its object has a version and, for pods, ``containers: null``, which no pod has."""

    object: _Bookmarked


class _Failure(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""


class _Error(msgspec.Struct):
    type: str
    object: _Failure


_events = msgspec.json.Decoder(_Event)
_errors = msgspec.json.Decoder(_Error)
_bookmarks = msgspec.json.Decoder(_Bookmark)


class Versioned(Protocol):
    """An object as the API server keeps it."""

    @property
    def metadata(self) -> wire.Meta:
        """The metadata, with the version to go on from."""


V = TypeVar("V", bound=Versioned)


class Stream(Generic[V]):
    """One source, listed and watched.

    Attributes:
        source: what is read.
        alive_at: the loop time of the last sign of life; 0 before the first list.
        kind: the kind of its objects, in the version that the API server served last.
        n_lists: how often the stream had to list, the first time included.
        trouble: what keeps the source from being read; None while nothing does.
    """

    def __init__(self, source: Source[V], api: ApiClient, put: Put) -> None:
        """``put`` takes all that is read, as events."""
        self.source, self.kind = source, source.kind
        self._api, self._put = api, put
        self._version = ""
        self._relist_requested = asyncio.Event()
        self._listed = asyncio.Event()
        # Whether the API server did not serve the kind at the last look.
        self._is_absent = False
        self.alive_at = 0.0
        self.n_lists = 0
        self.trouble: Trouble | None = None

    @property
    def name(self) -> str:
        """Name of the stream in logs and metrics."""
        return self.source.name

    @property
    def is_listed(self) -> bool:
        """Whether the list on hand is complete."""
        return self._listed.is_set()

    def get_age(self, now: float) -> float:
        """Return the seconds since the last sign of life."""
        return now - self.alive_at if self.alive_at else float("inf")

    async def relist(self) -> None:
        """List again from the API server's newest state, and return when that is handed over."""
        self.request_list()
        await self._listed.wait()

    def request_list(self) -> None:
        """Request another list."""
        self._listed.clear()
        self._relist_requested.set()

    async def run(self) -> None:
        """List and watch until cancelled."""
        attempt, broke_at = 0, 0.0
        while True:
            try:
                if not self._version or self._relist_requested.is_set():
                    self._relist_requested.clear()
                    # If the list fails, there is no version to watch from, and the list is tried again.
                    self._version = ""
                    if not await self._list_objects():
                        await self._wait_until_served()
                        continue
                await self._watch_until_relist()
                attempt = 0
            except Expired:
                self._version = ""
                _log.info("watch expired, listing again", stream=self.name)
            except (ApiError, OSError, TimeoutError, msgspec.MsgspecError) as error:
                # aiohttp's client errors are OSErrors or wrapped; what cannot be decoded is listed again.
                if self.alive_at > broke_at:
                    attempt = 0
                broke_at = asyncio.get_running_loop().time()
                self.trouble = troubles.add_failure(self.trouble, error)
                wait = client.get_backoff(attempt, first=0.2, most=5.0)
                attempt += 1
                _log.warning("stream broke", stream=self.name, error=str(error), retry_seconds=wait)
                await asyncio.sleep(wait)

    async def _list_objects(self) -> bool:
        """List all objects, and hand them over; return whether the API server serves the kind."""
        for kind in self.source.kind.list_versions():
            if await self._list_version(kind):
                self.kind = kind
                return True
        if not self._is_absent:
            self._is_absent = True
            # Most clusters have a few of these kinds.
            _log.info(self.kind.absent, needed_by=self.kind.needed_by)
        # Without the kind there is no object of it.
        self._put(self.source.make_page_event([], is_first=True, is_last=True))
        self._end_list()
        return False

    async def _list_version(self, kind: Kind) -> bool:
        """List all objects in one version, and hand them over; return whether the API server serves it."""
        source = self.source
        is_first = True
        pages = listing.read_pages(self._api, source.find_path(kind), source.params, source.read)
        try:
            async with contextlib.aclosing(pages):
                async for page in pages:
                    event = source.make_page_event(
                        page.items, is_first=is_first, is_last=page.is_last
                    )
                    self._put(event)
                    is_first = False
        except Expired as error:
            # Unlike a watch that has expired, a list that expires again and again has to wait in between.
            message = f"list {self.name}: it changed faster than it could be read"
            raise answers.make_expired_error(message) from error
        except ApiError as error:
            if not (kind.absent and answers.is_not_found(error)):
                raise
            return False
        self._is_absent = False
        self._version = page.version
        self._end_list()
        return True

    def _end_list(self) -> None:
        # Only a complete list is a sign of life: one page alone says nothing of the rest.
        self._note_sign_of_life()
        self.n_lists += 1
        # A request that came while this list was under way needs a newer list.
        if not self._relist_requested.is_set():
            self._listed.set()

    async def _wait_until_served(self) -> None:
        """Wait until it is time to look again whether the API server serves the kind."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ABSENT_SECONDS):
                await self._relist_requested.wait()

    async def _watch_until_relist(self) -> None:
        watching = asyncio.ensure_future(self._watch())
        requesting = asyncio.ensure_future(self._relist_requested.wait())
        try:
            await asyncio.wait({watching, requesting}, return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                watching.result()
        finally:
            for task in (watching, requesting):
                task.cancel()
            await asyncio.gather(watching, requesting, return_exceptions=True)

    async def _watch(self) -> None:
        params = {
            **self.source.params,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
        }
        try:
            path = self.source.find_path(self.kind)
            async with self._api.stream(path, params, silence_seconds=_SILENCE_SECONDS) as response:
                if answers.is_failure(response.status):
                    raise _make_watch_error(
                        answers.make_error(response.status, await response.read())
                    )
                self._note_sign_of_life()
                # A line can be a megabyte in many chunks: the chunks are joined once, when the line is complete.
                begun: list[bytes] = []
                async for chunk in response.content.iter_any():
                    self._note_sign_of_life()
                    first, *lines = chunk.split(b"\n")
                    begun.append(first)
                    if lines:
                        self._take_line(b"".join(begun))
                        begun = [lines.pop()]
                        for line in lines:
                            self._take_line(line)
        except client.TRANSPORT_ERRORS as error:
            raise ApiError(0, "Connection", f"watch {self.name}: {error!r}") from error

    def _take_line(self, line: bytes) -> None:
        if not line:
            return
        if line.startswith(b'{"type":"ERROR"'):
            failure = _errors.decode(line).object
            raise _make_watch_error(ApiError(failure.code, failure.reason, failure.message))
        if line.startswith(b'{"type":"BOOKMARK"'):
            self._version = _bookmarks.decode(line).object.metadata.resource_version
            return
        event = _events.decode(line)
        found = self.source.read(event.object)
        is_gone = event.type == "DELETED"
        self._put(self.source.make_change_event(found, is_gone=is_gone))
        self._version = found.metadata.resource_version

    def _note_sign_of_life(self) -> None:
        self.trouble = None
        self.alive_at = asyncio.get_running_loop().time()


def _make_watch_error(error: ApiError) -> Exception:
    """Return the exception with which a watch ends after an error."""
    return Expired() if answers.is_expired(error) else error
