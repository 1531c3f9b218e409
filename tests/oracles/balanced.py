"""Balanced placement of Kueue: as many domains as the greedy choice needs, and each gets nearly the same.

Source: kubernetes-sigs/kueue, pkg/cache/scheduler/tas_balanced_placement.go at ff69552e.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

from tests.oracles import domains
from tests.oracles.domains import Domain, Wanted


@dataclass
class Greedy:
    """How many domains the greedy choice takes, and the last ones it takes, with the leader and without."""

    n_domains: int
    host: Domain | None
    last: Domain | None


def place(roots: Sequence[Domain], wanted: Wanted) -> tuple[int, list[Domain]] | None:
    """Return the level and the domains there with what each gets; nothing if it cannot be balanced."""
    candidates, threshold = choose_siblings(roots, wanted)
    if not threshold:
        return None
    level = wanted.level
    if level < wanted.slice_level:
        picked = pick_set(candidates, wanted, by_entropy=True)
        if picked is None:
            return None
        candidates, level = domains.list_children(picked), level + 1
    given = give_evenly(candidates, wanted, threshold)
    return None if given is None else (level, given)


def choose_siblings(roots: Sequence[Domain], wanted: Wanted) -> tuple[list[Domain], int]:
    """Choose the parent whose children can all be given the most, and return these and that many slices.

    Of equal parents the one that needs the fewest children wins, then the first. The children are copies, without
    what is below the threshold.
    """
    families = [list(roots)]
    if wanted.level:
        parents = domains.list_level(roots, wanted.level - 1)
        families = [one.children for one in sorted(parents, key=lambda one: one.values)]
    best, best_threshold, fewest = list[Domain](), 0, 0
    for family in families:
        tried = try_siblings(family, wanted, best_threshold)
        if tried is None:
            continue
        candidates, threshold, n_domains = tried
        if threshold > best_threshold or (threshold == best_threshold and n_domains < fewest):
            best, best_threshold, fewest = candidates, threshold, n_domains
    return best, best_threshold


def try_siblings(
    family: Sequence[Domain], wanted: Wanted, least: int
) -> tuple[list[Domain], int, int] | None:
    """Return copies of siblings that give all slices a place, the threshold, and how many of them are needed.

    If the siblings do not suffice at the threshold, a lower one is tried, which the last domain keeps beside the
    leader. No threshold below the least is tried.
    """
    lower = domains.list_children(family) if wanted.level < wanted.slice_level else family
    greedy = choose_greedily(lower, wanted)
    if greedy is None:
        return None
    threshold = wanted.slices // greedy.n_domains
    if greedy.host:
        threshold = min(threshold, greedy.host.slices_beside)
    if greedy.last:
        threshold = min(threshold, greedy.last.slices)
    thresholds = [threshold]
    if greedy.last and wanted.leaders and 0 < greedy.last.slices_beside < threshold:
        thresholds.append(greedy.last.slices_beside)
    for one in thresholds:
        candidates = copy_above(family, one, wanted)
        pruned = choose_greedily(candidates, wanted)
        if one >= least and pruned:
            return candidates, one, pruned.n_domains
    return None


def choose_greedily(candidates: Sequence[Domain], wanted: Wanted) -> Greedy | None:
    """Take the largest domains one by one, the leader's first, until all slices have a place."""
    left, leaders = wanted.slices, wanted.leaders
    greedy = Greedy(0, None, None)
    rest = list(candidates)
    if leaders:
        rest = domains.sort_for_leader(candidates, wanted)
        if not rest or not rest[0].leaders:
            return None
        greedy.host = rest.pop(0)
        greedy.n_domains = 1
        left -= greedy.host.slices_beside
    for one in domains.sort_for_workers(rest, wanted):
        if left <= 0 or one.slices <= 0:
            break
        greedy.last = one
        greedy.n_domains += 1
        left -= one.slices
    return greedy if left <= 0 else None


def copy_above(family: Sequence[Domain], threshold: int, wanted: Wanted) -> list[Domain]:
    """Copy domains without what takes fewer slices than the threshold, and count again."""
    copies = copy.deepcopy(list(family))
    for child in domains.list_children(copies):
        _prune(child, threshold, wanted)
    for one in copies:
        domains.count_up(one, wanted.level, wanted, {})
        _prune(one, threshold, wanted)
    return copies


def _prune(domain: Domain, threshold: int, wanted: Wanted) -> None:
    """Empty a domain that takes too few slices; one that takes too few beside the leader takes no leader."""
    if domain.slices < threshold:
        _clear(domain, only_leaders=False)
    elif wanted.leaders and domain.leaders and domain.slices_beside < threshold:
        _clear(domain, only_leaders=True)


def _clear(domain: Domain, *, only_leaders: bool) -> None:
    domain.pods_beside = domain.slices_beside = domain.leaders = 0
    if not only_leaders:
        domain.pods = domain.slices = 0
    for child in domain.children:
        _clear(child, only_leaders=only_leaders)


def pick_set(
    candidates: Sequence[Domain], wanted: Wanted, *, by_entropy: bool
) -> list[Domain] | None:
    """Pick as many domains as the greedy choice takes, with the least room that is enough.

    Of sets with the same room the one wins that is met first: domains are added in their order, and to the sets
    that leave the fewest leaders and pods first. A set that needs no further domain is not added to.
    """
    greedy = choose_greedily(candidates, wanted)
    if greedy is None:
        return None
    key = _rank_by_entropy if by_entropy else _rank_by_name
    # For each number of domains: (leaders, pods) that are left to place, and the first set that leaves them.
    sets: list[dict[tuple[int, int], list[Domain]]] = [{} for _ in range(greedy.n_domains + 1)]
    sets[0][wanted.leaders, wanted.slices * wanted.size] = []
    for one in sorted(candidates, key=key):
        for n in range(greedy.n_domains, 0, -1):
            for (leaders, pods), chosen in sorted(sets[n - 1].items(), key=lambda kv: kv[0]):
                if leaders <= 0 and pods <= 0:
                    continue
                if leaders > 0 and one.leaders:
                    left = (leaders - one.leaders, pods - one.pods_beside)
                    sets[n].setdefault(left, [*chosen, one])
                if one.slices > 0:
                    sets[n].setdefault((leaders, pods - one.pods), [*chosen, one])
    enough = [left for left in sets[-1] if left[0] == 0 and left[1] <= 0]
    return sets[-1][max(enough)] if enough else None


def _rank_by_name(domain: Domain) -> tuple[str, ...]:
    return domain.values


def _rank_by_entropy(domain: Domain) -> tuple[int, int, float, tuple[str, ...]]:
    return -domain.leaders, -domain.slices_beside, -measure_entropy(domain), domain.values


def measure_entropy(domain: Domain) -> float:
    """Measure how evenly the pods of a domain are spread over its children, in bits."""
    total = sum(child.pods for child in domain.children)
    parts = [child.pods / total for child in domain.children if child.pods > 0]
    return sum(-part * math.log2(part) for part in parts)


def give_evenly(
    candidates: Sequence[Domain], wanted: Wanted, threshold: int
) -> list[Domain] | None:
    """Give every domain of the best set the threshold, and what is left over to the first ones that take more."""
    picked = pick_set(candidates, wanted, by_entropy=False)
    if picked is None or wanted.slices < len(picked) * threshold:
        return None
    picked = domains.sort_for_leader(picked, wanted)
    extra, leaders = wanted.slices - len(picked) * threshold, wanted.leaders
    for one in picked:
        more = 0
        if leaders or extra:
            room = domains.count_units(one, slices=True, leaders=leaders)
            more = min(room - threshold, extra)
        one.leaders = min(leaders, 1)
        leaders -= one.leaders
        extra -= more
        one.slices = one.slices_beside = threshold + more
        one.pods = one.slices * wanted.size
        one.pods_beside = one.pods - one.leaders
    return None if extra > 0 or leaders else picked
