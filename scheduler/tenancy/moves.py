"""Whom to move for a workload whose quota is there, but scattered over nodes: workloads that find another place at once.

Kueue and KAI have nothing like it: what gives way there waits until there is room again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from scheduler.tenancy.works import Work

# So many domains are tried at most, the fullest first, and so many sets of workloads in all.
_SITES_MOST, _TRIALS_MOST = 16, 96


class MoveSearch(NamedTuple):
    """How places are found.

    Attributes:
        has_place: whether there is a place for the asker once some workloads have gone.
        can_move: whether there is then another place for each of these, too.
        list_sites: lists for some workloads those who are in one domain that would do, domain by domain.
    """

    has_place: Callable[[Sequence[str]], bool]
    can_move: Callable[[Sequence[str]], bool]
    list_sites: Callable[[Sequence[str]], Sequence[frozenset[str]]]


def find_moves(movable: Sequence[Work], search: MoveSearch) -> list[str]:
    """Find the fewest who make a place in one domain by moving; nobody if no set that was tried does.

    First each one is tried alone, in the order given, then in each domain as many together as make a place; whoever need
    not move stays.
    """
    order = {one.key: i for i, one in enumerate(movable)}
    domains = search.list_sites(list(order))[:_SITES_MOST]
    sites = [sorted(domain, key=order.__getitem__) for domain in domains]
    trials = _Trials(search)
    for key in sorted({key for site in sites for key in site}, key=order.__getitem__):
        if trials.has_place([key]) and search.can_move([key]):
            return [key]
    best: list[str] = []
    for site in sites:
        found = _find_together(site, trials, len(best))
        if found and search.can_move(found):
            best = found
    return best


class _Trials:
    """Asks whether there is a place, but not more often than is worth it: then there is none."""

    def __init__(self, search: MoveSearch) -> None:
        self._search, self._n_left = search, _TRIALS_MOST

    def has_place(self, gone: Sequence[str]) -> bool:
        self._n_left -= 1
        return self._n_left >= 0 and self._search.has_place(gone)


def _find_together(site: Sequence[str], trials: _Trials, before: int) -> list[str]:
    """Find who of a domain make a place together; nobody if they are not fewer than ``before``, if that is not 0."""
    most = min(len(site), before - 1) if before else len(site)
    for n in range(2, most + 1):
        if trials.has_place(site[:n]):
            return _spare(site[:n], trials)
    return []


def _spare(taken: Sequence[str], trials: _Trials) -> list[str]:
    """Leave out all who need not move; the last one who was taken is needed."""
    needed = list(taken)
    for key in taken[-2::-1]:
        rest = [one for one in needed if one != key]
        if trials.has_place(rest):
            needed = rest
    return needed
