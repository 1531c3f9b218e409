"""The tree of a topology as Kueue counts on it: how many pods and slices fit in each domain, and who comes first.

Source: kubernetes-sigs/kueue, pkg/cache/scheduler/tas_flavor_snapshot.go at ff69552e (fillInCounts, sortedDomains,
updateCountsToMinimumGeneric). "Beside" in a name means: while the leader is in the domain, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(eq=False)
class Domain:
    """One domain of one level, with what fits there; once it is chosen, with what it gets.

    ``slices`` is filled at the level of the slices and above it only, and is 0 below.
    """

    values: tuple[str, ...]
    children: list[Domain] = field(default_factory=list)
    pods: int = 0
    pods_beside: int = 0
    slices: int = 0
    slices_beside: int = 0
    leaders: int = 0
    score: int = 0


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """An ask in numbers of levels, 0 being the coarsest.

    ``inner`` has the size of the slices within slices, for each level that has to keep them whole.
    """

    pods: int
    leaders: int
    level: int
    slice_level: int
    size: int
    inner: Mapping[int, int]
    required: bool
    unconstrained: bool
    smallest_first: bool

    @property
    def slices(self) -> int:
        return self.pods // self.size


def list_level(roots: Sequence[Domain], level: int) -> list[Domain]:
    """List the domains of a level."""
    found = list(roots)
    for _ in range(level):
        found = list_children(found)
    return found


def list_children(domains: Iterable[Domain]) -> list[Domain]:
    return [child for one in domains for child in one.children]


def count_up(domain: Domain, level: int, wanted: Wanted, inner: Mapping[int, int]) -> None:
    """Count what fits in a domain and in all below it, from the counts of the leaves.

    Beside the leader there fits what fits without it, less what the child loses that loses least of those that
    take the leader. If no child takes it, nothing fits beside it.
    """
    for child in domain.children:
        count_up(child, level + 1, wanted, inner)
    if domain.children:
        unit = inner.get(level + 1, 1)
        hosts = [one for one in domain.children if one.leaders or not wanted.leaders]
        domain.pods = sum(_round(one.pods, unit) for one in domain.children)
        domain.slices = sum(one.slices for one in domain.children)
        domain.leaders = max(one.leaders for one in domain.children)
        domain.score = sum(one.score for one in domain.children)
        domain.pods_beside = domain.slices_beside = 0
        if hosts:
            lost = min(_round(one.pods, unit) - _round(one.pods_beside, unit) for one in hosts)
            domain.pods_beside = domain.pods - lost
            lost = min(one.slices - one.slices_beside for one in hosts)
            domain.slices_beside = domain.slices - lost
    if level == wanted.slice_level:
        domain.slices = domain.pods // wanted.size
        domain.slices_beside = domain.pods_beside // wanted.size


def _round(pods: int, unit: int) -> int:
    return pods // unit * unit


def sort_for_leader(domains: Iterable[Domain], wanted: Wanted) -> list[Domain]:
    """Sort by what fits beside the leader; those that take a leader first."""
    sign = 1 if wanted.smallest_first else -1
    return sorted(
        domains,
        key=lambda one: (
            -one.leaders,
            -one.score,
            sign * one.slices_beside,
            one.pods_beside,
            one.values,
        ),
    )


def sort_for_workers(domains: Iterable[Domain], wanted: Wanted) -> list[Domain]:
    """Sort by what fits without a leader."""
    sign = 1 if wanted.smallest_first else -1
    return sorted(domains, key=lambda one: (-one.score, sign * one.slices, one.pods, one.values))


def count_units(domain: Domain, *, slices: bool, leaders: int) -> int:
    """Count what fits in slices or pods, beside the leader if one is still without a domain."""
    if slices:
        return domain.slices_beside if leaders else domain.slices
    return domain.pods_beside if leaders else domain.pods


def pick_tightest(domains: Sequence[Domain], units: int, *, slices: bool, leaders: int) -> Domain:
    """Pick the domain with the least room of those that take all units, the first of several.

    Domains of a lower score than the first one's are not looked at. If none takes all, the first is picked.
    """
    best, least = domains[0], None
    for one in domains:
        room = count_units(one, slices=slices, leaders=leaders)
        if one.score != domains[0].score:
            break
        if one.leaders >= leaders and room >= units and (least is None or room < least):
            best, least = one, room
    return best


def put_host_first(
    domains: list[Domain], pods: int, leaders: int, size: int, *, slices: bool
) -> list[Domain]:
    """Move to the front the first domain that can take the leader so that all workers still fit beside it."""
    if not leaders or len(domains) < 2:
        return domains
    needed = pods // size if slices else pods
    room = sum(count_units(one, slices=slices, leaders=0) for one in domains)
    for one in domains:
        lost = count_units(one, slices=slices, leaders=0)
        lost -= count_units(one, slices=slices, leaders=1)
        if one.leaders >= leaders and room - lost >= needed:
            return [one, *(other for other in domains if other is not one)]
    return domains


class LostError(Exception):
    """The counts of a domain promised more than its children take; Kueue then gives no domain at all."""


@dataclass(frozen=True)
class Share:
    """What is to be shared out among domains: pods and leaders, in slices of a size or pod by pod."""

    pods: int
    leaders: int
    size: int
    slices: bool


def share_out(domains: list[Domain], share: Share, wanted: Wanted) -> list[Domain]:
    """Give domains in their order all that they take, and the rest to the one that it fits tightest.

    The domains that get something, or are passed on the way, are returned; what they get is written in them.
    """
    slices = share.slices
    size = share.size if slices else 1
    domains = put_host_first(domains, share.pods, share.leaders, share.size, slices=slices)
    left, leaders = share.pods // size, share.leaders
    chosen = []
    for at, first in enumerate(domains):
        one = first
        fits = one.leaders >= leaders and count_units(one, slices=slices, leaders=leaders) >= left
        if fits and not wanted.smallest_first:
            one = pick_tightest(domains[at:], left, slices=slices, leaders=leaders)
        chosen.append(one)
        given = min(left, count_units(one, slices=slices, leaders=leaders))
        one.leaders = min(leaders, one.leaders)
        one.pods = given * size
        if fits:
            return chosen
        left -= given
        leaders -= one.leaders
    raise LostError
