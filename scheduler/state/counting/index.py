"""An index of rules about other pods: it finds the rules that are about a pod.

A kernel compares the pod with all rules, in a few nanoseconds a rule, whatever the selector. A dictionary that finds
rules by the labels that they want would not find a rule that only says which labels must be absent.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush
from typing import Generic, TypeVar

import numpy as np

from scheduler.api.pods.affinity import Peers
from scheduler.api.selectors import Labels
from scheduler.kernels import rules
from scheduler.schema.columns import Ints
from scheduler.state.counting.records import ComparedPod, write_pod, write_record
from scheduler.state.structures.growing import Growing

T = TypeVar("T", bound=Hashable)

# So many words of rules that are gone may stay.
_GONE_MIN = 1024


class RuleIndex(Generic[T]):
    """Rules by number; a number is used again when its rule is gone.

    Attributes:
        rules: by number; None where there is no rule.
    """

    def __init__(self) -> None:
        self.rules: list[T | None] = []
        self._numbers: dict[T, int] = {}
        self._free: list[int] = []
        # The records of the rules, where each starts (-1 for no rule), and how many words each has.
        self._words, self._starts, self._lengths = Growing(), Growing(), Growing()
        self._n_gone = 0
        # The last pod that was compared, and the rules about it: each pod is compared twice.
        self._last: tuple[object, Ints] | None = None

    def __len__(self) -> int:
        return len(self._numbers)

    def get(self, rule: T) -> int | None:
        """Return the number of a rule; None when the rule is not there."""
        return self._numbers.get(rule)

    def add(self, peers: Peers, rule: T) -> int:
        """Add a rule about these peers, and return its number."""
        self._last = None
        record = write_record(peers)
        start = self._words.add(record)
        number = self._find_free()
        if number == len(self.rules):
            self.rules.append(rule)
            self._starts.put(start)
            self._lengths.put(len(record))
        else:
            self.rules[number] = rule
            self._starts.all[number], self._lengths.all[number] = start, len(record)
        self._numbers[rule] = number
        return number

    def drop(self, rule: T) -> None:
        """Remove a rule."""
        self._last = None
        number = self._numbers.pop(rule)
        self.rules[number] = None
        self._n_gone += int(self._lengths.all[number])
        self._starts.all[number] = -1
        heappush(self._free, number)
        if not self._numbers or self._n_gone > max(_GONE_MIN, self._words.n // 2):
            self._compact()

    def find_about(self, namespace: str, namespace_labels: Labels, labels: Labels) -> Ints:
        """Find [found] the numbers of the rules about a pod, ascending."""
        pod = namespace, frozenset(namespace_labels.items()), frozenset(labels.items())
        if self._last is None or self._last[0] != pod:
            found = self.find(write_pod(namespace, namespace_labels, labels))
            self._last = pod, found
        return self._last[1]

    def find(self, pod: ComparedPod) -> Ints:
        """Find the same for a pod whose texts are hashed already."""
        found = np.empty(self._starts.n, np.int64)
        n = 0
        if self._numbers:
            n = rules.find_rules(self._words.all, self._starts.all, self._starts.n, *pod, found)
        return found[:n].copy()

    def _find_free(self) -> int:
        """Find the lowest number without a rule, so that the numbers at the end become free."""
        while self._free:
            number = heappop(self._free)
            if number < len(self.rules):
                return number
        return len(self.rules)

    def _compact(self) -> None:
        """Free the room of the rules that are gone."""
        while self.rules and self.rules[-1] is None:
            self.rules.pop()
        n = len(self.rules)
        starts, lengths = self._starts.all[:n], self._lengths.all[:n]
        numbers = np.flatnonzero(starts >= 0)
        kept = lengths[numbers]
        ends = np.cumsum(kept)
        # For each word that stays: the place where it was.
        moved = np.repeat(starts[numbers] - (ends - kept), kept) + np.arange(kept.sum())
        self._words.keep(self._words.all[moved])
        starts[numbers] = ends - kept
        self._starts.keep(starts)
        self._lengths.keep(lengths)
        self._n_gone = 0
