"""Nominations as the API server has them, and as they were decided here."""

from __future__ import annotations

from scheduler.state.nominations import Nominations
from scheduler.state.pods import Life, PodRecord


def follow_nomination(nominations: Nominations, new: PodRecord, old: PodRecord | None) -> None:
    """Follow a nomination from the API server only when it changed; until then a decision made here holds."""
    if old is not None and old.life == Life.ASSUMED and not new.node:
        return
    if old is None or new.nominated != old.nominated:
        nominations.put(new.uid, new.nominated, new.priority)
    elif nominations:
        node = "" if new.node else nominations.find_node(new.uid)
        if (new.template, new.labels) != (old.template, old.labels):
            # The promised room is on another node.
            nominations.drop(new.uid)
        nominations.put(new.uid, node, new.priority)
