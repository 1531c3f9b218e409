"""Acts on the ConfigMaps that configure devices: reads pods and nodes again, lets the webhook follow, and says what is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from scheduler.api import kinds
from scheduler.api.door import notes
from scheduler.api.door.notes import Note
from scheduler.kube.report.reporter import Reporter
from scheduler.kube.watch.streams import Stream

_REASON = "MalformedConfigMap"
_READ_AGAIN = kinds.PODS, kinds.NODES
_log = structlog.get_logger("evenkeel")


class DeviceMapHands:
    """Carries out what follows from these ConfigMaps.

    Nothing is decided from the time of a change until pods and nodes have been read again: what a pod holds that has come
    meanwhile is not known before.
    """

    def __init__(
        self,
        reporter: Reporter,
        streams: Sequence[Stream[Any]],
        admit_by: Callable[[notes.DeviceMapRead], None],
        is_leading: Callable[[], bool],
    ) -> None:
        """``admit_by`` takes by what the webhook is to admit pods with devices."""
        self._reporter, self._admit_by, self._is_leading = reporter, admit_by, is_leading
        self._streams = [one for one in streams if one.source.kind in _READ_AGAIN]
        self._changed = asyncio.Event()
        self._is_newer = False
        # By key: the last note with a mistake.
        self._wrong: dict[str, notes.DeviceMapRead] = {}

    @property
    def is_read(self) -> bool:
        """Whether pods and nodes have been read with what devices are configured with now."""
        return not self._changed.is_set()

    async def run(self) -> None:
        """Have pods and nodes read again after each change, until cancelled."""
        while True:
            await self._changed.wait()
            waited = [asyncio.ensure_future(stream.relist()) for stream in self._streams]
            self._is_newer = False
            try:
                await asyncio.gather(*waited)
            finally:
                for one in waited:
                    one.cancel()
            if not self._is_newer:
                self._changed.clear()

    def hear(self, noted: Sequence[Note]) -> None:
        """Act on notes about ConfigMaps."""
        for note in noted:
            self._hear_one(note)

    def _hear_one(self, note: Note) -> None:
        match note:
            case notes.DeviceMapLeft(key):
                self._wrong.pop(key, None)
                _log.warning(
                    "the ConfigMap of devices is gone; what it said stays in force", name=key
                )
            case notes.DeviceMapRead(key, _, problem, taken):
                before = self._wrong.pop(key, None)
                if problem:
                    self._wrong[key] = note
                    if before is None or before.problem != problem:
                        self._report(note)
                if taken is not None:
                    _log.info("the configuration of devices has changed", name=key)
                    self._changed.set()
                    self._is_newer = True
                    self._admit_by(note)

    def report_all(self) -> None:
        """For a new leader: report all mistakes, whether a predecessor has reported them or not."""
        for note in self._wrong.values():
            self._report(note)

    def _report(self, note: notes.DeviceMapRead) -> None:
        said = f"{note.problem}; the last configuration that could be read stays in force, or the defaults"
        _log.warning("the ConfigMap of devices cannot be read", name=note.key, problem=note.problem)
        if self._is_leading():
            self._reporter.report_on_object(
                kinds.CONFIG_MAPS, note.meta, ("Warning", _REASON, said), is_why=True
            )
