"""PodDisruptionBudgets: how many more of the pods that they cover may go."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from scheduler.api import selectors, wire
from scheduler.api.selectors import Labels, Selector
from scheduler.errors import BadInput
from scheduler.schema.columns import Ints
from scheduler.state.pods import PodRecord

_Key = tuple[str, str]
# Sets of labels that are remembered: tenants may give each of their pods others.
_LABELS_MAX = 20_000


class Budget(NamedTuple):
    """One budget.

    Attributes:
        selector: which pods of its namespace it covers; None: none of them.
        allowed: how many more of them may go.
        disrupted: names of those that the API server has let go already.
    """

    selector: Selector | None
    allowed: int
    disrupted: frozenset[str]


class Budgets:
    """The budgets by namespace, and as arrays for kernels which of them cover a pod.

    Attributes:
        version: rises when one covers other pods, or others are let go already.
        figures: rises when more or fewer of the pods of one may go.
    """

    def __init__(self) -> None:
        self._in: dict[str, dict[str, Budget]] = {}
        # Names of pods that any of a namespace has let go already.
        self._disrupted: dict[str, set[str]] = {}
        # Of each budget its number, of each set of budgets that covers a pod likewise.
        self._numbers: dict[_Key, int] = {}
        self._sets: dict[tuple[int, ...], int] = {}
        self._of_labels: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
        self.version = 0
        self.figures = 0

    def __len__(self) -> int:
        return sum(map(len, self._in.values()))

    def see(
        self,
        namespace: str,
        name: str,
        selector: wire.LabelSelector | None,
        status: tuple[int, Iterable[str]],
    ) -> None:
        """A budget was added or changed; ``status`` is how many more may go, and the names of those let go already.

        A selector that cannot be read covers nothing.
        """
        new = Budget(_read(selector), status[0], frozenset(status[1]))
        old = self._in.get(namespace, {}).get(name)
        if new == old:
            return
        self._in.setdefault(namespace, {})[name] = new
        self.figures += 1
        if old is None or (old.selector, old.disrupted) != (new.selector, new.disrupted):
            self._renumber()

    def drop(self, namespace: str, name: str) -> None:
        """A budget was deleted."""
        there = self._in.get(namespace, {})
        if there.pop(name, None) is None:
            return
        if not there:
            del self._in[namespace]
        self.figures += 1
        self._renumber()

    def objects(self) -> list[tuple[str, str, Budget]]:
        """All budgets, with namespace and name."""
        return [(ns, name, one) for ns, there in self._in.items() for name, one in there.items()]

    def set_of(self, pod: PodRecord) -> int:
        """Number of the set of budgets that cover a pod; -1 for none."""
        there = self._in.get(pod.namespace)
        if not there or not pod.labels:
            return -1
        if pod.name in self._disrupted.get(pod.namespace, ()):
            # Told by its name, which no other pod has.
            return self._set(self._covering(pod.namespace, pod.labels, pod.name))
        key = pod.namespace, frozenset(pod.labels.items())
        found = self._of_labels.get(key)
        if found is None:
            if len(self._of_labels) >= _LABELS_MAX:
                self._of_labels = {}
            found = self._set(self._covering(pod.namespace, pod.labels, ""))
            self._of_labels[key] = found
        return found

    def arrays(self) -> tuple[Ints, Ints, Ints]:
        """``runs`` [2, S], ``budgets`` and ``allowed`` [B] as ``Prey`` has them, of all sets told so far."""
        runs = np.zeros((2, len(self._sets)), np.int64)
        members: list[int] = []
        for i, one in enumerate(self._sets):
            runs[:, i] = len(members), len(one)
            members += one
        allowed = [self._in[namespace][name].allowed for namespace, name in self._numbers]
        return runs, np.array(members, np.int64), np.array(allowed, np.int64)

    def _renumber(self) -> None:
        self.version += 1
        keys = sorted((ns, name) for ns, there in self._in.items() for name in there)
        self._numbers = {key: i for i, key in enumerate(keys)}
        self._sets, self._of_labels = {}, {}
        self._disrupted = {
            namespace: {name for one in there.values() for name in one.disrupted}
            for namespace, there in self._in.items()
        }

    def _covering(self, namespace: str, labels: Labels, name: str) -> tuple[int, ...]:
        return tuple(
            self._numbers[namespace, budget]
            for budget, one in sorted(self._in[namespace].items())
            if one.selector is not None
            and one.selector.matches(labels)
            and name not in one.disrupted
        )

    def _set(self, covering: tuple[int, ...]) -> int:
        return self._sets.setdefault(covering, len(self._sets)) if covering else -1


def _read(selector: wire.LabelSelector | None) -> Selector | None:
    """None for a selector that covers nothing: an empty one, and one that cannot be read."""
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return None
    try:
        return selectors.of_wire(selector, "spec.selector")
    except BadInput:
        return None
