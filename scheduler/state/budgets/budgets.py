"""PodDisruptionBudgets: how many more of the pods that they cover may go.

As long as there is any budget it is known which budgets cover which pods on nodes. A change causes work, which is done
in steps, one namespace after the other, and must be finished before the next answer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import numpy as np

from scheduler.api import selectors, wire
from scheduler.api.selectors import Selector
from scheduler.errors import BadInput
from scheduler.schema.columns import Ints
from scheduler.schema.preempting import BudgetSets
from scheduler.state.budgets.spaces import Budget, Covering, Space
from scheduler.state.pods import PodRecord

# How many steps an answer may make itself.
_FEW = 16
# At least so many changes are remembered.
_REMEMBERED = 1024


class Budgets:
    """The budgets by namespace, and which of them cover each pod on a node.

    Attributes:
        figures: rises when the budgets of any pod may have changed.
    """

    def __init__(self, on_nodes: Callable[[], Iterable[tuple[int, PodRecord]]]) -> None:
        """``on_nodes`` lists all pods that are charged to a node, with the row of the node."""
        self._on_nodes = on_nodes
        self._spaces: dict[str, Space] = {}
        # Namespaces that may have work left, the next one first.
        self._due: OrderedDict[str, None] = OrderedDict()
        self._n = 0
        # The subject of each change; changes before ``_from`` are forgotten.
        self._changes: list[tuple[str, Covering]] = []
        self._from = 0

    def __len__(self) -> int:
        return self._n

    @property
    def figures(self) -> int:
        """Rises when the budgets of any pod may have changed."""
        return self._from + len(self._changes)

    @property
    def n_matched(self) -> int:
        """How often a budget was matched with a set of kinds."""
        return sum(space.n_matched for space in self._spaces.values())

    def see(
        self,
        namespace: str,
        name: str,
        selector: wire.LabelSelector | None,
        status: tuple[int, Iterable[str]],
    ) -> None:
        """Add a budget or its new state; ``status``: how many more pods may go, and the names of those let go already.

        A selector that cannot be read covers nothing.
        """
        new = Budget(_read_selector(selector), status[0], frozenset(status[1]))
        if not self._n:
            self._begin()
        space = self._spaces.setdefault(namespace, Space())
        old = space.budgets.get(name)
        if new != old:
            self._n += old is None
            self._note(namespace, space.put_budget(name, new))

    def drop(self, namespace: str, name: str) -> None:
        """Drop a budget that was deleted."""
        space = self._spaces.get(namespace)
        if space is None or name not in space.budgets:
            return
        self._n -= 1
        self._note(namespace, space.put_budget(name, None))
        if not self._n:
            self._spaces.clear()
            self._due.clear()
        elif space.is_idle:
            self._forget(namespace)

    def ignores(self, pods: Sequence[PodRecord]) -> bool:
        """Whether these pods need not be known, because there is no budget."""
        del pods
        return not self._n

    def follow_pod(self, pod: PodRecord, node_row: int, sign: int) -> None:
        """Note that a pod came to a node (1), or left it (-1)."""
        del node_row
        if not self._n:
            return
        space = self._spaces.get(pod.namespace)
        if space is None:
            space = self._spaces[pod.namespace] = Space()
        if sign > 0:
            space.put_pod(pod.row, pod)
        else:
            space.drop_pod(pod.row)
        if space.budgets:
            self._due[pod.namespace] = None
        elif space.is_idle:
            self._forget(pod.namespace)

    def list_objects(self) -> list[tuple[str, str, Budget]]:
        """List all budgets, with namespace and name."""
        return [
            (namespace, name, one)
            for namespace, space in self._spaces.items()
            for name, one in space.budgets.items()
        ]

    # The work.

    @property
    def is_behind(self) -> bool:
        """Whether more work is left than an answer should wait for."""
        left = _FEW
        for namespace in islice(self._due, _FEW):
            left -= self._spaces[namespace].n_due
            if left < 0:
                return True
        return len(self._due) > _FEW

    def work(self) -> tuple[str, float]:
        """Make one step of the work that is left, for the namespace whose turn it is.

        Returns:
            The namespace, and how much work it was, in parts of a whole step; 0 if nothing was to be done.
        """
        if not self._due:
            return "", 0.0
        namespace, _ = self._due.popitem(last=False)
        space = self._spaces[namespace]
        if not space.n_due:
            return namespace, 0.0
        others = space.work()
        if others:
            self._note(namespace, Covering(others))
        self._due[namespace] = None
        return namespace, space.spent

    # Answers.

    def make_sets(self, pods: list[PodRecord], size: int, most: int) -> BudgetSets:
        """Return the budgets of pods on nodes if at most ``most`` go from a node; the pod table has ``size`` rows."""
        while self._due:
            self.work()
        sets: Ints = np.full(size, -1, np.int64)
        first: list[Ints] = []
        n_in: list[Ints] = []
        members: list[Ints] = []
        allowed: list[Ints] = []
        rows_in: dict[str, list[int]] = {}
        for pod in pods:
            rows_in.setdefault(pod.namespace, []).append(pod.row)
        n_sets = n_budgets = n_members = 0
        for namespace, rows in rows_in.items():
            space = self._spaces.get(namespace)
            if space is None or not space.budgets:
                continue
            kinds, at = np.unique(space.list_kinds(rows), return_inverse=True)
            is_kind = kinds >= 0
            flags, may_go = space.find_covering(kinds[is_kind], most)
            counts = flags.sum(axis=1)
            sets[rows] = np.where(is_kind, np.cumsum(is_kind) - 1 + n_sets, -1)[at]
            first.append(n_members + np.cumsum(counts) - counts)
            n_in.append(counts)
            members.append(np.nonzero(flags)[1] + n_budgets)
            allowed.append(may_go)
            n_sets += len(counts)
            n_members += int(counts.sum())
            n_budgets += may_go.size
        runs = np.array([_join(first), _join(n_in)], np.int64)
        left = np.zeros(n_budgets, np.int64)
        return BudgetSets(sets, runs, _join(members), _join(allowed), left)

    def list_rows_since(self, figures: int) -> list[int] | None:
        """List the rows of pods whose budgets may have changed since; None when ``figures`` is too old to say."""
        if figures < self._from:
            return None
        while self._due:
            self.work()
        kinds: dict[str, int] = {}
        found: list[int] = []
        for namespace, change in self._changes[figures - self._from :]:
            kinds[namespace] = kinds.get(namespace, 0) | change.kinds
            found += change.rows
        for namespace, others in kinds.items():
            # The change names the rows itself if no budget or no pod is left.
            if namespace in self._spaces:
                found += self._spaces[namespace].list_rows(others)
        return found

    def _forget(self, namespace: str) -> None:
        del self._spaces[namespace]
        self._due.pop(namespace, None)

    def _begin(self) -> None:
        self._spaces.clear()
        for _, pod in self._on_nodes():
            self._spaces.setdefault(pod.namespace, Space()).put_pod(pod.row, pod)

    def _note(self, namespace: str, change: Covering) -> None:
        self._due[namespace] = None
        if len(self._changes) >= 2 * _REMEMBERED:
            self._from += _REMEMBERED
            del self._changes[:_REMEMBERED]
        self._changes.append((namespace, change))


def _join(parts: list[Ints]) -> Ints:
    return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, np.int64)


def _read_selector(selector: wire.LabelSelector | None) -> Selector | None:
    """Read a selector; None for one that covers nothing: an empty one, and one that cannot be read."""
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return None
    try:
        return selectors.read_selector(selector, "spec.selector")
    except BadInput:
        return None
