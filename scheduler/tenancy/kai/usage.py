"""What KAI's queues have used lately, as parts of all there is; it fades by half in each half-life.

KAI reads samples from Prometheus; here what is held is added up whenever a decision is made. Records that stand on the
objects of queues are taken over if they are newer than what was added up here, as after a restart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from scheduler.api.queues.kai import UNITS, Vector
from scheduler.api.queues.kai_usage import Parts, UsageRecord
from scheduler.tenancy.kai.tree import Tree

_RESOURCES = range(len(UNITS))
_NONE: Parts = (0.0, 0.0, 0.0)


class Usage:
    """The usage of all queues."""

    def __init__(self, half_life_seconds: float) -> None:
        """``half_life_seconds``: 0 if what was used does not count."""
        self._half_life = half_life_seconds
        # By queue: what it holds since then, and what it held before on average, recent times counting more.
        self._holds: dict[str, Parts] = {}
        self._before: dict[str, Parts] = {}
        # The weight of all times that are in the averages: 1 once they are long.
        self._weight = 0.0
        self._at: float | None = None
        # By queue: what its object says.
        self._written: dict[str, UsageRecord] = {}

    def note_record(self, name: str, record: UsageRecord | None) -> None:
        """Note what the object of a queue says; None: it says nothing, or is gone."""
        self._written.pop(name, None)
        if record is not None and self._half_life:
            self._written[name] = record

    def list_records(self) -> list[tuple[str, UsageRecord]]:
        """List what each queue has used, as it can be written on its object."""
        if self._at is None:
            return []
        return [
            (name, UsageRecord(self._at, self._weight, holds, self._before.get(name, _NONE)))
            for name, holds in self._holds.items()
        ]

    def sample(self, tree: Tree, total: Vector, now: float) -> None:
        """Add up what queues have held until now, and note what they hold."""
        if not self._half_life:
            return
        self._take_records(tree, now)
        self._advance(tree, now)
        self._holds = {
            name: _divide(queue.figures.allocated, total) for name, queue in tree.queues.items()
        }

    def _take_records(self, tree: Tree, now: float) -> None:
        """Take over what objects say that is newer than what was added up here; a time that is still to come is none."""
        newer = {
            name: one
            for name, one in self._written.items()
            if one.at <= now and (self._at is None or one.at > self._at)
        }
        if not newer:
            return
        self._advance(tree, max(one.at for one in newer.values()))
        for name, one in newer.items():
            kept = self._find_kept(one.at)
            self._before[name] = _mix(one.before, one.holds, kept)
            self._holds[name] = one.holds
            self._weight = max(self._weight, one.weight * kept + (1.0 - kept))

    def _advance(self, tree: Tree, now: float) -> None:
        """Add up what queues have held until now."""
        if self._at is not None and now > self._at:
            kept = math.pow(0.5, (now - self._at) / self._half_life)
            names = sorted(self._before.keys() | self._holds.keys())
            self._before = {
                name: _mix(self._before.get(name, _NONE), self._holds.get(name, _NONE), kept)
                for name in names
                if name in tree.queues
            }
            self._weight = self._weight * kept + (1.0 - kept)
        self._at = now if self._at is None else max(now, self._at)

    def _find_kept(self, at: float) -> float:
        """Find which part of an average of some time is left at the time of the last sample."""
        return math.pow(0.5, max(0.0, (self._at or at) - at) / self._half_life)

    def find_parts(self) -> dict[str, Parts]:
        """Find by queue what it has used of each resource, as a part of all there is; empty if that does not count."""
        if not self._weight:
            return {}
        found = {}
        for name, (cpu, memory, gpu) in self._before.items():
            found[name] = cpu / self._weight, memory / self._weight, gpu / self._weight
        return found

    def list_known(self) -> dict[str, Any] | None:
        """Return all that is known in plain values, for ``take_over``; None if nothing is."""
        if self._at is None:
            return None
        holds, before = ({name: list(one) for name, one in each.items()} for each in (self._holds, self._before))  # fmt: skip
        return {"at": self._at, "weight": self._weight, "holds": holds, "before": before}

    def take_over(self, known: Mapping[str, Any]) -> None:
        """Take over what ``list_known`` has returned."""
        self._at, self._weight = known["at"], known["weight"]
        self._holds, self._before = (
            {name: (one[0], one[1], one[2]) for name, one in known[key].items()}
            for key in ("holds", "before")
        )


def _mix(before: Parts, holds: Parts, kept: float) -> Parts:
    cpu, memory, gpu = (before[i] * kept + holds[i] * (1.0 - kept) for i in _RESOURCES)
    return cpu, memory, gpu


def _divide(held: Vector, total: Vector) -> Parts:
    cpu, memory, gpu = (max(0, held[i]) / total[i] if total[i] else 0.0 for i in _RESOURCES)
    return cpu, memory, gpu
