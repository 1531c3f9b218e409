"""Changes that would let in a pod that fits nowhere, the cheapest first. Each change was tried on the engine.

First comes what happens by itself: pods that end already. Then what whoever wrote the pod can do: ask less, the
least given up first; insist on less. Then what whoever runs the nodes can do: bring one back. Last what costs
others their place: pods that would have to end. Of several things that are only enough together there is one
such set, none of which could be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from scheduler.api import wire
from scheduler.schema import columns as c
from scheduler.state.nodes import TaintKey
from scheduler.state.pods import PodRecord
from scheduler.telling.advice import back, ending, less, nearest, wishes
from scheduler.telling.advice.asking import Asking
from scheduler.telling.advice.back import Back
from scheduler.telling.advice.ending import Ending
from scheduler.telling.advice.less import Ask, Less
from scheduler.telling.advice.wishes import Wish

# On so many of the closest nodes it is tried which pods would have to end, and of so many it is told; on so many
# what would have to be asked less of several resources. Nodes with very many pods are fewer: each pod is tried.
_TRIED, _TOLD, _CLOSEST, _PODS = 32, 3, 8, 1000


class Leaving(NamedTuple):
    """Pods that end already."""

    pods: tuple[PodRecord, ...]


class Drop(NamedTuple):
    """Something that the pod insists on, and would not."""

    wish: Wish


class Tolerate(NamedTuple):
    """A taint that the pod would tolerate."""

    taint: TaintKey


T = TypeVar("T")
Own = Less | Drop | Tolerate
Step = Leaving | Less | Drop | Tolerate | Back | Ending


class Advice(NamedTuple):
    """Steps that let the pod in together, and the rows on which it fits then, by rank."""

    steps: tuple[Step, ...]
    rows: c.Ints


class ObjectFacts(NamedTuple):
    """What the objects say beyond the columns.

    Attributes:
        pod: the pod's words.
        nodes: of the cluster, by name.
        may_end: whether the end of a pod is worth being told: not of one that comes again at once.
    """

    pod: wire.Pod
    nodes: Mapping[str, wire.Node]
    may_end: Callable[[PodRecord], bool]


def find_advice(asking: Asking, pod: PodRecord, known: ObjectFacts) -> list[Advice]:
    """What would let in a pod that fits nowhere now; empty when nothing was found, or it fits."""
    if asking.fits(pod):
        return []
    own = [*_less(asking, pod, known.pod), *_drops(asking, known.pod), *_taints(asking, known.pod)]
    return [
        *_leaving(asking, pod),
        *(own or _together(asking, known.pod)),
        *(
            Advice((one,), np.array([one.row]))
            for one in back.find_nodes_back(asking, pod, known.nodes)
        ),
        *_ending(asking, pod, known),
    ]


def _leaving(asking: Asking, pod: PodRecord) -> list[Advice]:
    shape = asking.shape(pod)
    pods = ending.leaving(asking, shape) if shape else ()
    return [Advice((Leaving(pods),), _rows_without(asking, pod, pods))] if pods else []


def _less(asking: Asking, pod: PodRecord, words: wire.Pod) -> list[Advice]:
    """The least given up first; what containers ask in unlike amounts also for those of each amount alone."""
    found: list[tuple[Less, PodRecord]] = []
    for whole in less.asks(pod, words):
        of_one: list[tuple[Less, PodRecord]] = []
        for ask in (*less.asks_apart(words, whole), whole):

            def asked(amount: int, ask: Ask = ask) -> PodRecord:
                return less.asking_less(asking, words, {ask: amount})

            def fits(amount: int, asked: Callable[[int], PodRecord] = asked) -> bool:
                return asking.fits(asked(amount))

            one = less.largest(ask, fits)
            # All need not ask less where those of one amount could alone, and as little less.
            if one is not None and (
                ask is not whole or all(one.most > other.most for other, _ in of_one)
            ):
                of_one.append((less.name_containers(words, one), asked(one.most)))
        found += of_one
    found.sort(key=lambda one: -one[0].most / one[0].ask.asked)
    return [Advice((one,), asking.fitting(record)) for one, record in found]


def _drops(asking: Asking, words: wire.Pod) -> list[Advice]:
    found = []
    for wish in wishes.of_pod(words):
        rows = asking.fitting(asking.cluster.read_as_if(wishes.without(words, [wish])))
        if rows.size:
            found.append(Advice((Drop(wish),), rows))
    return found


def _taints(asking: Asking, words: wire.Pod) -> list[Advice]:
    found: dict[tuple[TaintKey, ...], Advice] = {}
    for taints in wishes.taints(asking.cluster):
        needed = _enough(taints, lambda some: _fits_tolerating(asking, words, some))
        if needed and needed not in found:
            rows = asking.fitting(asking.cluster.read_as_if(wishes.tolerating(words, needed)))
            found[needed] = Advice(tuple(map(Tolerate, needed)), rows)
    return list(found.values())


def _fits_tolerating(asking: Asking, words: wire.Pod, taints: Sequence[TaintKey]) -> bool:
    return asking.fits(asking.cluster.read_as_if(wishes.tolerating(words, taints)))


def _together(asking: Asking, words: wire.Pod) -> list[Advice]:
    """Several steps of the pod's own where none is enough alone."""
    taints = dict.fromkeys(taint for some in wishes.taints(asking.cluster) for taint in some)
    every: list[Own] = [*map(Drop, wishes.of_pod(words)), *map(Tolerate, taints)]
    for steps in (every, []) if every else ([],):
        lesser = _lesser(asking, words, steps)
        if lesser is None:
            continue

        def asked(some: Sequence[Own]) -> PodRecord:
            return _with(asking, words, some)

        needed = list(_enough([*lesser, *steps], lambda some: asking.fits(asked(some))))
        for i, one in enumerate(needed):
            # What was the most on one node may not be on another, on which fewer steps are enough.
            if isinstance(one, Less):
                needed[i] = less.name_containers(words, _most(asking, words, needed, one))
        return [Advice(tuple(needed), asking.fitting(asked(needed)))]
    return []


def _most(asking: Asking, words: wire.Pod, steps: Sequence[Own], one: Less) -> Less:
    """One of some steps that let the pod in, with the most that does; all others as they are."""
    others = [other for other in steps if other is not one]

    def fits(amount: int) -> bool:
        return asking.fits(_with(asking, words, [*others, one._replace(most=amount)]))

    return less.largest(one.ask, fits) or one


def _with(asking: Asking, words: wire.Pod, steps: Sequence[Own]) -> PodRecord:
    """The pod after some steps of its own."""
    pod = wishes.without(words, [one.wish for one in steps if isinstance(one, Drop)])
    pod = wishes.tolerating(pod, [one.taint for one in steps if isinstance(one, Tolerate)])
    amounts = {one.ask: one.most for one in steps if isinstance(one, Less)}
    return less.asking_less(asking, pod, amounts)


def _lesser(asking: Asking, words: wire.Pod, steps: Sequence[Own]) -> tuple[Less, ...] | None:
    """What the pod would have to ask less, all steps being taken, on the node that is closest of those on which that helps.

    Nothing where it fits then; None when no amounts would do.
    """

    def asked(amounts: Mapping[Ask, int]) -> PodRecord:
        return _with(asking, words, [*steps, *(Less(*one) for one in amounts.items())])

    pod = asked({})
    closest = None if asking.fits(pod) else nearest.ordered(asking, pod)
    if closest is None:
        return () if asking.fits(pod) else None
    for row in closest.judged.rows[closest.order[:_CLOSEST]].tolist():
        if (found := _lesser_on(asking, less.asks(pod, words), row, asked)) is not None:
            return found
    return None


def _lesser_on(
    asking: Asking, asks: Sequence[Ask], row: int, asked: Callable[[Mapping[Ask, int]], PodRecord]
) -> tuple[Less, ...] | None:
    """What would have to be asked less on the node of a row; None when no amounts would do."""

    def fits(amounts: Mapping[Ask, int]) -> bool:
        shape = asking.shape(asked(amounts))
        return shape is not None and asking.takes(shape, row)

    amounts = {ask: ask.unit for ask in asks}
    if not fits(amounts):
        return None
    found: list[Less] = []
    for ask in asks:

        def with_amount(amount: int, ask: Ask = ask) -> bool:
            return fits(amounts | {ask: amount})

        one = None if with_amount(ask.asked) else less.largest(ask, with_amount)
        amounts[ask] = one.most if one else ask.asked
        found += [one] if one else []
    return tuple(found)


def _enough(steps: Sequence[T], fits: Callable[[Sequence[T]], bool]) -> tuple[T, ...]:
    """Those of some steps that are needed; none when all of them are not enough."""
    if not steps or not fits(steps):
        return ()
    needed = list(steps)
    for one in steps:
        without = [other for other in needed if other is not one]
        if fits(without):
            needed = without
    return tuple(needed)


def _ending(asking: Asking, pod: PodRecord, known: ObjectFacts) -> list[Advice]:
    """On the nodes that come closest, and could take the pod if others were not there."""
    shape, closest = asking.shape(pod), nearest.ordered(asking, pod)
    if shape is None or closest is None:
        return []
    judged, order, hopeless = closest
    hopeful = order[hopeless[order] == 0][:_TRIED]
    tried: list[Ending | None] = []
    n_pods = 0
    for row in judged.rows[hopeful].tolist():
        n_pods += len(asking.on(row))
        if tried and n_pods > _PODS:
            break
        tried.append(ending.on(asking, shape, row, known.may_end))
    # Each set of pods once, whatever the number of nodes that its end opens.
    each: dict[frozenset[str], Ending] = {}
    for one in sorted((one for one in tried if one), key=lambda one: one.cost):
        if len(each) == _TOLD:
            break
        lessened = ending.lessen(asking, shape, one)
        each.setdefault(frozenset(other.uid for other in lessened.pods), lessened)
    told = sorted(each.values(), key=lambda one: one.cost)
    return [Advice((one,), _rows_without(asking, pod, one.pods)) for one in told]


def _rows_without(asking: Asking, pod: PodRecord, others: Sequence[PodRecord]) -> c.Ints:
    """The nodes on which a pod fits when others have ended."""
    with asking.cluster.trial() as trial:
        for one in others:
            trial.take_away(one.uid)
        return asking.fitting(pod)
