"""The answer for each group, as plain values for ``-o json``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from scheduler.api.door.decisions import GroupResult, Plan
from scheduler.api.groups.definitions import GroupKey
from scheduler.engine.engine import Engine
from scheduler.engine.questions.waiting import Unplaced, WhatWaits
from scheduler.telling import groups as telling

Json = dict[str, Any]


class State(StrEnum):
    """What became of the pods of a group that waited."""

    PLACED = "placed"
    PARTLY = "partly placed"
    WAITS = "waits"
    HELD = "held"


@dataclass(slots=True)
class _Group:
    """A group of which pods waited at first.

    Attributes:
        members: how many pods waited.
        least: how many of them had to have a node at once.
        n_placed: how many of them have a node by now.
        placed: the result by which the first of them were placed; None before.
        tried: the last result; None before.
    """

    members: int
    least: int
    n_placed: int = 0
    placed: GroupResult | None = None
    tried: GroupResult | None = None


class Groups:
    """A row for each group of which pods waited at first."""

    def __init__(self, engine: Engine) -> None:
        """The groups that an engine knows before it has decided anything."""
        self._engine = engine
        self._groups: dict[GroupKey, _Group] = {}
        self._group_of: dict[str, str] = {}
        for one in engine.ask(WhatWaits()):
            if one.group is not None:
                self._groups[one.group] = _Group(len(one.pods), one.least)
                for pod in one.pods:
                    self._group_of[pod.uid] = str(one.group)

    def find_name(self, uid: str) -> str | None:
        """Find the name of the group of a pod that waited; None for a pod in no group."""
        return self._group_of.get(uid)

    def add_plan(self, plan: Plan) -> None:
        """Add what was decided for a group."""
        if plan.group is None:
            return
        group = self._groups[plan.group.group]
        group.tried = plan.group
        group.n_placed += len(plan.binds)
        if plan.binds and group.placed is None:
            group.placed = plan.group

    def list_all(self) -> list[Json]:
        """List the rows, by namespace and name."""
        waiting = {one.group: one for one in self._engine.ask(WhatWaits()) if one.group is not None}
        keys = sorted(self._groups, key=lambda key: (key.namespace, key.name, key.kind))
        return [_make_row(key, self._groups[key], waiting.get(key)) for key in keys]


def _make_row(key: GroupKey, group: _Group, waiting: Unplaced | None) -> Json:
    shown = group.placed or group.tried
    label, values = shown.domain if shown is not None else ("", ())
    return {
        "kind": key.kind.partition(".")[0],
        "namespace": key.namespace,
        "name": key.name,
        "members": group.members,
        "minimum": group.least,
        "placed": group.n_placed,
        "state": str(_find_state(group, waiting)),
        "domain": {"label": label, "values": list(values)} if values else None,
        "message": _write_message(key, group, waiting),
    }


def _find_state(group: _Group, waiting: Unplaced | None) -> State:
    if group.n_placed:
        return State.PLACED if group.n_placed >= group.members else State.PARTLY
    is_held = waiting is not None and (waiting.held or waiting.result is None)
    return State.HELD if is_held else State.WAITS


def _write_message(key: GroupKey, group: _Group, waiting: Unplaced | None) -> str:
    """Say where the pods of a group went, or why some of them wait."""
    if waiting is not None and waiting.held:
        return waiting.held
    if group.placed is not None:
        n, all_pods = group.n_placed, group.members
        return f"{key}: {n} of {all_pods} pods placed{telling.say_where(group.placed)}"
    if waiting is not None and waiting.result is not None:
        status = waiting.result.status
        return status or telling.say_group(waiting.result, waiting.hold).message
    return ""


def name_group(row: Json) -> str:
    """Name a group, as the rows of its pods name it."""
    return f"{row['kind']} {row['namespace']}/{row['name']}"


def name_place(row: Json) -> str:
    """Name a group with its domain."""
    name, domain = name_group(row), row["domain"]
    return f"{name} in {domain['label']} {'/'.join(domain['values'])}" if domain else name
