"""The tree of KAI's queues, and the figures of each."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field

from scheduler.api.queues.kai import NOTHING, UNITS, UNLIMITED, KaiQueue, Vector, add
from scheduler.tenancy.kai.shares import Claimant, divide

_RESOURCES = range(len(UNITS))
# How deep queues may lie within each other.
DEPTH_MAX = 16
ORPHAN, CYCLE, INNER, BAD, MISSING = "orphan", "cycle", "inner", "bad", "missing"


@dataclass(slots=True)
class Figures:
    """Amounts of a queue, with those of the queues within it.

    Attributes:
        allocated: what its pods hold; those that are leaving hold nothing, and those that are promised room hold it.
        fixed: the part of it that cannot be reclaimed.
        requested: what its pods hold and want.
    """

    allocated: Vector = NOTHING
    fixed: Vector = NOTHING
    requested: Vector = NOTHING

    def add(self, amounts: Figures, sign: int = 1) -> None:
        """Add amounts, or take them away."""
        self.allocated = add(self.allocated, amounts.allocated, sign)
        self.fixed = add(self.fixed, amounts.fixed, sign)
        self.requested = add(self.requested, amounts.requested, sign)


@dataclass(slots=True)
class Queue:
    """A queue in the tree.

    Attributes:
        defined: what its object says.
        figures: its amounts.
        children: the names of the queues directly within it.
        path: the queue and those above it, itself first.
        fair: its fair share of each resource, in our units.
        usage: what it has used of each resource lately, as a part of all there is.
    """

    defined: KaiQueue
    figures: Figures = field(default_factory=Figures)
    children: list[str] = field(default_factory=list)
    path: list[Queue] = field(default_factory=list)
    fair: tuple[float, float, float] = (0.0, 0.0, 0.0)
    usage: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def name(self) -> str:
        """Its name."""
        return self.defined.name

    def find_allocatable(self, resource: int) -> float:
        """Find what it may hold before others may take of it: its quota or its fair share, up to its limit."""
        quota, limit = self.defined.quota[resource], self.defined.limit[resource]
        if quota == UNLIMITED:
            return limit
        most = max(quota, self.fair[resource])
        return most if limit == UNLIMITED else min(limit, most)


class Tree:
    """All queues. Whoever reads figures of queues settles the tree first.

    Attributes:
        queues: the queues by name.
        version: rises when a queue comes, goes or changes.
        wanted: rises when what is requested changes.
    """

    def __init__(self, k: float) -> None:
        self._k = k
        self.queues: dict[str, Queue] = {}
        # What the pods of a queue hold and want, by its name, whether there is such a queue or not.
        self._own: dict[str, Figures] = {}
        self.version = self.wanted = 0
        self._shaped = -1
        self._shared: tuple[int, int, Vector, object] | None = None

    def __len__(self) -> int:
        return len(self.queues)

    # Queues.

    def put(self, defined: KaiQueue) -> bool:
        """Take over a queue; return whether it has changed."""
        known = self.queues.get(defined.name)
        if known is not None and known.defined == defined:
            return False
        self.queues[defined.name] = Queue(defined)
        self.version += 1
        return True

    def drop(self, name: str) -> bool:
        """Forget a queue; return whether there was one."""
        if self.queues.pop(name, None) is None:
            return False
        self.version += 1
        return True

    def settle(self) -> None:
        """Build the tree anew if queues have changed."""
        if self._shaped == self.version:
            return
        self._shaped = self.version
        queues = self.queues
        order = self.list_by_age()
        for one in order:
            one.children, one.figures = [], Figures()
        for one in order:
            if (parent := queues.get(one.defined.parent)) is not None:
                parent.children.append(one.name)
        for one in order:
            one.path = list(self._list_path(one))
        for name, amounts in self._own.items():
            self._add_up(name, amounts, 1)

    def list_by_age(self) -> list[Queue]:
        """List all queues by age and name."""
        return sorted(self.queues.values(), key=_find_age)

    def _list_path(self, queue: Queue) -> Iterator[Queue]:
        one: Queue | None = queue
        seen: set[str] = set()
        while one is not None and one.name not in seen and len(seen) < DEPTH_MAX:
            seen.add(one.name)
            yield one
            one = self.queues.get(one.defined.parent)

    def find_problem(self, name: str) -> str:
        """Find why a queue cannot start pods: one of the words above; empty if it can."""
        queue = self.queues.get(name)
        if queue is None:
            return MISSING
        if queue.children:
            return INNER
        last = queue.path[-1].defined
        if last.parent:
            return CYCLE if last.parent in self.queues else ORPHAN
        return BAD if any(one.defined.mistake for one in queue.path) else ""

    # Figures.

    def add(self, name: str, amounts: Figures, sign: int) -> None:
        """Add what a pod of a queue holds and wants, or take it away."""
        own = self._own.setdefault(name, Figures())
        own.add(amounts, sign)
        if own == Figures():
            del self._own[name]
        if amounts.requested != NOTHING:
            self.wanted += 1
        if self._shaped == self.version:
            self._add_up(name, amounts, sign)

    def _add_up(self, name: str, amounts: Figures, sign: int) -> None:
        queue = self.queues.get(name)
        for one in queue.path if queue is not None else ():
            one.figures.add(amounts, sign)

    def forget_figures(self) -> None:
        """Forget what all pods hold and want."""
        self._own.clear()
        self.version += 1

    def make_mark(self) -> Hashable:
        """Make a value of what pods hold and want in each queue."""
        return tuple(
            sorted(
                (name, one.allocated, one.fixed, one.requested) for name, one in self._own.items()
            )
        )

    def share_out(self, total: Vector, usage: Mapping[str, tuple[float, float, float]]) -> None:
        """Find the fair shares of a total, level by level.

        ``usage``: by queue what it has used of each resource lately, as a part of all there is; 0 for the others.
        """
        self.settle()
        by = self.version, self.wanted, total, usage or None
        if by == self._shared:
            return
        self._shared = by
        for one in self.queues.values():
            one.usage, one.fair = usage.get(one.name, (0.0, 0.0, 0.0)), (0.0, 0.0, 0.0)
        top = [one.name for one in self.queues.values() if not one.defined.parent]
        waiting: list[tuple[list[str], tuple[float, ...]]] = [(top, total)]
        while waiting:
            names, amounts = waiting.pop()
            queues = [self.queues[name] for name in names]
            shares = [self._divide(queues, i, amounts[i]) for i in _RESOURCES]
            for queue, cpu, memory, gpu in zip(queues, *shares, strict=True):
                queue.fair = cpu, memory, gpu
                if queue.children:
                    waiting.append((queue.children, queue.fair))

    def _divide(self, queues: list[Queue], resource: int, amount: float) -> list[float]:
        """Divide an amount of a resource; cards are counted by whole cards."""
        unit = UNITS[resource] if resource == len(UNITS) - 1 else 1
        claimants = [
            Claimant(
                quota=_scale(one.defined.quota[resource], unit),
                limit=_scale(one.defined.limit[resource], unit),
                weight=one.defined.weights[resource],
                request=one.figures.requested[resource] / unit,
                usage=one.usage[resource],
                priority=one.defined.priority,
                age=_find_age(one),
            )
            for one in queues
        ]
        divide(amount / unit, self._k, claimants)
        return [one.share * unit for one in claimants]


def _scale(amount: int, unit: int) -> float:
    return amount if amount == UNLIMITED else amount / unit


def _find_age(queue: Queue) -> tuple[str, str]:
    return queue.defined.created, queue.name
