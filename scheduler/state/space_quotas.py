"""The ledger of what each namespace has of devices, beside what ResourceQuotas allow: cards, memory and cores by family.

What a pod has of memory and cores is what it holds on cards, so shares that are asked in percent count by the card. Of
devices that are only counted nobody knows memory and cores: they count as devices alone. A namespace without such quotas
costs nothing: its pods are counted when it gets its first one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.api.pods.gpus import GpuAsk
from scheduler.api.space_quotas import PREFIX, SpaceQuota
from scheduler.devices.table import Devices
from scheduler.schema import columns as c
from scheduler.state.cards import CardTable
from scheduler.state.charging.ledger import Ledger
from scheduler.state.nodes import NodeTable
from scheduler.state.pods import PodRecord
from scheduler.state.space_amounts import (
    Key,
    Largest,
    Limit,
    Sum,
    find_able,
    is_relative,
    list_cores,
    list_largest_parts,
    list_mib,
    raise_to_cards,
    sum_all,
    sum_rows,
    sum_slots,
)

Amounts = Mapping[Key, int]
_NOTHING: Amounts = {}
_UNKNOWN = Largest()


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
    """Quotas by namespace, and what their pods have; follows all charges of pods."""

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
        # By family, as long as the cards have this version.
        self._largest: dict[int, Largest] = {}
        self._largest_at = -1
        # Of what is charged and taken back at once, as in trials, nobody gets room. Since ``take_changed``: the namespaces
        # whose quotas have changed, the pods charged since somebody was held last, and what those had that are gone.
        self._changed: set[str] = set()
        self._fresh: set[str] = set()
        self._freed: dict[str, tuple[Amounts, PodRecord]] = {}

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
            self._changed.add(space)
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
            self._note_charged(pod)
        elif (counted := self._counted.pop(pod.uid, None)) is not None:
            amounts, as_it_was = counted
            self._sum_up(as_it_was, amounts, -1)
            if pod.uid in self._fresh:
                self._fresh.remove(pod.uid)
            else:
                self._freed.setdefault(pod.uid, counted)

    def _note_charged(self, pod: PodRecord) -> None:
        counted, freed = self._counted.get(pod.uid), self._freed.get(pod.uid)
        if counted is None:
            return
        if freed is None:
            self._fresh.add(pod.uid)
        elif _list_counting(*freed) == _list_counting(*counted):
            del self._freed[pod.uid]

    def note_held(self) -> None:
        """Note that somebody is held: what is charged now is in somebody's way."""
        self._fresh.clear()

    def take_changed(self) -> set[str]:
        """Return the namespaces in which there may be more room than at the last call."""
        changed = self._changed.union(pod.namespace for _, pod in self._freed.values())
        self._changed = set()
        self._fresh.clear()
        self._freed.clear()
        return changed

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
            found[family, c.SLOTS] += sum_slots([(one.kind, one.cards) for one in ask.containers])
        pool_of, family_of = self._cards.columns.pool, self._nodes.pools.columns.family
        for d, cores, mib, _, part in self._ledger.pods.read_held(pod.row).tolist():
            if part != c.NO_PART:
                continue
            family = int(family_of[pool_of[d]])
            found[family, c.MIB] += mib
            found[family, c.CORES] += cores
        return dict(found)

    # Room.

    @property
    def has_any(self) -> bool:
        """Whether any namespace has a quota of devices."""
        return bool(self._spaces)

    def has_quotas(self, namespace: str) -> bool:
        """Whether any quota of devices is about a namespace."""
        return namespace in self._spaces

    def find_least(self, pod: AnyPod) -> Amounts:
        """Find what a pod takes at least, wherever it goes: of cards whose size is not known, as little as there can be."""
        if pod.namespace not in self._spaces:
            return _NOTHING
        return self._sum_asks(pod, lambda _: _UNKNOWN, sum_slots)

    def find_most(self, pod: PodRecord) -> Amounts:
        """Find what a pod takes at most: of the largest cards, with other cards for init containers than for the others.

        A part that is cut out of a card may have more than is asked, as much as the card at most.
        """
        if pod.namespace not in self._spaces:
            return _NOTHING
        return self._sum_asks(pod, self._find_largest, sum_all, is_most=True)

    def _sum_asks(
        self,
        pod: AnyPod,
        measure: Callable[[int], Largest],
        sum_up: Sum,
        *,
        is_most: bool = False,
    ) -> Amounts:
        found: Counter[Key] = Counter()
        for ask in _list_asks(pod):
            family = self._devices.find_family(ask.family)
            found[family, c.SLOTS] += sum_slots([(one.kind, one.cards) for one in ask.containers])
            if ask.by_card:
                largest = measure(family)
                mib, cores = list_mib(ask, largest.mib), list_cores(ask, largest.cores)
                if is_most and ask.find_parts is not None:
                    mib, cores = list_largest_parts(ask, self._cards.models.values)
                elif is_most and largest.is_cut:
                    mib = raise_to_cards(ask, mib, largest.mib)
                    cores = raise_to_cards(ask, cores, largest.cores)
                found[family, c.MIB] += sum_up(mib)
                found[family, c.CORES] += sum_up(cores)
        return dict(found)

    def _find_largest(self, family: int) -> Largest:
        """Find the most that a card of a family has; it is found anew when cards have changed."""
        if self._largest_at != self._cards.version:
            self._largest_at = self._cards.version
            self._largest.clear()
        if family not in self._largest:
            cores, mib, is_cut = self._measure_pools(family).max(axis=1, initial=0).tolist()
            self._largest[family] = Largest(cores, mib, bool(is_cut))
        return self._largest[family]

    def _measure_pools(self, family: int) -> c.Ints:
        """Find [3, N] the most cores and MiB of a card of a family on each node, and whether one can be cut."""
        pools = self._nodes.columns.pools
        of_row = self._nodes.find_pools(family)
        start, count = pools.start[of_row], pools.count[of_row]
        found = np.zeros((3, of_row.size), np.int64)
        has = np.flatnonzero(count > 0)
        if has.size:
            ends = np.cumsum(count[has])
            begins = ends - count[has]
            cards = np.repeat(start[has] - begins, count[has]) + np.arange(ends[-1])
            columns = self._cards.columns
            totals = np.vstack((columns.total[[c.CORES, c.MIB]], columns.carving > 0))[:, cards]
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
        """Find [N] the nodes without cards that are too large for the room that is left; None: their size means nothing.

        Also the limit that keeps the pod off all nodes that could ever serve it; None if some of them are left.
        """
        parts = [ask for ask in _list_asks(pod) if ask.by_card and is_relative(ask)]
        if not parts or pod.namespace not in self._spaces:
            return None
        fits, excess = np.ones(self._nodes.capacity, np.bool_), None
        could = self._nodes.columns.valid
        for ask in parts:
            family = self._devices.find_family(ask.family)
            cores, mib, _ = self._measure_pools(family)
            could = could & find_able(ask, mib, self._nodes.find_pools(family))
            for figure, asked in ((c.MIB, list_mib(ask, mib)), (c.CORES, list_cores(ask, cores))):
                # What does not depend on the card is one number for all nodes.
                needed = np.broadcast_to(sum_rows(asked), mib.shape)
                for kept, limit in self._list_limiting(pod, (family, figure)):
                    # Less than nothing is left of a limit that was lowered; it holds nobody who asks nothing of it.
                    left = max(0, limit.hard - kept.taken[limit.key])
                    beyond = (needed > left) & (mib > 0)
                    if beyond.any():
                        fits &= ~beyond
                        excess = _describe(kept, limit, int(needed[beyond].min()))
        return fits, None if np.any(fits & could) else excess

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
                    wrong.append(f"{space}/{kept.quota.name}: {kept.taken} counted, not {found}")
        return "; ".join(wrong)


def _list_counting(amounts: Amounts, pod: PodRecord) -> tuple[Amounts, frozenset[str], str]:
    """List all by which a pod counts."""
    return amounts, pod.scopes, pod.priority_class


def _list_asks(pod: AnyPod) -> Iterable[GpuAsk]:
    if isinstance(pod, Taker):
        return pod.asks
    return (part.gpu for part in pod.template.list_by_family() if part.gpu is not None)


def _describe(kept: _Kept, limit: Limit, asked: int, used: int | None = None) -> Excess:
    used = kept.taken[limit.key] if used is None else used
    # Parts of a unit count as a whole one.
    asked, used = (-(-one // limit.unit) for one in (asked, used))
    return Excess(kept.quota.name, limit.resource, asked, used, limit.hard // limit.unit)
