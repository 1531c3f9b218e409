"""Kueue's topology-aware placement, one domain after the other: where the pods of one pod set go.

Source: kubernetes-sigs/kueue, pkg/cache/scheduler/tas_flavor_snapshot.go at ff69552e. Three algorithms: BestFit,
LeastFreeCapacity (without constraints, if ``mixed``, Kueue's gate TASProfileMixed, on by default) and balanced
placement (``balanced``, its gate TASBalancedPlacement, off by default, for the mode preferred).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.oracles import balanced, domains
from tests.oracles.domains import Domain, LostError, Share, Wanted

REQUIRED, PREFERRED, UNCONSTRAINED = "required", "preferred", "unconstrained"
Values = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """A domain of the finest level: how many pods fit, whether the leader does, and how many pods beside it.

    ``score`` is the sum of the weights of the preferred node affinity. Kueue looks at it only with its gate
    TASRespectNodeAffinityPreferred and only if the finest level is the host; else it is 0.
    """

    values: Values
    pods: int
    takes_leader: bool = False
    pods_beside: int = 0
    score: int = 0


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What a pod set asks.

    Attributes:
        levels: the topology's levels, the coarsest first.
        mode: required, preferred or unconstrained.
        level: the level that is required or preferred.
        slices: the layers of slices, (level, size), the outermost first.
        leader: whether one pod more, the leader, goes with the pods.
    """

    levels: tuple[str, ...]
    count: int
    mode: str = UNCONSTRAINED
    level: str = ""
    slices: tuple[tuple[str, int], ...] = ()
    leader: bool = False
    mixed: bool = True
    balanced: bool = False


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why no domain is found.

    Attributes:
        words: Kueue's words behind ``topology "…" ``, or all of them where the ask itself is wrong.
        fits, needed: how many slices fit (pods, where a slice is one pod) out of how many.
    """

    words: str
    fits: int = 0
    needed: int = 0


LOST = Failure(words="lost: a domain was counted as larger than its children take")


def count_leaf(
    values: Values,
    free: Mapping[str, int],
    pod: Mapping[str, int],
    leader: Mapping[str, int] | None = None,
    *,
    score: int = 0,
) -> Leaf:
    """Count what fits in a leaf from amounts: of what is free, and of what a pod and the leader request."""
    takes = leader is not None and count_times(free, leader) > 0
    rest = {key: free[key] - (leader or {}).get(key, 0) for key in free} if takes else free
    return Leaf(
        values=values,
        pods=count_times(free, pod),
        takes_leader=takes,
        pods_beside=count_times(rest, pod),
        score=score,
    )


def count_times(free: Mapping[str, int], request: Mapping[str, int]) -> int:
    """Count how often a request fits; a resource that a leaf does not have is one of which nothing is free."""
    return min(max(0, free.get(key, 0) // each) for key, each in request.items() if each)


def assign(leaves: Sequence[Leaf], ask: Ask) -> dict[Values, tuple[int, int]] | Failure:
    """Return (pods, leaders) for each leaf that gets some, or why there is no place."""
    wanted = read_ask(ask)
    if isinstance(wanted, Failure):
        return wanted
    if not leaves:
        return Failure(words=f"no topology domains at level: {ask.levels[wanted.level]}")
    roots = grow_tree(leaves, wanted)
    even = balanced.place(roots, wanted) if ask.balanced and ask.mode == PREFERRED else None
    found = even or choose_level(roots, wanted, wanted.level)
    if isinstance(found, Short):
        return explain_layers(roots, ask, found) if len(ask.slices) > 1 else explain(found, wanted)
    level, chosen = found
    try:
        places = descend(level, chosen, wanted, len(ask.levels) - 1, is_balanced=even is not None)
    except LostError:
        return LOST
    return {one.values: (one.pods, one.leaders) for one in places if one.pods or one.leaders}


def read_ask(ask: Ask) -> Wanted | Failure:
    """Find the levels and sizes that an ask means, or what is wrong with it."""
    names = list(ask.levels)
    level = ask.level
    if ask.mode == UNCONSTRAINED:
        level = names[0] if ask.slices else names[-1]
    size = ask.slices[0][1] if ask.slices else 1
    slice_level = ask.slices[0][0] if ask.slices else names[-1]
    if size <= 0:
        return Failure(words="slice topology requested, but slice size not provided")
    if level not in names:
        return Failure(words=f"no requested topology level: {level}")
    if slice_level not in names:
        return Failure(words=f"no requested topology level for slices: {slice_level}")
    if names.index(level) > names.index(slice_level):
        words = f"podset slice topology {slice_level} is above the podset topology {level}"
        return Failure(words=words)
    inner: dict[int, int] = {}
    above, outer = names.index(slice_level), size
    for name, one in ask.slices[1:]:
        words = _refuse_layer(names, name, one, above, outer)
        if words:
            return Failure(words=words)
        inner |= dict.fromkeys(range(above + 1, names.index(name) + 1), one)
        above, outer = names.index(name), one
    return Wanted(
        pods=ask.count,
        leaders=int(ask.leader),
        level=names.index(level),
        slice_level=names.index(slice_level),
        size=size,
        inner=inner,
        required=ask.mode == REQUIRED,
        unconstrained=ask.mode == UNCONSTRAINED,
        smallest_first=ask.mode == UNCONSTRAINED and ask.mixed,
    )


def _refuse_layer(names: list[str], name: str, size: int, above: int, outer: int) -> str:
    layer = "additional slice layer"
    if name not in names:
        return f"no requested topology level for {layer}: {name}"
    if names.index(name) <= above:
        return f"{layer} topology {name} must be at a lower level than {names[above]}"
    if outer % size:
        return f"{layer} size {size} must evenly divide parent layer size {outer}"
    return ""


def grow_tree(leaves: Sequence[Leaf], wanted: Wanted) -> list[Domain]:
    """Grow the tree above the leaves, count what fits everywhere, and return the domains of the coarsest level."""
    known: dict[Values, Domain] = {}
    for leaf in sorted(leaves, key=lambda one: one.values):
        takes = bool(wanted.leaders) and leaf.takes_leader
        known[leaf.values] = Domain(
            values=leaf.values,
            pods=leaf.pods,
            pods_beside=leaf.pods_beside if takes else leaf.pods,
            leaders=int(takes),
            score=leaf.score,
        )
        for depth in range(len(leaf.values) - 1, 0, -1):
            child, values = known[leaf.values[: depth + 1]], leaf.values[:depth]
            is_new = values not in known
            parent = known.setdefault(values, Domain(values=values))
            parent.children.append(child)
            if not is_new:
                break
    roots = [one for values, one in known.items() if len(values) == 1]
    for root in roots:
        domains.count_up(root, 0, wanted, wanted.inner)
    return roots


@dataclass(frozen=True)
class Short:
    """At which level the search has ended without a place, and how many slices had one."""

    level: int
    fits: int


def choose_level(
    roots: Sequence[Domain], wanted: Wanted, level: int
) -> tuple[int, list[Domain]] | Short:
    """Choose the domains that take all slices: one of the level asked for, or what a preference falls back to."""
    ranked = domains.sort_for_leader(domains.list_level(roots, level), wanted)
    whole = [one for one in ranked if takes_whole(one, wanted)]
    if wanted.smallest_first and whole:
        return level, whole[:1]
    if whole and (wanted.required or whole[0] is ranked[0]):
        behind = ranked[ranked.index(whole[0]) :]
        best = domains.pick_tightest(behind, wanted.slices, slices=True, leaders=wanted.leaders)
        return level, [best]
    if wanted.required:
        return Short(level, ranked[0].slices)
    if level > 0 and not wanted.unconstrained:
        return choose_level(roots, wanted, level - 1)
    return spread_over(ranked, wanted, level)


def takes_whole(domain: Domain, wanted: Wanted) -> bool:
    """Whether a domain takes the leader, if there is one, and all slices beside it."""
    room = domains.count_units(domain, slices=True, leaders=wanted.leaders)
    return room >= wanted.slices and domain.leaders >= wanted.leaders


def spread_over(
    ranked: list[Domain], wanted: Wanted, level: int
) -> tuple[int, list[Domain]] | Short:
    """Choose several domains: first the leader's, then in their order, the rest where it fits tightest."""
    ranked = domains.put_host_first(ranked, wanted.pods, wanted.leaders, wanted.size, slices=True)
    chosen: list[Domain] = []
    left, leaders = wanted.slices, wanted.leaders
    if leaders:
        if not ranked[0].leaders:
            return Short(level, 0)
        host = _pick_last(ranked, left, wanted, leaders)
        chosen.append(host)
        left -= host.slices_beside
        ranked = ranked[1:]
    ranked = domains.sort_for_workers(ranked, wanted)
    for at in range(len(ranked)):
        if left <= 0:
            break
        one = _pick_last(ranked[at:], left, wanted, 0)
        chosen.append(one)
        left -= one.slices
    return Short(level, wanted.slices - left) if left > 0 else (level, chosen)


def _pick_last(ranked: Sequence[Domain], left: int, wanted: Wanted, leaders: int) -> Domain:
    """Pick the first domain, or, if it takes all that is left, the one that it fits tightest."""
    room = domains.count_units(ranked[0], slices=True, leaders=leaders)
    if wanted.smallest_first or room < left:
        return ranked[0]
    return domains.pick_tightest(ranked, left, slices=True, leaders=leaders)


def descend(
    level: int, places: list[Domain], wanted: Wanted, finest: int, *, is_balanced: bool
) -> list[Domain]:
    """Share out from level to level: above the slices' level among all children, below it parent by parent.

    Balanced placement has decided how much each domain gets, so it goes parent by parent from the start. Where a
    single pod is what is shared out, children are ranked by pods alone, those with the fewest first.
    """
    whole = Share(wanted.pods, wanted.leaders, wanted.size, slices=True)
    places = domains.share_out(places, whole, wanted)
    while level < wanted.slice_level and not is_balanced:
        children = domains.sort_for_workers(domains.list_children(places), wanted)
        places = domains.share_out(children, whole, wanted)
        level += 1
    while level < finest:
        size = wanted.size if level < wanted.slice_level else wanted.inner.get(level + 1, 1)
        lower = []
        for parent in places:
            children = domains.sort_for_workers(parent.children, wanted)
            for child in children if size > 1 else ():
                child.slices = child.pods // size
                child.slices_beside = child.pods_beside // size
            share = Share(parent.pods, parent.leaders, size, slices=size > 1)
            lower += domains.share_out(children, share, wanted)
        places = lower
        level += 1
    return places


def explain(short: Short, wanted: Wanted) -> Failure:
    """Say how many fit out of how many."""
    unit = "pod(s)" if wanted.size == 1 else "slice(s)"
    words = f"allows to fit only {short.fits} out of {wanted.slices} {unit}"
    if not short.fits:
        words = f"doesn't allow to fit any of {wanted.slices} {unit}"
    return Failure(words=words, fits=short.fits, needed=wanted.slices)


def explain_layers(roots: Sequence[Domain], ask: Ask, short: Short) -> Failure:
    """Say for each layer how many slices fit in the domain that takes the most, out of how many."""
    best = min(
        domains.list_level(roots, short.level), key=lambda one: (-one.slices, ",".join(one.values))
    )
    words = "doesn't allow to fit"
    for name, size in ask.slices:
        there = domains.list_level([best], ask.levels.index(name) - short.level)
        fit = sum(one.pods // size for one in there)
        words += f"; {fit}/{ask.count // size} slice(s) fit on level {name}"
    return Failure(words=words, fits=short.fits, needed=ask.count // ask.slices[0][1])
