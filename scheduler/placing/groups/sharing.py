"""Shares pods out among domains that are in order: each gets all that it takes, the last one what is left over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler.schema import columns as c

_MANY = 1 << 60


class Line(NamedTuple):
    """Domains in the order in which they get their shares, all [domains].

    Attributes:
        places: their places in the tree.
        units: how many slices or pods each takes.
        beside: how many it takes beside the leader.
        leaders: 1 where the leader fits, else 0.
    """

    places: c.Ints
    units: c.Ints
    beside: c.Ints
    leaders: c.Ints


class Shares(NamedTuple):
    """What domains get: their places, [domains] how many slices or pods, and the place that gets the leader or -1."""

    places: c.Ints
    units: c.Ints
    host: int


def share_out(line: Line, units: int, *, has_leader: bool, smallest_first: bool) -> Shares | None:
    """Share out slices or pods, and the leader; None if they are too many.

    Domains on the way that get nothing are listed, too. Unless the smallest come first, what is left over for the last
    domain goes where it fits tightest.
    """
    if not has_leader:
        found = fill_in_order(line.units, units, smallest_first=smallest_first)
        return None if found is None else Shares(line.places[found[0]], found[1], -1)
    line = put_host_first(line, units)
    if not line.leaders[0]:
        return None
    if line.beside[0] >= units:
        at = 0
        if not smallest_first:
            at = pick_tightest(np.where(line.leaders > 0, line.beside, -1), units)
        return Shares(line.places[[at]], np.array([units]), int(line.places[at]))
    left = units - int(line.beside[0])
    found = fill_in_order(line.units[1:], left, smallest_first=smallest_first)
    if found is None:
        return None
    places = line.places[np.append(0, found[0] + 1)]
    return Shares(places, np.append(line.beside[0], found[1]), int(line.places[0]))


def put_host_first(line: Line, units: int) -> Line:
    """Move to the front the first domain that takes the leader so that all slices or pods fit beside it.

    If there is none, they cannot be shared out.
    """
    total = line.units.sum()
    hosts = np.flatnonzero((line.leaders > 0) & (total - line.units + line.beside >= units))
    if not hosts.size or not hosts[0]:
        return line
    order = np.arange(line.places.size)
    order[1 : hosts[0] + 1] = order[: hosts[0]].copy()
    order[0] = hosts[0]
    return Line(*(one[order] for one in line))


def fill_in_order(
    room: c.Ints, units: int, *, smallest_first: bool
) -> tuple[c.Ints, c.Ints] | None:
    """Return which domains, of those in order, get something and how much each; None if all together take too few."""
    totals = np.cumsum(room)
    at = int(np.searchsorted(totals, units))
    if at == room.size:
        return None
    left = units - int(totals[at] - room[at])
    last = at if smallest_first else at + pick_tightest(room[at:], left)
    return np.append(np.arange(at), last), np.append(room[:at], left)


def pick_tightest(room: c.Ints, units: int) -> int:
    """Pick the first of the smallest domains that take all units, of which there is one."""
    return int(np.where(room >= units, room, _MANY).argmin())
