"""Writes the status of an object if it differs from what the object says, and from what was written last."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from scheduler.api import wire
from scheduler.kube.report.reporter import Reporter

Json = dict[str, Any]


class StatusWrites:
    """Statuses that are written through the reporter, each once for a version of its object."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        # What was written last, by uid, and the version of the object at that time.
        self._written: dict[str, tuple[Json, str]] = {}

    def write(self, path: str, meta: wire.Meta, status: Mapping[str, Any], wanted: Json) -> None:
        """Write a status, or those parts of it that are wanted; ``status``: what the object says."""
        is_same = all((status.get(key) or None) == (one or None) for key, one in wanted.items())
        version = meta.resource_version
        if is_same or self._written.get(meta.uid) == (wanted, version):
            return
        self._written[meta.uid] = wanted, version
        body = {"metadata": {"uid": meta.uid}, "status": wanted}
        self._reporter.report_status(meta.uid, path, partial(msgspec.json.encode, body))

    def forget(self, uid: str) -> None:
        """Forget an object that is gone."""
        self._written.pop(uid, None)

    def forget_all(self) -> None:
        """Forget what was written: another replica may have written since."""
        self._written.clear()
