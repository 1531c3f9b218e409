"""Whether a group can be placed whose pods may share a claim on a device of one domain: all ways to place it are tried."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True)
class Spot:
    """A node: its domain, and what it has free."""

    domain: int
    cpu: int
    gpus: int


@dataclass(frozen=True)
class Member:
    """A pod of the group: whether it has the shared claim, and what it needs for itself."""

    shares: bool
    cpu: int
    gpus: int


def fits(spots: tuple[Spot, ...], free: frozenset[int], members: tuple[Member, ...]) -> bool:
    """Whether all members fit at once; ``free`` are the domains whose device is free."""
    return any(
        _is_possible(spots, free, members, chosen)
        for chosen in product(range(len(spots)), repeat=len(members))
    )


def _is_possible(
    spots: tuple[Spot, ...],
    free: frozenset[int],
    members: tuple[Member, ...],
    chosen: tuple[int, ...],
) -> bool:
    domains = {spots[at].domain for at, one in zip(chosen, members, strict=True) if one.shares}
    if len(domains) > 1 or not domains <= free:
        return False
    for at, spot in enumerate(spots):
        there = [one for place, one in zip(chosen, members, strict=True) if place == at]
        if sum(one.cpu for one in there) > spot.cpu or sum(one.gpus for one in there) > spot.gpus:
            return False
    return True
