"""What can still be cut out of sets of counters, such as the GPUs that are shared in partitions: tables of their states.

Sets have one layout if they have equal counters, and if the devices that draw on them draw alike. A state is how much of each
counter is drawn. Of each state that can be reached a layout knows

- the room: the most that can still be cut, each device counted by the part of the set that it is;
- what fits: for each size of devices how much of it fits if nothing else is cut, as a mean over the sizes. Devices are of
  one size if they draw the same amounts of whichever counters;
- the part that is drawn.

A part is the largest of any counter. Counters that a device draws whole or not at all, such as places in memory, say nothing
about size: they do not count, unless there are no others. Then a part is the mean of all.

Nothing of this knows vendors or profiles: all of it follows from what is published.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.schema import columns as c
from scheduler.schema import devices as d

# Of a layout with more states, or more ways from state to state, nothing is known; neither of further layouts.
_STATES_MAX, _STEPS_MAX, _LAYOUTS_MAX = 4096, 65_536, 64
Pattern = tuple[tuple[int, int], ...]
_Vector = tuple[int, ...]


class Layouts:
    """Numbers the layouts of all sets of counters, and writes their tables to ``columns``."""

    def __init__(self, columns: d.Devices) -> None:
        self._columns = columns
        self._known: dict[object, int] = {}

    def number_layout(self, totals: Sequence[int], patterns: Collection[Pattern]) -> int:
        """Return the number of the layout of a set of counters on which devices draw by ``patterns``; -1: its states are not known."""
        key = tuple(totals), frozenset(Counter(patterns).items())
        known = self._known.get(key)
        if known is not None:
            return known
        if len(self._known) == _LAYOUTS_MAX:
            return -1
        states = _list_states(tuple(totals), sorted(set(patterns)))
        self._known[key] = -1 if states is None else self._write_tables(states)
        return self._known[key]

    def _write_tables(self, states: _States) -> int:
        columns = self._columns
        number = int(columns.layouts.shape[1])
        keys = np.array([compute_key(tuple(enumerate(one))) for one in states.drawn], np.int64)
        if np.unique(keys).size < keys.size:
            return -1
        order = np.argsort(keys, kind="stable")
        first = columns.room_keys.size
        columns.layouts = np.concatenate(
            (columns.layouts, np.array([[first], [keys.size]], np.int64)), axis=1
        )
        columns.room_keys = np.concatenate((columns.room_keys, keys[order]))
        rooms = np.concatenate((columns.rooms, _measure_states(states)[:, order]), axis=1)
        columns.rooms = np.ascontiguousarray(rooms)
        return number


class _States(NamedTuple):
    """All states that can be reached, each after all of those that come from it.

    Attributes:
        drawn: what is drawn in each state.
        steps: for each state, the patterns by which a device can still draw, and the states to which these lead.
        used: which part of the set is drawn in each state.
        parts: which part of the set each pattern is.
        sizes: the number of the size of each pattern.
    """

    drawn: list[_Vector]
    used: list[float]
    steps: list[list[tuple[int, int]]]
    parts: list[float]
    sizes: list[int]


def _list_states(totals: _Vector, patterns: Sequence[Pattern]) -> _States | None:
    """List the states of a layout; None for too many."""
    draws = []
    for one in patterns:
        amounts = [0] * len(totals)
        for place, amount in one:
            amounts[place] += amount
        if any(amounts) and all(a <= b for a, b in zip(amounts, totals, strict=True)):
            draws.append(tuple(amounts))
    start = (0,) * len(totals)
    places, waiting = {start: 0}, [start]
    steps: list[list[tuple[int, int]]] = []
    n_steps = 0
    while len(steps) < len(waiting):
        state = waiting[len(steps)]
        found: list[tuple[int, int]] = []
        for i, draw in enumerate(draws):
            after = tuple(a + b for a, b in zip(state, draw, strict=True))
            n_steps += 1
            if any(a > b for a, b in zip(after, totals, strict=True)):
                continue
            if after not in places:
                places[after] = len(waiting)
                waiting.append(after)
            found.append((i, places[after]))
        steps.append(found)
        if len(waiting) > _STATES_MAX or n_steps > _STEPS_MAX:
            return None
    split = [
        j for j, total in enumerate(totals) if total and any(0 < draw[j] < total for draw in draws)
    ]
    used = [_measure_part(drawn, totals, split) for drawn in waiting]
    parts = [_measure_part(draw, totals, split) for draw in draws]
    sizes: dict[_Vector, int] = {}
    numbers = [sizes.setdefault(tuple(sorted(draw)), len(sizes)) for draw in draws]
    return _sort_states(_States(waiting, used, steps, parts, numbers))


def _measure_part(drawn: _Vector, totals: _Vector, split: Sequence[int]) -> float:
    """Return which part of a set is drawn; ``split`` are the places of the counters that devices can share."""
    if split:
        return max(drawn[j] / totals[j] for j in split)
    found = [a / b for a, b in zip(drawn, totals, strict=True) if b]
    return sum(found) / len(found) if found else 0.0


def _sort_states(states: _States) -> _States:
    """Put the fullest states first: a step makes a state fuller."""
    order = sorted(range(len(states.drawn)), key=lambda i: -sum(states.drawn[i]))
    place = {was: now for now, was in enumerate(order)}
    steps = [[(i, place[to]) for i, to in states.steps[was]] for was in order]
    drawn, used = [states.drawn[i] for i in order], [states.used[i] for i in order]
    return states._replace(drawn=drawn, used=used, steps=steps)


def _measure_states(states: _States) -> c.Floats:
    """Return [3, states] the room of each state, what fits there, and what is drawn."""
    n_sizes = max(states.sizes, default=-1) + 1
    room = np.zeros(len(states.drawn))
    fitting = np.zeros((len(states.drawn), n_sizes))
    for at, steps in enumerate(states.steps):
        best: defaultdict[int, float] = defaultdict(float)
        for i, to in steps:
            part, size = states.parts[i], states.sizes[i]
            room[at] = max(room[at], part + room[to])
            best[size] = max(best[size], part + fitting[to, size])
        for size, most in best.items():
            fitting[at, size] = most
    mean = fitting.mean(axis=1) if n_sizes else np.zeros(len(room))
    return np.stack((room, mean, np.array(states.used)))


def compute_key(pattern: Pattern) -> int:
    """Compute the key of the state of a set of which a pattern alone is drawn; the key of several is their sum."""
    key = 0
    for place, amount in pattern:
        key += amount % d.KEY_PRIME * pow(d.KEY_FACTOR, place + 1, d.KEY_PRIME)
    return key % d.KEY_PRIME
