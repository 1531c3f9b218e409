"""In which order a search places pods: those that ask most first, but some may have to come earlier or later.

Where a pod with affinity or spread fits depends on which others are on nodes. A pod that wants others near it must come
after one of them. The first of pods that want each other may go anywhere, but only while none of them is on a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from scheduler.placing.groups.needs import Needs
from scheduler.placing.groups.wanting import is_counted, is_wanted
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

# What a pod asks, so that the one that asks most is first.
_Size = tuple[int, ...]


class Turn(NamedTuple):
    """One pod that a search may place.

    Attributes:
        part: the number of its part.
        kind: pods of one kind are alike; of unlike ones those with lower numbers ask more.
        lane: the number of the lane in which it waits for its turn.
    """

    pod: PodRecord
    part: int
    kind: int
    lane: int


class Next(NamedTuple):
    """The pods that may come next.

    Attributes:
        turns: one of each kind, those that ask most first.
        lanes: from which lanes a kind is left out if none of them leads anywhere.
    """

    turns: list[Turn]
    lanes: list[int]


class _Rules(NamedTuple):
    """What decides whether pods of a kind come before or after others.

    Attributes:
        wanted: the kinds that it wants near it, by the terms of affinity that it requires.
        counted: the kinds that its constraints of spread count.
        asks_no_cores: whether it asks for cards without cores.
    """

    wanted: frozenset[int]
    counted: frozenset[int]
    asks_no_cores: bool


class Turns:
    """The pods that a search may place, in lanes: of each lane the first pod that is left may come next.

    The first lane has the pods that may come in any order, in the one in which they are tried. Each other lane has pods
    of one kind.

    Attributes:
        at: for each lane how many of its pods have had their turn.
        want_each_other: whether a pod requires others near it.
    """

    def __init__(self, cluster: Cluster, needs: Needs) -> None:
        self._n_parts = len(needs.parts)
        order = _list_in_order(needs)
        kinds = _number_kinds(order)
        examples = {kind: pod for (pod, _), kind in zip(order, kinds, strict=True)}
        self._lanes: list[list[Turn]] = [[]]
        self._rules = {kind: _read_rules(cluster, pod, examples) for kind, pod in examples.items()}
        self._with_cores = {kind for kind, pod in examples.items() if _asks_cores(pod)}
        free = self._find_free(examples)
        lanes: dict[int, int] = {}
        for (pod, part), kind in zip(order, kinds, strict=True):
            lane = lanes.get(kind, 0)
            if not lane and kind in free:
                lane = lanes[kind] = len(self._lanes)
                self._lanes.append([])
            self._lanes[lane].append(Turn(pod, part, kind, lane))
        self.at = [0] * len(self._lanes)
        self.want_each_other = any(pod.template.affinity for pod in examples.values())
        # The kinds that pods of other kinds want near them.
        self._wanted = {one for kind, rules in self._rules.items() for one in rules.wanted - {kind}}
        # How many pods of each kind are on nodes.
        self._placed: Counter[int] = Counter()

    def _find_free(self, examples: dict[int, PodRecord]) -> set[int]:
        """Find the kinds that may have to come before or after others: those with rules, and whoever is in their way."""
        free = {kind for kind, pod in examples.items() if _has_rules(pod)}
        in_the_way = {one for kind in free for one in self._rules[kind].counted}
        if any(self._rules[kind].asks_no_cores for kind in free):
            in_the_way |= self._with_cores
        return free | in_the_way

    def list_pods(self) -> list[PodRecord]:
        """List all pods."""
        return [turn.pod for lane in self._lanes for turn in lane]

    def count_left(self) -> list[int]:
        """Count for each part its pods that have not had their turn."""
        left = [0] * self._n_parts
        for lane, at in zip(self._lanes, self.at, strict=True):
            for turn in lane[at:]:
                left[turn.part] += 1
        return left

    def is_wanted(self, turn: Turn) -> bool:
        """Whether pods of other kinds want a pod near them."""
        return turn.kind in self._wanted

    def take(self, turn: Turn) -> None:
        """Note that a pod is placed."""
        self.at[turn.lane] += 1
        self._placed[turn.kind] += 1

    def release(self, turn: Turn) -> None:
        """Note that the pod that was placed last is taken back."""
        self.at[turn.lane] -= 1
        self._placed[turn.kind] -= 1

    def leave_out(self, lanes: list[int]) -> None:
        """Leave out the next pod of each of some lanes, and those like it that follow it.

        Where a pod is left out, another like it need not be tried.
        """
        for lane in lanes:
            turns, at = self._lanes[lane], self.at[lane]
            while self.at[lane] < len(turns) and turns[self.at[lane]].kind == turns[at].kind:
                self.at[lane] += 1

    def list_next(self) -> Next:
        """List the pods that may come next.

        To all pods that are left it makes no difference whether one of another lane comes before these or after them.
        """
        left = {
            i: lane[at:]
            for i, (lane, at) in enumerate(zip(self._lanes, self.at, strict=True))
            if at < len(lane)
        }
        first = min((turns[0] for turns in left.values()), key=lambda turn: turn.kind, default=None)
        if first is None:
            return Next([], [])
        lanes = [first.lane]
        for lane in lanes:
            kind = left[lane][0].kind
            lanes += [i for i in left if i not in lanes and self._are_bound(kind, left[i])]
        turns = sorted((left[i][0] for i in lanes), key=lambda turn: turn.kind)
        return Next(turns, [0] if 0 in lanes else lanes)

    def _are_bound(self, kind: int, others: list[Turn]) -> bool:
        """Whether a kind may gain by coming after any of some pods, or any of these lose by coming after it."""
        rules = self._rules[kind]
        return any(
            turn.kind in rules.wanted
            or turn.kind in rules.counted
            or self._is_harmed(turn.kind, kind)
            for turn in others
        )

    def _is_harmed(self, kind: int, by: int) -> bool:
        """Whether a kind may fit on fewer nodes once a pod of another kind is on a node."""
        rules = self._rules[kind]
        if by in rules.counted or (rules.asks_no_cores and by in self._with_cores):
            return True
        # Pods that want each other may begin anywhere.
        may_begin = kind in rules.wanted and not any(self._placed[one] for one in rules.wanted)
        return may_begin and by in rules.wanted


def _has_rules(pod: PodRecord) -> bool:
    """Whether where a pod fits depends on which others are on nodes, and not only on whom it keeps away from."""
    return bool(pod.template.affinity) or any(one.hard for one in pod.template.spread)


def _read_rules(cluster: Cluster, pod: PodRecord, examples: dict[int, PodRecord]) -> _Rules:
    """Read the rules of a kind of which this is a pod; ``examples`` are pods by their kinds."""
    wanted = (kind for kind, one in examples.items() if is_wanted(cluster, pod, one))
    counted = (kind for kind, one in examples.items() if is_counted(pod, one))
    return _Rules(frozenset(wanted), frozenset(counted), _asks_no_cores(pod))


def _asks_cores(pod: PodRecord) -> bool:
    """Whether a pod takes cores of any card."""
    gpu = pod.template.gpu
    return gpu is not None and any(one.cards and one.cores for one in gpu.containers)


def _list_in_order(needs: Needs) -> list[tuple[PodRecord, int]]:
    """List the pods with their parts: those that ask most first, and those that share a domain one after another.

    A card whose cores are all taken takes no pod more, even if it asks for no cores. So pods that ask for none come first.
    """
    order: list[tuple[tuple[bool, _Size, int, _Size, int], PodRecord, int]] = []
    for i, part in enumerate(needs.parts):
        sizes = [_find_size(pod) for pod in part.pods]
        for pod, size in zip(part.pods, sizes, strict=True):
            first, block = (min(sizes), i) if part.bounds else (size, -1)
            order.append(((not _asks_no_cores(pod), first, block, (*size, i), pod.order), pod, i))
    order.sort(key=lambda one: one[0])
    return [(pod, i) for _, pod, i in order]


def _asks_no_cores(pod: PodRecord) -> bool:
    """Whether a pod asks for cards, and of one of them for no cores."""
    gpu = pod.template.gpu
    return gpu is not None and any(one.cards and not one.cores for one in gpu.containers)


def _number_kinds(order: Sequence[tuple[PodRecord, int]]) -> list[int]:
    """Number the kinds of pods: those of a part that ask the same, and are the same to others, are alike."""
    kinds: dict[Hashable, int] = {}
    found = []
    for pod, i in order:
        labels = frozenset((pod.labels or {}).items())
        own = pod.uid if pod.volumes is not None else ""
        found.append(
            kinds.setdefault((i, id(pod.template), pod.namespace, labels, own), len(kinds))
        )
    return found


def _find_size(pod: PodRecord) -> _Size:
    """Return a key that puts the pod first that asks most: of cards, then of everything."""
    gpu = pod.template.gpu
    n_cards = sum(one.cards for one in gpu.containers) if gpu is not None else 0
    amounts = [amount for _, amount in pod.template.requests.amounts]
    return -n_cards, -sum(amounts)
