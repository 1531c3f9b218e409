"""What can happen to the turn before a node whose device plugin serves one pod at a time.

The plugin serves one pod at a time, so the pods that go to one node take turns. A turn begins when a worker
takes up a job. It ends when the plugin has given the node's lock back, or when there is nothing to wait for
any more. Each row is a state, each column an event; the cell is the state to which the event leads:

    state       START   TAKEN    CONTENDED  BOUND       FAILED  ANSWERED   UNLOCKED  POD_GONE  NODE_GONE  TIME_OVER
    FREE        TAKING  -        -          -           -       .          .         .         .          .
    TAKING      .       BINDING  BUSY       ALLOCATING  FREE    EARLY      .         .         .          .
    BINDING     .       -        -          ALLOCATING  FREE    EARLY      .         .         .          .
    EARLY       .       EARLY    BUSY       RELEASING   FREE    .          .         .         .          .
    BUSY        .       -        -          -           -       RELEASING  FREE      FREE      FREE       FREE
    ALLOCATING  .       -        -          -           -       RELEASING  FREE      FREE      FREE       .
    RELEASING   .       -        -          -           -       .          FREE      FREE      FREE       FREE

A plugin gets as long as it takes: no other pod may get the limits of the one that it has to serve. So ALLOCATING ends by
what the watches show and by no clock.

A dot says that the event changes nothing. A dash says that the event cannot happen: only a worker causes it, and no
worker has a job of this node.
"""

from __future__ import annotations

from enum import Enum, auto


class State(Enum):
    """The state of the turn before a node."""

    FREE = auto()
    """No job has the turn."""
    TAKING = auto()
    """A worker goes through the steps before the bind."""
    BINDING = auto()
    """A worker binds."""
    EARLY = auto()
    """The plugin has answered before the worker knows that the pod is bound."""
    BUSY = auto()
    """Another pod has the lock, whose turn it is if it is known; the job waits again, at its place."""
    ALLOCATING = auto()
    """The pod is bound, and the plugin has to answer."""
    RELEASING = auto()
    """The plugin has answered, and has to give the lock back."""


class Event(Enum):
    """What happens to a turn."""

    START = auto()
    """The next job is handed to a worker."""
    TAKEN = auto()
    """The steps before the bind are done."""
    CONTENDED = auto()
    """Another owner rightly holds what a step needs, or the API server does not let it be taken for now."""
    BOUND = auto()
    """The API server has bound the pod."""
    FAILED = auto()
    """The job came to nothing, and what it had begun is undone."""
    ANSWERED = auto()
    """The plugin has reported that it succeeded or failed for the pod."""
    UNLOCKED = auto()
    """The node was seen without a lock."""
    POD_GONE = auto()
    """The pod whose turn it is was deleted, or is finished."""
    NODE_GONE = auto()
    """The node was deleted."""
    TIME_OVER = auto()
    """The time to wait is over."""


# Events of workers. If one comes where the table has a dash, the worker has lost its way.
WORKER_EVENTS = frozenset({Event.TAKEN, Event.CONTENDED, Event.BOUND, Event.FAILED})
_FREED = {Event.UNLOCKED: State.FREE, Event.POD_GONE: State.FREE, Event.NODE_GONE: State.FREE}
MOVES: dict[State, dict[Event, State]] = {
    State.FREE: {Event.START: State.TAKING},
    State.TAKING: {
        Event.TAKEN: State.BINDING,
        Event.CONTENDED: State.BUSY,
        Event.BOUND: State.ALLOCATING,
        Event.FAILED: State.FREE,
        Event.ANSWERED: State.EARLY,
    },
    State.BINDING: {
        Event.BOUND: State.ALLOCATING,
        Event.FAILED: State.FREE,
        Event.ANSWERED: State.EARLY,
    },
    State.EARLY: {
        Event.TAKEN: State.EARLY,
        Event.CONTENDED: State.BUSY,
        Event.BOUND: State.RELEASING,
        Event.FAILED: State.FREE,
    },
    State.BUSY: {Event.ANSWERED: State.RELEASING, **_FREED, Event.TIME_OVER: State.FREE},
    State.ALLOCATING: {Event.ANSWERED: State.RELEASING, **_FREED},
    State.RELEASING: {**_FREED, Event.TIME_OVER: State.FREE},
}
