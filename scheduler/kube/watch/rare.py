"""The rare kinds: listed before the first pod and when kopf restarts, watched by kopf, compared at intervals."""

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
from scheduler.kube.client import ApiClient, backoff
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
    """Reads and hears the rare ones of some sources.

    Args:
        sources: the table, or a part of it.
        put: takes all that is heard of, as events.

    Attributes:
        troubles: what keeps a source from being read, by its name.
    """

    def __init__(self, sources: Iterable[Source[Any]], put: Put) -> None:
        self._sources = [source for source in sources if source.kind.is_rare]
        self._put = put
        self.troubles: dict[str, Trouble] = {}
        # Names of those that the API server did not serve at the start, and of those kopf has told of.
        self._absent: set[str] = set()
        self._heard: set[str] = set()
        # The versions of the objects that were handed in, by source and key.
        self._versions: dict[str, dict[str, str]] = {}
        # How many changes kopf has told of, by source.
        self._changes: Counter[str] = Counter()

    def register(self, registry: kopf.OperatorRegistry) -> None:
        """Let kopf, which runs in a thread of its own, tell the running loop of what changes."""
        import kopf  # noqa: PLC0415 - it takes a fifth of a second, and a start does not wait for it

        loop = asyncio.get_running_loop()
        for source in self._sources:
            kind = source.kind
            where = kind.group, kind.version, kind.plural
            register = kopf.on.event(*where, registry=registry, id=source.name)
            register(self._handler(source, loop))

    async def read(self, api: ApiClient) -> None:
        """Hand in all there is; tries until it can be read, so that no pod is placed without."""
        for source in self._sources:
            await self._read_in_the_end(api, source)

    async def _read_in_the_end(self, api: ApiClient, source: Source[wire.Object]) -> None:
        attempt = 0
        while True:
            try:
                await self._read(api, source)
            except _UNREAD as error:
                self._note(source, error)
                wait = backoff(attempt, first=0.5, most=5.0)
                attempt += 1
                _log.warning(
                    "the API server cannot be read yet", error=str(error), retry_seconds=wait
                )
                await asyncio.sleep(wait)
            else:
                self.troubles.pop(source.name, None)
                return

    async def relist(self, api: ApiClient) -> None:
        """Compare what is known with fresh lists: kopf does not tell of what goes while it lists anew."""
        for source in self._sources:
            changes = self._changes[source.name]
            try:
                found = await _all(api, source)
            except _UNREAD as error:
                # It is compared next time.
                self._note(source, error)
                continue
            self.troubles.pop(source.name, None)
            if changes == self._changes[source.name]:
                self._take(source, found)

    async def follow(self, api: ApiClient) -> None:
        """Hand in what there is of kinds that were not served at the start, until kopf tells of them.

        kopf looks for a new kind when its CRD changes; the API server may offer the kind only after the
        last of these changes, and then kopf never finds it.
        """
        late = [source for source in self._sources if source.name in self._absent]
        await asyncio.gather(*(self._follow(api, source) for source in late))

    def _note(self, source: Source[wire.Object], error: Exception) -> None:
        self.troubles[source.name] = troubles.after(self.troubles.get(source.name), error)

    async def _read(self, api: ApiClient, source: Source[wire.Object]) -> None:
        try:
            found = await _all(api, source)
        except ApiError as error:
            if not (source.kind.absent and answers.is_not_found(error)):
                raise
            if source.name not in self._absent:
                self._absent.add(source.name)
                _log.warning(source.kind.absent, needed_by=source.kind.needed_by)
            return
        self._absent.discard(source.name)
        self._take(source, found)

    async def _follow(self, api: ApiClient, source: Source[wire.Object]) -> None:
        while source.name not in self._heard:
            await asyncio.sleep(_LATE_SECONDS)
            try:
                found = await _all(api, source)
            except _UNREAD:
                continue  # not there yet, and the rest of trouble others tell of
            if source.name in self._heard:
                return
            self._take(source, found)

    def _take(self, source: Source[wire.Object], found: list[wire.Object]) -> None:
        """All objects of a source: hand in those that are new or changed, and those that are gone."""
        known = self._versions.get(source.name, {})
        there = {kinds.make_key(one): one.metadata.resource_version for one in found}
        for one in found:
            version = one.metadata.resource_version
            if not version or known.get(kinds.make_key(one)) != version:
                self._put(source.tell_change(one, is_gone=False))
        for key in sorted(known.keys() - there.keys()):
            self._put(events.Gone(source.kind.name, key))
        self._versions[source.name] = there

    def _handler(self, source: Source[wire.Object], loop: asyncio.AbstractEventLoop) -> Any:
        async def hear(event: Any, body: Any, **_: Any) -> None:
            is_gone = event["type"] == "DELETED"
            found = msgspec.convert(dict(body), source.kind.shape)
            loop.call_soon_threadsafe(partial(self._hear, source, found, is_gone=is_gone))

        return hear

    def _hear(self, source: Source[wire.Object], found: wire.Object, *, is_gone: bool) -> None:
        """Kopf tells of a change."""
        self._heard.add(source.name)
        self._changes[source.name] += 1
        versions, key = self._versions.setdefault(source.name, {}), kinds.make_key(found)
        if is_gone:
            versions.pop(key, None)
        else:
            versions[key] = found.metadata.resource_version
        self._put(source.tell_change(found, is_gone=is_gone))


async def _all(api: ApiClient, source: Source[wire.Object]) -> list[wire.Object]:
    found, _ = await listing.whole(api, source.kind.path, source.params, source.read)
    return found
