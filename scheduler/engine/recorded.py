"""An engine that writes a log of its events and decisions, so that they can be run again.

A log that may not grow for ever is cut into files, and each can be run by itself: at the beginning of a file
the engine makes a fresh start. It forgets everything and is told everything again, as after a restart of the
process, and all of that stands in the file. A fresh start loses one thing, how long pods have waited: those
that wait are tried again at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from scheduler.api import kinds, steering, wire
from scheduler.api.door import events
from scheduler.api.door.decisions import Outcome
from scheduler.api.door.events import Event
from scheduler.api.door.notes import Note
from scheduler.config import Config
from scheduler.devices import answers
from scheduler.engine import log
from scheduler.engine.allowance import Allowance, Unlimited, Work
from scheduler.engine.engine import Engine
from scheduler.state.pods import Life, PodRecord

_FINISHED = frozenset({"Succeeded", "Failed"})
# The kind, and the key among its kind.
_Key = tuple[str, str]
# The order in which things are told again, the table from below: what steers pods, then nodes, then pods.
_ORDER = {
    kind.name: i
    for i, kind in enumerate(reversed((*kinds.WATCHED, *kinds.OF_QUEUES, *kinds.OF_KAI)))
}
# How pods hold devices may hang on what configured them earlier, so that is told again as well.
_MAPS_MAX = 16


class Recorded(Engine):
    """An engine that hands every line of its log, with its line end, to ``write``."""

    def __init__(
        self, config: Config, version: str, write: Callable[[bytes], None], **more: Any
    ) -> None:
        super().__init__(config, **more)
        self._version, self._write = version, write
        # For every present object, the line in which it was last seen.
        self._lines: dict[_Key, bytes] = {}
        # The lines of the last ConfigMaps, by what these said; the last one that was seen comes last.
        self._maps: dict[tuple[str, bytes], bytes] = {}
        self._write_head()

    def handle(self, event: Event, now: float) -> Sequence[Note]:
        """Log an event, then handle it: so an event that ends the process is in the log."""
        # A decision that has paused comes before the event.
        self._deciding.finish()
        line = log.encode(log.Happened(now, log.drop_secrets(event)))
        self._write(line)
        key, is_there = _about(event)
        if key[0] == kinds.CONFIG_MAPS.name:
            self._note_map(event, line)
        elif is_there:
            self._lines[key] = line
        else:
            self._lines.pop(key, None)
        return super().handle(event, now)

    def _note_map(self, event: Event, line: bytes) -> None:
        if isinstance(event, events.Seen) and isinstance(event.found, steering.ConfigMap):
            said = kinds.make_key(event.found), msgspec.json.encode(event.found.data)
            self._maps.pop(said, None)
            self._maps[said] = line
            if len(self._maps) > _MAPS_MAX:
                del self._maps[next(iter(self._maps))]

    def _work(self, now: float, allowance: Allowance, outcome: Outcome) -> None:
        """Decide, and log the decision if there was anything to do.

        A decision that has paused is one line, written at its end. Where it paused says nothing: that depends on the
        clock, and on what answers to questions have computed before.
        """
        metered, does_more = _Metered(allowance), self._is_due(now)
        super()._work(now, metered, outcome)
        if does_more or allowance.pods or any(metered.spent):
            line = log.describe_call(now, allowance.pods, metered.spent, outcome)
            self._write(log.encode(line))

    def _is_due(self, now: float) -> bool:
        """Whether a decision does something that no allowance is needed for."""
        parts = self._held, self._owners_awaited, self._nodes
        due = min(part.find_due() for part in parts)
        return self._cluster.groups.has_changed or due <= now

    def start_anew(self, now: float) -> None:
        """Forget everything and be told it again; what is written from here on can be run by itself.

        No decision may be under way; see ``is_deciding``. Decisions whose binds are under way stay decided.
        """
        objects, knowledge = list(self._objects()), list(self._knowledge())
        self._lines = {}
        self._begin()
        self._write_head()
        for event in objects:
            self.handle(event, now)
        # Which pods there are is known only when all are compiled. The call forms the groups as they are until then.
        self.decide(now, Unlimited(pods=0))
        for event in knowledge:
            self.handle(event, now)

    def _objects(self) -> Iterator[Event]:
        """Yield all present objects, as they were last seen."""
        pods, nodes = self._cluster.pods, self._cluster.nodes
        by_name = nodes.devices.by_name
        # Nodes on which their plugin wrote earlier, and has not written on what is seen of them now.
        were_signed = {
            facts.name: drivers
            for row, facts in enumerate(nodes.facts)
            if facts and (drivers := self._cluster.registers.list_signed_before(row))
        }
        kept = sorted(self._lines, key=lambda key: (_ORDER[key[0]], _order(pods.get(key[1]))))
        for line in self._maps.values():
            yield log.decode_event(line)
        # Nobody sees these pods come, so they count as listed.
        streams = (*self.config.scheduler_names, "")
        for scheduler in streams:
            yield events.ListBegins(kinds.PODS.name, scheduler)
        for kind in self._cluster.groups.awaited.list_listed():
            yield events.ListEnds(kind)
        for key in kept:
            event = log.decode_event(self._lines[key])
            match event:
                case events.Seen(wire.Node() as node) if key[1] in were_signed:
                    yield events.Seen(answers.sign_node(by_name, node, were_signed[key[1]]))
            yield event
        for scheduler in filter(self._first_lists.is_complete, streams):
            yield events.ListEnds(kinds.PODS.name, scheduler)

    def _knowledge(self) -> Iterator[Event]:
        """Yield events for what no object tells: silent plugins, cards that were ill, pods that have succeeded, decisions, promises, the demand."""
        pods, nodes = self._cluster.pods, self._cluster.nodes
        for facts, is_silent in zip(nodes.facts, nodes.silent, strict=True):
            if facts and is_silent:
                yield events.PluginSilent(facts.name, silent=True)
        for node, until in self._cluster.registers.probation.list_all():
            yield events.CardsOnProbation(node, dict(until))
        for one in self._cluster.groups.successes.list_all():
            says = one.says
            yield events.MemberSucceeded(
                one.uid, one.name, says.group, says.part, says.index, says.scheduler, one.is_deleted
            )
        for pod in pods.values():
            if pod.life == Life.ASSUMED:
                yield events.PodAssumed(pod.uid, pod.node, pod.claim, pod.given)
        yield from self._promises()
        yield from self._queues.list_known()
        yield from self._kai.list_known()
        yield events.DemandKnown(self._cluster.demand.list_known())

    def _promises(self) -> Iterator[Event]:
        """Yield events for what is promised to pods, and for those that leave for them or may not."""
        nominations = self._cluster.nominations
        for name in nominations.list_nodes():
            for uid in nominations.list_on(name):
                yield events.PodNominated(uid, name, nominations.find_cards(uid))
        for uid, makes_room_for in nominations.going.items():
            yield events.PodGoing(uid, makes_room_for)
        for uid, until in nominations.refused.items():
            yield events.PodRefused(uid, until)
        room = self._cluster.later.room
        if room is not None:
            doubted = tuple(sorted(room.doubted))
            yield events.PromisedLater(
                room.entity, room.until, room.ends_by, dict(room.on), doubted, room.domain
            )

    def _write_head(self) -> None:
        self._write(log.encode(log.Head(log.FORMAT, self._version, self.config)))


def _about(event: Event) -> tuple[_Key, bool]:
    """Return the key of an event's object, and whether the object is present after it; no name for what is not kept."""
    match event:
        case events.Seen(found):
            is_finished = isinstance(found, wire.Pod) and found.status.phase in _FINISHED
            return (kinds.read_kind_name(found), kinds.make_key(found)), not is_finished
        case events.Gone(kind, key):
            return (kind, key), False
    return ("", ""), False


def _order(pod: PodRecord | None) -> float:
    """Return the place of a pod in the order of arrival; pods that still wait to be compiled come last."""
    return float("inf") if pod is None else pod.order


class _Metered:
    """Counts what another allowance allows."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self.pods = allowance.pods
        self.spent = [0] * Work.STEP

    def allows(self, work: Work) -> bool:
        """Ask the other allowance, and count its yes."""
        allowed = self._allowance.allows(work)
        self.spent[work] += allowed
        return allowed
