"""Acts on ConfigMaps that configure devices: reads pods and nodes again, and lets the webhook follow.

Of these, of quotas of devices and of the objects of ``resource.k8s.io`` it says what is wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from scheduler.api import kinds
from scheduler.api.door import notes
from scheduler.api.door.notes import Note
from scheduler.api.kind import Kind
from scheduler.kube.report.reporter import Reporter
from scheduler.kube.watch.streams import Stream

_REASONS = {kinds.CONFIG_MAPS: "MalformedConfigMap", kinds.RESOURCE_QUOTAS: "MalformedQuota"}
_OF_DEVICES = {
    one.name: one for one in (kinds.DEVICE_CLASSES, kinds.RESOURCE_SLICES, kinds.TAINT_RULES)
}
_Read = notes.DeviceMapRead | notes.SpaceQuotaRead | notes.DevicesRead
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
        # By kind and key: the last note with a mistake.
        self._wrong: dict[tuple[Kind, str], _Read] = {}

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
        """Act on notes about these objects."""
        for note in noted:
            self._hear_one(note)

    def _hear_one(self, note: Note) -> None:
        match note:
            case notes.DeviceMapLeft(key):
                self._wrong.pop((kinds.CONFIG_MAPS, key), None)
                _log.warning(
                    "the ConfigMap of devices is gone; what it said stays in force", name=key
                )
            case notes.SpaceQuotaLeft(key):
                self._wrong.pop((kinds.RESOURCE_QUOTAS, key), None)
            case notes.DevicesLeft(kind, key):
                self._wrong.pop((_OF_DEVICES[kind], key), None)
            case notes.DevicesRead(kind):
                self._note_problem(_OF_DEVICES[kind], note)
            case notes.SpaceQuotaRead():
                self._note_problem(kinds.RESOURCE_QUOTAS, note)
            case notes.DeviceMapRead(key, _, _, taken):
                self._note_problem(kinds.CONFIG_MAPS, note)
                if taken is not None:
                    _log.info("the configuration of devices has changed", name=key)
                    self._changed.set()
                    self._is_newer = True
                    self._admit_by(note)

    def _note_problem(self, kind: Kind, note: _Read) -> None:
        """Report what is wrong with an object, once for each text."""
        before = self._wrong.pop((kind, note.key), None)
        if note.problem:
            self._wrong[kind, note.key] = note
            if before is None or before.problem != note.problem:
                self._report(kind, note)

    def report_all(self) -> None:
        """For a new leader: report all mistakes, whether a predecessor has reported them or not."""
        for (kind, _), note in self._wrong.items():
            self._report(kind, note)

    def _report(self, kind: Kind, note: _Read) -> None:
        is_gone = kind.name in _OF_DEVICES
        instead = "what could be read last stays in force, or the defaults"
        said = f"{note.problem}; {'it counts as deleted' if is_gone else instead}"
        _log.warning(
            "an object cannot be read", kind=kind.name, name=note.key, problem=note.problem
        )
        if self._is_leading():
            words = "Warning", _REASONS.get(kind, f"Malformed{kind.name}"), said
            self._reporter.report_on_object(kind, note.meta, words, is_why=True)
