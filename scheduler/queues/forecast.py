"""When workloads that wait will start, as far as others say how long they run.

The decisions of the scheduler itself are played: those with quota end one after the other, each when it has said, and after
each end quota is given again. Nobody else comes, and whoever says nothing never ends.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from scheduler.api import kueue
from scheduler.api.door import events
from scheduler.api.door.workload_decisions import (
    Admit,
    Queued,
    QuotaDecision,
    SetDomains,
    SetPriority,
    SyncChecks,
)
from scheduler.api.groups import table
from scheduler.api.groups.objects import GroupObject
from scheduler.api.queues.lifecycles import find_requeue_time, read_lifecycle
from scheduler.api.queues.run_times import find_run_seconds
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.questions.queues import KnownWorkloads, QueuePath
from scheduler.simulate import queues, stalling
from scheduler.simulate.reading.inventory import Inventory
from scheduler.simulate.situation import Situation, find_time, make_engine

# So many ends are played at most.
ENDS_MAX = 128
# A flavor and a resource.
Column = tuple[str, str]
# A kind, a namespace and a name.
_Key = tuple[str, str, str]


class End(NamedTuple):
    """A workload that ends, when, and what it has then, as (flavor, resource, amount in base units)."""

    key: str
    at: float
    uses: tuple[tuple[str, str, int], ...]


class Start(NamedTuple):
    """When a workload starts, and after what.

    Attributes:
        at: the time; None if it is not known.
        seconds: until then; None if it is not known.
        ends: those of its tree that end first and have what it gets.
        undeclared: those of its tree that have quota, and do not say when they end; only if the time is not known.
        reason: why it waits when all have ended that say when; only if the time is not known.
        n_ends: how many ends were played.
        is_cut: whether there are more ends, which were not played.
    """

    at: float | None
    seconds: float | None
    ends: tuple[End, ...] = ()
    undeclared: tuple[str, ...] = ()
    reason: str = ""
    n_ends: int = 0
    is_cut: bool = False


def foresee(
    situation: Situation, config: Config, wanted: Collection[str], *, is_live: bool
) -> dict[str, Start]:
    """Foresee when workloads start, by namespace and name; ``is_live`` as in ``Scene``.

    Costs a decision for each end, at most ``ENDS_MAX``.
    """
    play = _Play(situation, config, is_live=is_live)
    if not (is_live and play.lacks_ends(wanted)):
        play.run(set(wanted))
    return {key: play.describe(key) for key in wanted}


class _Play:
    """The future of all workloads."""

    def __init__(self, situation: Situation, config: Config, *, is_live: bool) -> None:
        inventory = situation.inventory
        self._slice = config.slice_pods
        self._engine = make_engine(inventory, config, only_ours=is_live)
        self._queues = queues.Queues(self._engine, inventory.queueing, inventory.pods)
        self._now = self._time = find_time(inventory)
        known = {
            queues.read_key(one): one
            for one in inventory.queueing
            if isinstance(one, kueue.Workload)
        }
        owners = _read_owners(inventory)
        self._seconds = {key: _find_seconds(one, owners) for key, one in known.items()}
        # When workloads are tried again that were evicted.
        self._tries = sorted({find_requeue_time(one.status) for one in known.values()})
        standings = self._engine.ask(KnownWorkloads())
        self._roots = {one.key: self._engine.ask(QueuePath(one.key)).split("/")[1:2] for one in standings}  # fmt: skip
        held = [one for one in standings if one.where == "holds"]
        # Since when those run that have quota, and what they have.
        self._running = {
            one.key: read_lifecycle(known[one.key]).admitted_at or one.reserved_at or self._now
            for one in held
        }
        self._uses = {one.key: one.flavors for one in held}
        self._ended: list[End] = []
        self._started: dict[str, tuple[float, int]] = {}
        self._is_cut = False

    def lacks_ends(self, wanted: Collection[str]) -> bool:
        """Whether workloads wait for others that do not say when they end, and nothing else is known of the future.

        In a cluster, all is decided that can be decided now, so nobody starts before somebody ends.
        """
        busy = {root for key in self._running for root in self._roots.get(key, ())}
        waits = all(busy.issuperset(self._roots.get(key, ())) for key in wanted)
        return waits and self._find_next() == math.inf

    def run(self, wanted: set[str]) -> None:
        """Play until all of some workloads have started, or nothing more is known."""
        self._decide()
        while not wanted <= self._started.keys():
            at = self._find_next()
            if at == math.inf:
                return
            if len(self._ended) >= ENDS_MAX:
                self._is_cut = True
                return
            self._time = max(self._time, at)
            for key in self._list_ends(self._time):
                self._ended.append(End(key, self._time, self._uses[key]))
                del self._running[key]
                self._queues.finish(key, self._time)
            self._decide()

    def _find_next(self) -> float:
        """Find when somebody ends or is tried again; infinite if nothing is known of that."""
        ends = (since + self._seconds_of(key) for key, since in self._running.items())
        tries = (at for at in self._tries if at > self._time)
        return min((*ends, *tries), default=math.inf)

    def _seconds_of(self, key: str) -> float:
        seconds = self._seconds.get(key)
        return math.inf if seconds is None else seconds

    def _list_ends(self, at: float) -> list[str]:
        """List those that have ended by a time: whoever runs longer than it has said ends at once."""
        found = [(since + self._seconds_of(key), key) for key, since in self._running.items()]
        return [key for end, key in sorted(found) if end <= at]

    def _decide(self) -> None:
        """Give quota to all who can have it now."""
        stalled, at = stalling.Stalling(), self._time
        while at <= self._time and not stalled.is_endless:
            outcome = self._engine.decide(self._time, Unlimited(pods=self._slice))
            stalled.note(outcome)
            for bind in outcome.binds:
                self._engine.handle(events.BindDone(bind.uid), self._time)
            for decision in outcome.quotas:
                self._note(decision)
                self._queues.carry_out(decision, self._time)
            at = self._engine.find_due(self._time)

    def _note(self, decision: QuotaDecision) -> None:
        if isinstance(decision, Admit):
            key = decision.key
            self._running[key], self._uses[key] = self._time, tuple(_list_uses(decision))
            self._started.setdefault(key, (self._time, len(self._ended)))
        elif not isinstance(decision, Queued | SetPriority | SyncChecks | SetDomains):
            self._running.pop(decision.key, None)

    def describe(self, key: str) -> Start:
        """Describe when a workload starts."""
        root = self._roots.get(key)
        if key in self._started:
            at, n_before = self._started[key]
            before, columns = self._ended[:n_before], {use[:2] for use in self._uses[key]}
            near = [one for one in before if self._roots.get(one.key) == root]
            ends = [one for one in near if columns.intersection(use[:2] for use in one.uses)]
            time = at if self._now else None
            return Start(time, at - self._now, tuple(ends or before[-1:]), n_ends=n_before)
        undeclared = [
            one
            for one in self._running
            if self._roots.get(one) == root and self._seconds.get(one) is None
        ]
        reasons = (one.reason for one in self._engine.ask(KnownWorkloads()) if one.key == key)
        return Start(
            None,
            None,
            undeclared=tuple(sorted(undeclared)),
            reason=next(reasons, ""),
            n_ends=len(self._ended),
            is_cut=self._is_cut,
        )


def _list_uses(decision: Admit) -> Iterator[tuple[str, str, int]]:
    """List what a workload is given."""
    total: dict[Column, int] = {}
    for one in decision.sets:
        amounts = dict(one.used)
        for resource, flavor in one.flavors:
            column = flavor, resource
            total[column] = total.get(column, 0) + amounts.get(resource, 0)
    return ((*column, amount) for column, amount in total.items())


def _read_owners(inventory: Inventory) -> dict[_Key, float]:
    """Read for how long jobs say that they run, in seconds, by kind, namespace and name."""
    found: dict[_Key, float] = {}
    for one in inventory.grouping:
        if isinstance(one, GroupObject):
            seconds = table.read_definition(one).run_seconds
            if seconds is not None:
                kind = str(type(one).__struct_config__.tag)
                found[kind, one.metadata.namespace, one.metadata.name] = seconds
    return found


def _find_seconds(found: kueue.Workload, owners: Mapping[_Key, float]) -> float | None:
    """Find for how many seconds a workload runs at most, once it is admitted; None if nobody says it."""
    said = list(_list_seconds(found, owners))
    return min(said, default=None)


def _list_seconds(found: kueue.Workload, owners: Mapping[_Key, float]) -> Iterator[float]:
    """List what is said of it: by itself and its pods, and by its job."""
    said = find_run_seconds(found)
    if said is not None:
        yield said
    meta = found.metadata
    for owner in meta.owner_references or ():
        if owner.controller and (owner.kind, meta.namespace, owner.name) in owners:
            yield owners[owner.kind, meta.namespace, owner.name]
