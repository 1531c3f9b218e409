"""The log of an engine: all events that go in, and all decisions that come out.

One line of JSON each, after a first one with the settings. An engine that is given the same events, times and
amounts of work makes the same decisions, so a log is a bug report that can be run again (``rerun``).

No secret gets in. A pod has only the fields here that decide where it goes: no environment, no commands, no
contents of volumes. It has only the annotations that Evenkeel and device plugins read, and conditions have no
messages.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import structs

from scheduler.api import names, steering, wire
from scheduler.api.door import events
from scheduler.api.door.decisions import Bind, Evict, Free, Hold, Nominate, Outcome
from scheduler.api.door.events import Event
from scheduler.api.door.workload_decisions import QuotaDecision
from scheduler.config import Config
from scheduler.devices import settings
from scheduler.devices.table import FAMILIES
from scheduler.telling import sayings

FORMAT = 6
_READ = frozenset(
    value for key, value in vars(names).items() if key.isupper() and isinstance(value, str)
)
# Device plugins and their users write annotations of the domains by whose resources devices are requested.
_DOMAINS = (settings.DOMAIN, *sorted({f"{one.partition('/')[0]}/" for one in FAMILIES}))


class Head(msgspec.Struct, frozen=True, tag="head"):
    """The first line: which version wrote the log, and with which settings."""

    format: int
    version: str
    config: Config


class Happened(msgspec.Struct, frozen=True, tag="event"):
    """An event, and the time at which the engine got it."""

    at: float
    event: Event


class Decided(msgspec.Struct, frozen=True, tag="decide"):
    """A decision: its time, its amount of work, and its outcome. One that has paused stands where it ended.

    Attributes:
        pods: the most pods that could be decided for.
        spent: pieces of work, by ``allowance.Work`` without steps.
        binds: what was decided, word for word.
        holds: the uid of each pod that found no place, and the first sentence of its explanation.
        explained: the same for pods that waited before and were explained anew.
        frees: which claims lost their devices.
        evicts, nominates: which pods were to be evicted for which pod, and which nominations changed.
        quotas: which workloads got quota, had to give it back, or were left in their queues.
    """

    at: float
    pods: int
    spent: tuple[int, ...]
    binds: tuple[Bind, ...] = ()
    holds: tuple[tuple[str, str], ...] = ()
    explained: tuple[tuple[str, str], ...] = ()
    evicts: tuple[Evict, ...] = ()
    nominates: tuple[Nominate, ...] = ()
    quotas: tuple[QuotaDecision, ...] = ()
    frees: tuple[Free, ...] = ()


Line = Head | Happened | Decided
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


def encode(line: Line) -> bytes:
    """Write a line of the log, with its line end."""
    return _encoder.encode(line) + b"\n"


def decode(text: bytes) -> Line:
    """Read a line of a log.

    Raises:
        msgspec.MsgspecError: the line is not one of a log.
    """
    return _decoder.decode(text)


def decode_event(text: bytes) -> Event:
    """Read the event of a line that holds an event."""
    line = decode(text)
    if not isinstance(line, Happened):
        raise TypeError("a decision is no event")
    return line.event


def describe_call(at: float, pods: int, spent: Sequence[int], outcome: Outcome) -> Decided:
    """Make the line for a call of ``decide``."""
    return Decided(
        at,
        pods,
        tuple(spent),
        tuple(outcome.binds),
        tuple(map(_write_hold, outcome.holds)),
        tuple(map(_write_hold, outcome.explained)),
        tuple(outcome.evicts),
        tuple(outcome.nominates),
        tuple(outcome.quotas),
        tuple(outcome.frees),
    )


def drop_secrets(event: Event) -> Event:
    """Return the event without the fields that could hold a secret; these decide nothing."""
    match event:
        case events.Seen(wire.Pod() as pod):
            status = pod.status
            if status.conditions:
                bare = [structs.replace(one, message="") for one in status.conditions]
                status = structs.replace(status, conditions=bare)
            return events.Seen(
                structs.replace(pod, metadata=_keep_read(pod.metadata), status=status)
            )
        case events.Seen(steering.ConfigMap(data=dict(data)) as found):
            read = {key: data[key] for key in sorted(settings.KEYS) if key in data}
            return events.Seen(
                structs.replace(found, metadata=_keep_read(found.metadata), data=read)
            )
        case events.Seen(found):
            return events.Seen(structs.replace(found, metadata=_keep_read(found.metadata)))
    return event


def _keep_read(meta: wire.Meta) -> wire.Meta:
    annotations = meta.annotations
    if not annotations:
        return meta
    read = {
        key: text for key, text in annotations.items() if key in _READ or key.startswith(_DOMAINS)
    }
    return meta if len(read) == len(annotations) else structs.replace(meta, annotations=read)


def _write_hold(hold: Hold) -> tuple[str, str]:
    return hold.uid, sayings.write_sentence(hold)
