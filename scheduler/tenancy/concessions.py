"""Who has given quota back for whom, so that nobody takes it back from the one who got it.

Kueue's rules let two workloads evict each other for ever, or three of them in a circle: each is right at its turn. Here a
workload that has given way does not take quota from the one it gave way to, nor from anyone to whom that one has given
way, as long as both are there and its own priority and queue stay the same.

Then evictions end as long as nothing else happens. Suppose they do not. Of finitely many workloads some are evicted
again and again; each of them by at least one that gets quota again and again, and so is itself evicted again and again.
So among them each has given way to another one, and following that leads back to where it began: a circle. But the last
eviction that closed the circle took quota from somebody to whom its asker had given way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from scheduler.tenancy.works import Work


class Given(NamedTuple):
    """The key and the uid of a workload to which another one has given way."""

    key: str
    uid: str


def note_given_way(victim: Work, asker: Work) -> None:
    """Note that a workload gives quota back for another one."""
    victim.give_way(Given(asker.key, asker.uid))
    asker.is_owed = True


def take_over(work: Work, given: Iterable[tuple[str, str]], *, is_owed: bool) -> None:
    """Take over what was known of a workload before a fresh start."""
    for key, uid in given:
        work.give_way(Given(key, uid))
    work.is_owed = is_owed


def list_spared(works: Mapping[str, Work], asker: Work) -> frozenset[str]:
    """List the keys of the workloads from which another one takes no quota, as it has given way to them."""
    if not asker.given:
        return frozenset()
    spared: set[str] = set()
    left = [asker]
    while left:
        for key, uid in left.pop().given:
            one = works.get(key)
            if one is not None and one.uid == uid and key not in spared:
                spared.add(key)
                left.append(one)
    return frozenset(spared)


class HasWork(Protocol):
    """Something that stands for a workload."""

    @property
    def work(self) -> Work: ...  # noqa: D102


E = TypeVar("E", bound=HasWork)


def defer_givers(
    drawn: Iterable[E], entries: Sequence[E], works: Mapping[str, Work]
) -> Iterator[E]:
    """Yield entries as they are drawn, but those that have given way behind all for whom others have.

    Else what is given back for one workload is taken by another one that has to give it back at once for a third.

    Args:
        drawn: the entries in their order, which may be found while they are drawn.
        entries: all of them.
        works: all workloads, by key.
    """
    owed = {one.work.key: one for one in entries if one.work.is_owed}
    if not owed:
        yield from drawn
        return
    spared = {key: list_spared(works, one.work) for key, one in owed.items()}
    # Nobody comes before those to whom it has given way. They spare each other in no circle.
    ordered = sorted(owed.values(), key=lambda one: (len(spared[one.work.key]), one.work.place))
    done: set[str] = set()
    for one in drawn:
        key = one.work.key
        first = [other for other in ordered if key not in spared[other.work.key]]
        for entry in (*(first if one.work.given else ()), one):
            if entry.work.key not in done:
                done.add(entry.work.key)
                yield entry
