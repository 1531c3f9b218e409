"""The rare kinds: listed before the first pod and when kopf restarts, watched by kopf, and compared at intervals."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from scheduler.api import kinds, wire
from scheduler.api.door import events
from scheduler.errors import ApiError
from scheduler.kube import answers, troubles
from scheduler.kube.client import ApiClient, get_backoff
from scheduler.kube.troubles import Trouble
from scheduler.kube.watch import listing
from scheduler.kube.watch.listing import Expired
from scheduler.kube.watch.sources import Put, Source

if TYPE_CHECKING:
    import kopf

_LATE_SECONDS = 5.0
_UNREAD = (ApiError, Expired, msgspec.MsgspecError)
_log = structlog.get_logger("evenkeel")


class Rare:
    """Reads the sources of rare kinds, and takes their changes from kopf.

    Args:
        sources: all sources; only those of rare kinds count.
        put: takes all that is read and all changes, as events.

    Attributes:
        troubles: what keeps a source from being read, by its name.
    """

    def __init__(self, sources: Iterable[Source[Any]], put: Put) -> None:
        self._sources = [source for source in sources if source.kind.is_rare]
        self._put = put
        self.troubles: dict[str, Trouble] = {}
        # Names of the sources that the API server did not serve at the start, and of those with changes from kopf.
        self._absent: set[str] = set()
        self._has_news: set[str] = set()
        # The versions of the objects that were handed in, by source and key.
        self._versions: dict[str, dict[str, str]] = {}
        # How many changes have come from kopf, by source.
        self._changes: Counter[str] = Counter()

    def register_handlers(self, registry: kopf.OperatorRegistry) -> None:
        """Let kopf, which runs in a thread of its own, hand changes to the running loop."""
        import kopf  # noqa: PLC0415 - it takes a fifth of a second, for which a start does not wait

        loop = asyncio.get_running_loop()
        for source in self._sources:
            kind = source.kind
            where = kind.group, kind.version, kind.plural
            register = kopf.on.event(*where, registry=registry, id=source.name)
            register(self._make_handler(source, loop))

    async def read_all(self, api: ApiClient) -> None:
        """Hand in all objects; try until they can be read, so that no pod is placed without them."""
        for source in self._sources:
            await self._read_until_done(api, source)

    async def _read_until_done(self, api: ApiClient, source: Source[wire.Object]) -> None:
        attempt = 0
        while True:
            try:
                await self._read_source(api, source)
            except _UNREAD as error:
                self._note_trouble(source, error)
                wait = get_backoff(attempt, first=0.5, most=5.0)
                attempt += 1
                _log.warning(
                    "the API server cannot be read yet", error=str(error), retry_seconds=wait
                )
                await asyncio.sleep(wait)
            else:
                self.troubles.pop(source.name, None)
                return

    async def relist(self, api: ApiClient) -> None:
        """Compare what is known with fresh lists: kopf does not notice what is deleted while it lists again."""
        for source in self._sources:
            changes = self._changes[source.name]
            try:
                found = await _read_objects(api, source)
            except _UNREAD as error:
                # The source is compared next time.
                self._note_trouble(source, error)
                continue
            self.troubles.pop(source.name, None)
            if changes == self._changes[source.name]:
                self._take_list(source, found)

    async def follow_late(self, api: ApiClient) -> None:
        """Hand in the objects of kinds that were not served at the start, until kopf watches them.

        kopf looks for a new kind when its CRD changes; the API server may offer the kind only after the
        last of these changes, and then kopf never finds it.
        """
        late = [source for source in self._sources if source.name in self._absent]
        await asyncio.gather(*(self._follow_source(api, source) for source in late))

    def _note_trouble(self, source: Source[wire.Object], error: Exception) -> None:
        self.troubles[source.name] = troubles.add_failure(self.troubles.get(source.name), error)

    async def _read_source(self, api: ApiClient, source: Source[wire.Object]) -> None:
        try:
            found = await _read_objects(api, source)
        except ApiError as error:
            if not (source.kind.absent and answers.is_not_found(error)):
                raise
            if source.name not in self._absent:
                self._absent.add(source.name)
                _log.warning(source.kind.absent, needed_by=source.kind.needed_by)
            return
        self._absent.discard(source.name)
        self._take_list(source, found)

    async def _follow_source(self, api: ApiClient, source: Source[wire.Object]) -> None:
        while source.name not in self._has_news:
            await asyncio.sleep(_LATE_SECONDS)
            try:
                found = await _read_objects(api, source)
            except _UNREAD:
                continue  # not served yet; other trouble is reported elsewhere
            if source.name in self._has_news:
                return
            self._take_list(source, found)

    def _take_list(self, source: Source[wire.Object], found: list[wire.Object]) -> None:
        """Take all objects of a source: hand in those that are new or changed, and those that are gone."""
        known = self._versions.get(source.name, {})
        versions = {kinds.make_key(one): one.metadata.resource_version for one in found}
        for one in found:
            version = one.metadata.resource_version
            if not version or known.get(kinds.make_key(one)) != version:
                self._put(source.make_change_event(one, is_gone=False))
        for key in sorted(known.keys() - versions.keys()):
            self._put(events.Gone(source.kind.name, key))
        self._versions[source.name] = versions

    def _make_handler(self, source: Source[wire.Object], loop: asyncio.AbstractEventLoop) -> Any:
        async def handle(event: Any, body: Any, **_: Any) -> None:
            is_gone = event["type"] == "DELETED"
            found = msgspec.convert(dict(body), source.kind.shape)
            loop.call_soon_threadsafe(partial(self._take_change, source, found, is_gone=is_gone))

        return handle

    def _take_change(
        self, source: Source[wire.Object], found: wire.Object, *, is_gone: bool
    ) -> None:
        """Take a change that comes from kopf."""
        self._has_news.add(source.name)
        self._changes[source.name] += 1
        versions, key = self._versions.setdefault(source.name, {}), kinds.make_key(found)
        if is_gone:
            versions.pop(key, None)
        else:
            versions[key] = found.metadata.resource_version
        self._put(source.make_change_event(found, is_gone=is_gone))


async def _read_objects(api: ApiClient, source: Source[wire.Object]) -> list[wire.Object]:
    found, _ = await listing.read_list(api, source.kind.path, source.params, source.read)
    return found
