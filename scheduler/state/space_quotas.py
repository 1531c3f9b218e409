"""The ledger of what each namespace has of devices, beside what ResourceQuotas allow: cards, memory and cores by family.

What a pod has of memory and cores is what it holds on cards, so shares that are asked in percent count by the card. Of
devices that are only counted nobody knows memory and cores: they count as devices alone. A namespace without such quotas
costs nothing: its pods are counted when it gets its first one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from scheduler.api.pods.gpus import ContainerKind, GpuAsk
from scheduler.api.space_quotas import PREFIX, SpaceQuota
from scheduler.devices.table import Devices
from scheduler.schema import columns as c
from scheduler.state.cards import CardTable
from scheduler.state.charging.ledger import Ledger
from scheduler.state.nodes import NodeTable
from scheduler.state.pods import PodRecord

# The family and the figure: ``columns.SLOTS`` for cards, ``columns.MIB`` or ``columns.CORES``.
Key = tuple[int, int]
Amounts = Mapping[Key, int]
# The kind of a container, and an amount, or an amount by node.
Slot = tuple[ContainerKind, Any]
Sum = Callable[[Sequence[Slot]], int]
_NOTHING: Amounts = {}


class Limit(NamedTuple):
    """One limit of a quota.

    Attributes:
        resource: the resource, as the quota names it.
        key: what it limits.
        unit: so much of that is one unit of the resource.
        hard: the limit, in the unit of the ledger.
    """

    resource: str
    key: Key
    unit: int
    hard: int


class Excess(NamedTuple):
    """A limit that a pod would exceed, in units of the resource."""

    quota: str
    resource: str
    asked: int
    used: int
    hard: int

    def __str__(self) -> str:
        """Return it in the words of Kubernetes' own quotas."""
        name = f"{PREFIX}{self.resource}"
        return (
            f"exceeded quota: {self.quota}, requested: {name}={self.asked}, used: {name}={self.used}, "
            f"limited: {name}={self.hard}"
        )


class Taker(NamedTuple):
    """What a pod takes that is in no namespace yet; as a record has it."""

    namespace: str
    asks: tuple[GpuAsk, ...]
    scopes: frozenset[str]
    priority_class: str


AnyPod = PodRecord | Taker


class _Kept:
    """A quota, its limits by the present names of resources, and what is used of them."""

    def __init__(self, quota: SpaceQuota) -> None:
        self.quota = quota
        self.limits: tuple[Limit, ...] = ()
        self.taken: Counter[Key] = Counter()


class SpaceQuotas:
    """Quotas by namespace, and what their pods have; follows all charges of pods.

    Attributes:
        changed: the namespaces in which there may be more room than before.
    """

    def __init__(
        self,
        nodes: NodeTable,
        cards: CardTable,
        ledger: Ledger,
        list_charged: Callable[[], Iterator[tuple[int, PodRecord]]],
    ) -> None:
        self._nodes, self._cards, self._ledger = nodes, cards, ledger
        self._list_charged = list_charged
        self._spaces: dict[str, dict[str, _Kept]] = {}
        # By uid what is counted of each pod of these namespaces, and the pod as it was then.
        self._counted: dict[str, tuple[Amounts, PodRecord]] = {}
        self.changed: set[str] = set()

    @property
    def _devices(self) -> Devices:
        return self._nodes.devices

    # Quotas.

    def put(self, quota: SpaceQuota) -> bool:
        """Take over a quota; return whether it says anything else than before."""
        kept = self._spaces.get(quota.namespace, {}).get(quota.name)
        if kept is not None and kept.quota == quota:
            return False
        if not quota.hard:
            return self.drop(quota.namespace, quota.name)
        self._spaces.setdefault(quota.namespace, {})[quota.name] = _Kept(quota)
        self._recount([quota.namespace])
        return True

    def drop(self, namespace: str, name: str) -> bool:
        """Forget a quota; return whether there was one."""
        if self._spaces.get(namespace, {}).pop(name, None) is None:
            return False
        if not self._spaces[namespace]:
            del self._spaces[namespace]
        self._recount([namespace])
        return True

    def list_keys(self) -> list[str]:
        """List the quotas as namespace/name."""
        return [f"{space}/{name}" for space, quotas in self._spaces.items() for name in quotas]

    def recount(self) -> None:
        """Read all limits and count all pods again: resources may stand for other devices now."""
        self._recount(list(self._spaces))

    def _recount(self, spaces: Sequence[str]) -> None:
        for space in spaces:
            self.changed.add(space)
            for kept in self._spaces.get(space, {}).values():
                kept.limits, kept.taken = tuple(self._list_limits(kept.quota)), Counter()
        among = set(spaces)
        for pod in [pod for _, pod in self._list_charged() if pod.namespace in among]:
            self._counted.pop(pod.uid, None)
            self._add(pod)

    def _list_limits(self, quota: SpaceQuota) -> Iterator[Limit]:
        for resource, hard in quota.hard:
            found = self._devices.find_part(resource)
            if found is not None:
                family, figure, unit = found
                yield Limit(resource, (family, figure), unit, hard * unit)

    # Usage.

    def follow_pod(self, pod: PodRecord, _: int, sign: int) -> None:
        """Count a pod that was charged (1), or is charged no longer (-1)."""
        if pod.namespace not in self._spaces:
            return
        if sign > 0:
            self._add(pod)
        elif (counted := self._counted.pop(pod.uid, None)) is not None:
            amounts, as_it_was = counted
            self._sum_up(as_it_was, amounts, -1)
            self.changed.add(pod.namespace)

    def ignores(self, pods: Sequence[PodRecord]) -> bool:
        """Whether no pod is in a namespace with quotas."""
        return not self._spaces or all(pod.namespace not in self._spaces for pod in pods)

    def _add(self, pod: PodRecord) -> None:
        if pod.namespace in self._spaces and pod.template.most and pod.uid not in self._counted:
            amounts = self._read_amounts(pod)
            self._counted[pod.uid] = amounts, pod
            self._sum_up(pod, amounts, 1)

    def _sum_up(self, pod: PodRecord, amounts: Amounts, sign: int) -> None:
        for kept in self._spaces[pod.namespace].values():
            if kept.quota.includes(pod.scopes, pod.priority_class):
                for key, amount in amounts.items():
                    kept.taken[key] += sign * amount

    def _read_amounts(self, pod: PodRecord) -> Amounts:
        """Read what a charged pod has."""
        found: Counter[Key] = Counter()
        for ask in _list_asks(pod):
            family = self._devices.find_family(ask.family)
            found[family, c.SLOTS] += _sum_slots([(one.kind, one.cards) for one in ask.containers])
        pool_of, family_of = self._cards.columns.pool, self._nodes.pools.columns.family
        for d, cores, mib, _, part in self._ledger.pods.read_held(pod.row).tolist():
            if part != c.NO_PART:
                continue
            family = int(family_of[pool_of[d]])
            found[family, c.MIB] += mib
            found[family, c.CORES] += cores
        return dict(found)

    # Room.

    def has_quotas(self, namespace: str) -> bool:
        """Whether any quota of devices is about a namespace."""
        return namespace in self._spaces

    def find_least(self, pod: AnyPod) -> Amounts:
        """Find what a pod takes at least, wherever it goes: of cards whose size is not known, as little as there can be."""
        if pod.namespace not in self._spaces:
            return _NOTHING
        return self._sum_asks(pod, lambda _: (0, 0), _sum_slots)

    def find_most(self, pod: PodRecord) -> Amounts:
        """Find what a pod takes at most: of the largest cards, with other cards for init containers than for the others."""
        if pod.namespace not in self._spaces:
            return _NOTHING
        return self._sum_asks(pod, self._find_largest, _sum_all)

    def _sum_asks(
        self, pod: AnyPod, measure: Callable[[int], tuple[int, int]], sum_up: Sum
    ) -> Amounts:
        found: Counter[Key] = Counter()
        for ask in _list_asks(pod):
            family = self._devices.find_family(ask.family)
            found[family, c.SLOTS] += _sum_slots([(one.kind, one.cards) for one in ask.containers])
            if ask.by_card:
                cores, mib = measure(family)
                found[family, c.MIB] += sum_up(_list_mib(ask, mib))
                found[family, c.CORES] += sum_up(_list_cores(ask, cores))
        return dict(found)

    def _find_largest(self, family: int) -> tuple[int, int]:
        """Find the most cores, and the most MiB, that a card of a family has."""
        figures = self._measure_pools(family)
        return int(figures[0].max(initial=0)), int(figures[1].max(initial=0))

    def _measure_pools(self, family: int) -> c.Ints:
        """Find [2, N] the most cores and MiB of a card of a family on each node."""
        pools = self._nodes.columns.pools
        of_row = self._nodes.find_pools(family)
        start, count = pools.start[of_row], pools.count[of_row]
        found = np.zeros((2, of_row.size), np.int64)
        has = np.flatnonzero(count > 0)
        if has.size:
            ends = np.cumsum(count[has])
            begins = ends - count[has]
            cards = np.repeat(start[has] - begins, count[has]) + np.arange(ends[-1])
            totals = self._cards.columns.total[[c.CORES, c.MIB]][:, cards]
            found[:, has] = np.maximum.reduceat(totals, begins, axis=1)
        return found

    def find_excess(self, pod: AnyPod, amounts: Amounts) -> Excess | None:
        """Find the first limit that a pod would exceed that takes so much; None if it exceeds none."""
        # A copy: another thread may ask.
        for kept in list(self._spaces.get(pod.namespace, {}).values()):
            if kept.quota.includes(pod.scopes, pod.priority_class):
                for limit in kept.limits:
                    asked, used = amounts.get(limit.key, 0), kept.taken[limit.key]
                    if asked > 0 and used + asked > limit.hard:
                        return _describe(kept, limit, asked)
        return None

    def find_over(self, pod: PodRecord) -> Excess | None:
        """Find a limit that is exceeded with what a pod has that is charged already; None if there is none."""
        counted, _ = self._counted.get(pod.uid, (_NOTHING, pod))
        for kept in self._spaces.get(pod.namespace, {}).values():
            if kept.quota.includes(pod.scopes, pod.priority_class):
                for limit in kept.limits:
                    has = counted.get(limit.key, 0)
                    if has and kept.taken[limit.key] > limit.hard:
                        return _describe(kept, limit, has, kept.taken[limit.key] - has)
        return None

    def find_rows(self, pod: PodRecord) -> tuple[c.Flags, Excess | None] | None:
        """Find [N] the nodes with cards that are small enough for the room that is left; None: their size means nothing.

        Also the limit that keeps the pod off other nodes; None if nothing does.
        """
        parts = [ask for ask in _list_asks(pod) if ask.by_card and _is_relative(ask)]
        if not parts or pod.namespace not in self._spaces:
            return None
        fits, excess = np.ones(self._nodes.capacity, np.bool_), None
        for ask in parts:
            family = self._devices.find_family(ask.family)
            cores, mib = self._measure_pools(family)
            for figure, needed in (
                (c.MIB, _sum_rows(_list_mib(ask, mib))),
                (c.CORES, _sum_rows(_list_cores(ask, cores))),
            ):
                for kept, limit in self._list_limiting(pod, (family, figure)):
                    beyond = (needed > limit.hard - kept.taken[limit.key]) & (mib > 0)
                    if beyond.any():
                        fits &= ~beyond
                        excess = _describe(kept, limit, int(needed[beyond].min()))
        return fits, excess

    def _list_limiting(self, pod: PodRecord, key: Key) -> Iterator[tuple[_Kept, Limit]]:
        for kept in self._spaces[pod.namespace].values():
            if kept.quota.includes(pod.scopes, pod.priority_class):
                yield from ((kept, limit) for limit in kept.limits if limit.key == key)

    # For others.

    def list_states(self, namespace: str = "") -> list[tuple[SpaceQuota, tuple[Excess, ...]]]:
        """List quotas, of one namespace if one is named, with each limit: what is used of it, and what is allowed."""
        spaces = [namespace] if namespace else list(self._spaces)
        return [
            (kept.quota, tuple(_describe(kept, limit, 0) for limit in kept.limits))
            for space in spaces
            for kept in list(self._spaces.get(space, {}).values())
        ]

    def find_difference(self) -> str:
        """Count all anew; return what differs, empty if nothing does."""
        wrong = []
        for space, quotas in self._spaces.items():
            pods = [pod for _, pod in self._list_charged() if pod.namespace == space]
            for kept in quotas.values():
                found: Counter[Key] = Counter()
                for pod in pods:
                    if pod.template.most and kept.quota.includes(pod.scopes, pod.priority_class):
                        found.update(self._read_amounts(pod))
                if +found != +kept.taken:
                    wrong.append(
                        f"quota {space}/{kept.quota.name}: {kept.taken} counted, not {found}"
                    )
        return "; ".join(wrong)


def _list_asks(pod: AnyPod) -> Iterable[GpuAsk]:
    if isinstance(pod, Taker):
        return pod.asks
    return (part.gpu for part in pod.template.list_by_family() if part.gpu is not None)


def _describe(kept: _Kept, limit: Limit, asked: int, used: int | None = None) -> Excess:
    used = kept.taken[limit.key] if used is None else used
    # Parts of a unit count as a whole one.
    asked, used = (-(-one // limit.unit) for one in (asked, used))
    return Excess(kept.quota.name, limit.resource, asked, used, limit.hard // limit.unit)


def _is_relative(ask: GpuAsk) -> bool:
    """Whether it asks a part of each card, of whatever size the card is."""
    return any(one.cards and (not one.mem_mib or one.core_percent) for one in ask.containers)


def _list_mib(ask: GpuAsk, of_card: Any) -> list[Slot]:
    """List what each container asks of memory, if a card has so many MiB; likewise by node."""
    return [
        (one.kind, one.cards * (one.mem_mib or _take_part(of_card, one.mem_percent)))
        for one in ask.containers
        if one.cards
    ]


def _take_part(of_card: Any, percent: int) -> Any:
    """Take a part of a card's figure, which is never 0; likewise by node."""
    part = of_card * percent // 100
    # Python's own numbers have no bound, and nobody has checked yet what a pod in a review asks.
    return np.maximum(1, part) if isinstance(part, np.ndarray) else max(1, part)


def _list_cores(ask: GpuAsk, of_card: Any) -> list[Slot]:
    """List what each container asks of cores, as ``_list_mib``."""
    return [
        (
            one.kind,
            one.cards * (_take_part(of_card, one.core_percent) if one.core_percent else one.cores),
        )
        for one in ask.containers
        if one.cards
    ]


def _sum_slots(amounts: Sequence[Slot]) -> int:
    """Sum up what containers ask: init containers run before the others, one after the other."""
    staying = sum(int(n) for kind, n in amounts if kind != ContainerKind.INIT)
    return max(staying, *(int(n) for kind, n in amounts if kind == ContainerKind.INIT), 0)


def _sum_all(amounts: Sequence[Slot]) -> int:
    return sum(int(n) for _, n in amounts)


def _sum_rows(amounts: Sequence[Slot]) -> c.Ints:
    """As ``_sum_slots``, by node."""
    staying = sum((n for kind, n in amounts if kind != ContainerKind.INIT), np.int64(0))
    most: c.Ints = np.asarray(staying)
    for kind, n in amounts:
        if kind == ContainerKind.INIT:
            most = np.maximum(most, n)
    return most
