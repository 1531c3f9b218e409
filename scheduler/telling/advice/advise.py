"""Advice: changes after which a pod would fit that fits nowhere now, the cheapest first. Each change was tried.

First comes what happens without any action: pods that are ending already. Then comes what the author of the pod can do:
request less, with the smallest reduction first, or drop a requirement. Then comes what the administrator of the nodes can
do: bring a node back. Last come other pods that would have to end. If several steps are only enough together, the advice
has one such set, and none of its steps could be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from scheduler.api import wire
from scheduler.schema import columns as c
from scheduler.state.nodes import TaintKey
from scheduler.state.pods import PodRecord
from scheduler.telling.advice import back, claims, ending, less, nearest, wishes
from scheduler.telling.advice.asking import Asking
from scheduler.telling.advice.back import Back
from scheduler.telling.advice.claims import Release, Revise
from scheduler.telling.advice.ending import Ending
from scheduler.telling.advice.less import Ask, Less
from scheduler.telling.advice.wishes import Wish

# The most nodes on which the end of pods is tried, and the most such sets of pods in the advice; the most nodes on which
# smaller requests of several resources are tried; and the most pods that are tried on all nodes together.
_TRIED, _TOLD, _CLOSEST, _PODS = 32, 3, 8, 1000


class Leaving(NamedTuple):
    """Pods that are ending already."""

    pods: tuple[PodRecord, ...]


class Drop(NamedTuple):
    """A requirement that the pod would drop."""

    wish: Wish


class Tolerate(NamedTuple):
    """A taint that the pod would tolerate."""

    taint: TaintKey


T = TypeVar("T")
Own = Less | Drop | Tolerate
Step = Leaving | Less | Drop | Tolerate | Revise | Back | Release | Ending


class Advice(NamedTuple):
    """Steps after which the pod fits, and the rows on which it fits then, by rank."""

    steps: tuple[Step, ...]
    rows: c.Ints


class ObjectFacts(NamedTuple):
    """What is known from API objects besides the columns.

    Attributes:
        pod: the object of the pod.
        nodes: the node objects of the cluster, by name.
        may_end: whether advice may name the end of a pod; False for a pod that would come back at once.
    """

    pod: wire.Pod
    nodes: Mapping[str, wire.Node]
    may_end: Callable[[PodRecord], bool]


def find_advice(asking: Asking, pod: PodRecord, known: ObjectFacts) -> list[Advice]:
    """Find changes after which a pod fits that fits nowhere now; empty if the pod fits or if no change was found."""
    if asking.fits(pod):
        return []
    own = [
        *_advise_less(asking, pod, known.pod),
        *_advise_drops(asking, known.pod),
        *_advise_tolerations(asking, known.pod),
        *(Advice((one,), rows) for one, rows in claims.find_revisions(asking, pod)),
    ]
    return [
        *_advise_waiting(asking, pod),
        *(own or _advise_several(asking, known.pod)),
        *(
            Advice((one,), np.array([one.row]))
            for one in back.find_nodes_back(asking, pod, known.nodes)
        ),
        *_advise_releases(asking, pod, known),
        *_advise_endings(asking, pod, known),
    ]


def _advise_waiting(asking: Asking, pod: PodRecord) -> list[Advice]:
    shape = asking.make_shape(pod)
    pods = ending.find_leaving(asking, shape) if shape else ()
    return [Advice((Leaving(pods),), _find_rows_without(asking, pod, pods))] if pods else []


def _advise_less(asking: Asking, pod: PodRecord, words: wire.Pod) -> list[Advice]:
    """Advise smaller requests, the smallest reduction first.

    If containers request different amounts of a resource, each amount is also reduced by itself.
    """
    found: list[tuple[Less, PodRecord]] = []
    for whole in less.list_asks(pod, words, asking.devices):
        of_one: list[tuple[Less, PodRecord]] = []
        for ask in (*less.list_asks_apart(words, whole), whole):

            def asked(amount: int, ask: Ask = ask) -> PodRecord:
                return less.request_less(asking, words, {ask: amount})

            def fits(amount: int, asked: Callable[[int], PodRecord] = asked) -> bool:
                return asking.fits(asked(amount))

            one = less.find_largest(ask, fits)
            # All containers are reduced together only if that needs a smaller reduction than any one amount by itself.
            if one is not None and (
                ask is not whole or all(one.most > other.most for other, _ in of_one)
            ):
                of_one.append((less.name_containers(words, one), asked(one.most)))
        found += of_one
    found.sort(key=lambda one: -one[0].most / one[0].ask.asked)
    return [Advice((one,), asking.find_fitting(record)) for one, record in found]


def _advise_drops(asking: Asking, words: wire.Pod) -> list[Advice]:
    found = []
    for wish in wishes.list_wishes(words):
        rows = asking.find_fitting(asking.cluster.read_as_if(wishes.drop_wishes(words, [wish])))
        if rows.size:
            found.append(Advice((Drop(wish),), rows))
    return found


def _advise_tolerations(asking: Asking, words: wire.Pod) -> list[Advice]:
    found: dict[tuple[TaintKey, ...], Advice] = {}
    for taints in wishes.list_taints(asking.cluster):
        needed = _keep_needed(taints, lambda some: _fits_tolerating(asking, words, some))
        if needed and needed not in found:
            rows = asking.find_fitting(
                asking.cluster.read_as_if(wishes.tolerate_taints(words, needed))
            )
            found[needed] = Advice(tuple(map(Tolerate, needed)), rows)
    return list(found.values())


def _fits_tolerating(asking: Asking, words: wire.Pod, taints: Sequence[TaintKey]) -> bool:
    return asking.fits(asking.cluster.read_as_if(wishes.tolerate_taints(words, taints)))


def _advise_several(asking: Asking, words: wire.Pod) -> list[Advice]:
    """Advise several steps on the pod together, if no single step is enough."""
    taints = dict.fromkeys(taint for some in wishes.list_taints(asking.cluster) for taint in some)
    every: list[Own] = [*map(Drop, wishes.list_wishes(words)), *map(Tolerate, taints)]
    for steps in (every, []) if every else ([],):
        lesser = _find_lesser(asking, words, steps)
        if lesser is None:
            continue

        def asked(some: Sequence[Own]) -> PodRecord:
            return _apply_steps(asking, words, some)

        needed = list(_keep_needed([*lesser, *steps], lambda some: asking.fits(asked(some))))
        for i, one in enumerate(needed):
            # With fewer steps the pod may fit on another node, where a larger request may fit.
            if isinstance(one, Less):
                needed[i] = less.name_containers(words, _raise_amount(asking, words, needed, one))
        return [Advice(tuple(needed), asking.find_fitting(asked(needed)))]
    return []


def _raise_amount(asking: Asking, words: wire.Pod, steps: Sequence[Own], one: Less) -> Less:
    """Raise the amount of one of several sufficient steps as far as the pod still fits; the other steps stay."""
    others = [other for other in steps if other is not one]

    def fits(amount: int) -> bool:
        return asking.fits(_apply_steps(asking, words, [*others, one._replace(most=amount)]))

    return less.find_largest(one.ask, fits) or one


def _apply_steps(asking: Asking, words: wire.Pod, steps: Sequence[Own]) -> PodRecord:
    """Apply steps to the pod."""
    pod = wishes.drop_wishes(words, [one.wish for one in steps if isinstance(one, Drop)])
    pod = wishes.tolerate_taints(pod, [one.taint for one in steps if isinstance(one, Tolerate)])
    amounts = {one.ask: one.most for one in steps if isinstance(one, Less)}
    return less.request_less(asking, pod, amounts)


def _find_lesser(asking: Asking, words: wire.Pod, steps: Sequence[Own]) -> tuple[Less, ...] | None:
    """Find the smaller requests that the pod needs after ``steps``, on the closest node on which they help.

    Empty if the pod fits without smaller requests; None if no amounts are small enough.
    """

    def asked(amounts: Mapping[Ask, int]) -> PodRecord:
        return _apply_steps(asking, words, [*steps, *(Less(*one) for one in amounts.items())])

    pod = asked({})
    closest = None if asking.fits(pod) else nearest.order_nodes(asking, pod)
    if closest is None:
        return () if asking.fits(pod) else None
    for row in closest.judged.rows[closest.order[:_CLOSEST]].tolist():
        if (
            found := _find_lesser_on(asking, less.list_asks(pod, words, asking.devices), row, asked)
        ) is not None:
            return found
    return None


def _find_lesser_on(
    asking: Asking, asks: Sequence[Ask], row: int, asked: Callable[[Mapping[Ask, int]], PodRecord]
) -> tuple[Less, ...] | None:
    """Find the smaller requests with which the pod fits on the node of a row; None if no amounts are small enough."""

    def fits(amounts: Mapping[Ask, int]) -> bool:
        shape = asking.make_shape(asked(amounts))
        return shape is not None and asking.takes(shape, row)

    amounts = {ask: ask.unit for ask in asks}
    if not fits(amounts):
        return None
    found: list[Less] = []
    for ask in asks:

        def with_amount(amount: int, ask: Ask = ask) -> bool:
            return fits(amounts | {ask: amount})

        one = None if with_amount(ask.asked) else less.find_largest(ask, with_amount)
        amounts[ask] = one.most if one else ask.asked
        found += [one] if one else []
    return tuple(found)


def _keep_needed(steps: Sequence[T], fits: Callable[[Sequence[T]], bool]) -> tuple[T, ...]:
    """Keep the steps that are needed; none if all steps together are not enough."""
    if not steps or not fits(steps):
        return ()
    needed = list(steps)
    for one in steps:
        without = [other for other in needed if other is not one]
        if fits(without):
            needed = without
    return tuple(needed)


def _advise_endings(asking: Asking, pod: PodRecord, known: ObjectFacts) -> list[Advice]:
    """Advise the end of other pods, on the closest nodes that could take the pod without these pods."""
    shape, closest = asking.make_shape(pod), nearest.order_nodes(asking, pod)
    if shape is None or closest is None:
        return []
    judged, order, hopeless = closest
    hopeful = order[hopeless[order] == 0][:_TRIED]
    tried: list[Ending | None] = []
    n_pods = 0
    for row in judged.rows[hopeful].tolist():
        n_pods += len(asking.list_pods(row))
        if tried and n_pods > _PODS:
            break
        tried.append(ending.find_ending(asking, shape, row, known.may_end))
    # Each set of pods appears once, although its end may open several nodes.
    each: dict[frozenset[str], Ending] = {}
    for one in sorted((one for one in tried if one), key=lambda one: one.cost):
        if len(each) == _TOLD:
            break
        lessened = ending.lessen_ending(asking, shape, one)
        each.setdefault(frozenset(other.uid for other in lessened.pods), lessened)
    told = sorted(each.values(), key=lambda one: one.cost)
    return [Advice((one,), _find_rows_without(asking, pod, one.pods)) for one in told]


def _advise_releases(asking: Asking, pod: PodRecord, known: ObjectFacts) -> list[Advice]:
    """Advise that claims lose their devices which no pod alone has, on the closest nodes."""
    closest = nearest.order_nodes(asking, pod) if asking.cluster.claims.has_claims(pod) else None
    if closest is None:
        return []
    rows = closest.judged.rows[closest.order[:_CLOSEST]].tolist()
    found = claims.find_releases(asking, pod, rows, known.may_end)
    return [Advice((one.release,), np.array([one.row])) for one in found[:_TOLD]]


def _find_rows_without(asking: Asking, pod: PodRecord, others: Sequence[PodRecord]) -> c.Ints:
    """Find the rows on which a pod fits after other pods have ended."""
    with asking.cluster.trial() as trial:
        trial.take_away(*(one.uid for one in others))
        return asking.find_fitting(pod)
