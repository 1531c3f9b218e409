"""The pods on nodes of one namespace, and which of its disruption budgets cover each kind of them.

A kind is a set of labels. When a budget changes, only this budget is matched anew. A new kind is matched with the
budgets that require one of its labels, and with those that require none. The work is done in steps.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.api.selectors import Selector
from scheduler.schema.columns import Flags, Ints
from scheduler.state.pods import PodRecord
from scheduler.state.structures.matching import (
    Anchor,
    Postings,
    find_anchor,
    pack_bits,
    unpack_bits,
)

_Bytes = NDArray[np.uint8]
# In one step so many pods are sorted into kinds, or so many kinds come or go, or so many budgets are matched with new
# kinds. A kind costs up to 0.2 ms, if thousands of pods have 20 labels of their own.
PODS_A_STEP, KINDS_A_STEP, BUDGETS_A_STEP = 128, 64, 32
# The API does not bound the values of a budget: each further so many values count as one more budget.
_VALUES_A_BUDGET = 100


class Budget(NamedTuple):
    """One budget.

    Attributes:
        selector: which pods of its namespace it covers; None: none of them.
        allowed: how many more of them may go.
        disrupted: names of the pods that the API server has let go already.
    """

    selector: Selector | None
    allowed: int
    disrupted: frozenset[str]


class Covering(NamedTuple):
    """Pods whose budgets may have changed: the pods of these kinds, as bits, and the pods in these rows."""

    kinds: int = 0
    rows: tuple[int, ...] = ()


class _PodKind(NamedTuple):
    """The key of a kind; the name is empty, except for pods that a budget has let go already."""

    labels: frozenset[tuple[str, str]]
    name: str


class Space:
    """One namespace.

    Attributes:
        budgets: by name.
        n_matched: how often a budget was matched with a set of kinds.
        spent: how much work the last step was, in parts of a whole step; one budget may be several.
    """

    def __init__(self) -> None:
        self.budgets: dict[str, Budget] = {}
        self._weights: dict[str, float] = {}
        self.n_matched = 0
        self.spent = 0.0
        self._pods: dict[int, PodRecord] = {}
        self._rows_of: dict[str, set[int]] = {}
        # How many budgets have let a pod of this name go already.
        self._let_go: dict[str, int] = {}
        self._begin()

    def _begin(self) -> None:
        """Begin anew: no pod has a kind yet, and no budget is matched."""
        # Rows of pods whose kind may have changed.
        self._dirty: dict[int, None] = dict.fromkeys(self._pods)
        self._kinds: dict[_PodKind, int] = {}
        self._keys: list[_PodKind | None] = []
        self._free: list[int] = []
        self._n_of: list[int] = []
        self._kind_of: dict[int, int] = {}
        self._empty: set[int] = set()
        self._postings = Postings()
        # Kinds that are in no batch yet. The kinds of a batch are matched together with the budgets in the list below,
        # which has the weight of each.
        self._new: list[int] = []
        self._batch = Postings()
        self._left: list[tuple[str, float]] = []
        self._left_weight = 0.0
        # Budgets to match with all kinds; and the matched budgets, by the label that they require.
        self._changed: dict[str, float] = {}
        self._changed_weight = 0.0
        self._anchored: dict[Anchor | None, dict[str, None]] = {}
        self._covers: dict[str, int] = {}
        # The table that ``find_covering`` reads, with the ``most`` it was made for; None when something has changed since.
        self._table: tuple[int, _Bytes, Ints] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether the space is not needed: it has neither budgets nor pods."""
        return not (self.budgets or self._pods)

    @property
    def n_due(self) -> int:
        """Roughly how many steps of work are left."""
        if not self.budgets:
            return 0
        n = _count_steps(len(self._dirty), PODS_A_STEP) + _count_steps(len(self._new), KINDS_A_STEP)
        n += _count_steps(len(self._empty), KINDS_A_STEP) + len(self._changed)
        n += _count_steps(len(self._left), BUDGETS_A_STEP)
        # Heavy budgets count as several.
        return n + int((self._left_weight + self._changed_weight) / BUDGETS_A_STEP)

    # Changes.

    def put_pod(self, row: int, pod: PodRecord) -> None:
        """Note that a pod is in a row of the pod table."""
        self.drop_pod(row)
        self._pods[row] = pod
        self._rows_of.setdefault(pod.name, set()).add(row)

    def drop_pod(self, row: int) -> None:
        """Note that no pod of the namespace is in a row any more."""
        if self.budgets:
            self._dirty[row] = None
        was = self._pods.pop(row, None)
        if was is not None:
            rows = self._rows_of[was.name]
            rows.discard(row)
            if not rows:
                del self._rows_of[was.name]

    def put_budget(self, name: str, new: Budget | None) -> Covering:
        """Take over a budget that was added or changed, or drop it (None); return the pods whose budgets this changes."""
        if not self.budgets:
            self._begin()
        self._table = None
        old, covered = self.budgets.get(name), self._covers.get(name, 0)
        if old is not None and (new is None or new.selector != old.selector):
            self._unanchor(name, old)
        if new is None:
            del self.budgets[name], self._weights[name]
            self._forget_change(name)
        else:
            self.budgets[name] = new
            self._weights[name] = _weigh(new)
            if old is None or new.selector != old.selector:
                self._anchored.setdefault(_find_budget_anchor(new), {})[name] = None
                self._note_change(name)
            elif new.disrupted != old.disrupted:
                self._note_change(name)
        renamed = self._count_let_go(old, new)
        if self.budgets:
            return Covering(covered, renamed)
        rows = self.list_rows(covered)
        self._begin()
        return Covering(rows=(*rows, *renamed))

    def _note_change(self, name: str) -> None:
        """Note that a budget must be matched again; a budget that must be already keeps its turn."""
        weight = self._weights[name]
        self._changed_weight += weight - self._changed.get(name, 0.0)
        self._changed[name] = weight

    def _forget_change(self, name: str) -> None:
        self._changed_weight -= self._changed.pop(name, 0.0)

    def _unanchor(self, name: str, old: Budget) -> None:
        self._covers.pop(name, None)
        there = self._anchored[_find_budget_anchor(old)]
        del there[name]
        if not there:
            del self._anchored[_find_budget_anchor(old)]

    def _count_let_go(self, old: Budget | None, new: Budget | None) -> tuple[int, ...]:
        """Count names that budgets have let go; return the rows of pods that get a kind of their own, or lose it."""
        before = old.disrupted if old else frozenset()
        after = new.disrupted if new else frozenset()
        renamed: list[int] = []
        for name in before ^ after:
            sign = 1 if name in after else -1
            n = self._let_go[name] = self._let_go.get(name, 0) + sign
            if not n:
                del self._let_go[name]
            if n == max(sign, 0):
                renamed += self._rows_of.get(name, ())
        self._dirty.update(dict.fromkeys(renamed))
        return tuple(renamed)

    # The work.

    def work(self) -> int:
        """Make one step; return the kinds, as bits, that a budget has begun or ceased to cover."""
        self._table = None
        if self._dirty:
            self._tell_apart()
        elif self._left:
            self._match_new()
        elif self._new:
            self._gather_new()
        elif self._empty:
            self._let_kinds_go()
        elif self._changed:
            return self._match_changed()
        return 0

    def _tell_apart(self) -> None:
        rows = list(islice(self._dirty, PODS_A_STEP))
        self.spent = len(rows) / PODS_A_STEP
        for row in rows:
            del self._dirty[row]
            old, pod = self._kind_of.pop(row, -1), self._pods.get(row)
            if old >= 0:
                self._n_of[old] -= 1
                if not self._n_of[old]:
                    self._empty.add(old)
            if pod is not None and pod.labels:
                name = pod.name if pod.name in self._let_go else ""
                kind = self._intern(_PodKind(frozenset(pod.labels.items()), name))
                self._kind_of[row] = kind
                self._n_of[kind] += 1
                self._empty.discard(kind)

    def _intern(self, key: _PodKind) -> int:
        kind = self._kinds.get(key, -1)
        if kind < 0:
            kind = self._free.pop() if self._free else len(self._keys)
            if kind == len(self._keys):
                self._keys.append(key)
                self._n_of.append(0)
            self._keys[kind] = key
            self._kinds[key] = kind
            self._new.append(kind)
        return kind

    def _let_kinds_go(self) -> None:
        """Forget some of the kinds without pods; no batch has any of them."""
        gone = [self._empty.pop() for _ in range(min(KINDS_A_STEP, len(self._empty)))]
        self.spent = len(gone) / KINDS_A_STEP
        self._postings.drop({kind: self._read_labels(kind) for kind in gone})
        bits = pack_bits(gone)
        for name, covered in self._covers.items():
            if covered & bits:
                self._covers[name] = covered & ~bits
        for kind in gone:
            key = self._keys[kind]
            if key is not None:
                del self._kinds[key]
            self._keys[kind] = None
            self._free.append(kind)

    def _read_labels(self, kind: int) -> frozenset[tuple[str, str]]:
        key = self._keys[kind]
        return key.labels if key is not None else frozenset()

    def _gather_new(self) -> None:
        """Add some of the new kinds to the batch; when the last one is added, list the budgets to match it with."""
        found = {kind: self._read_labels(kind) for kind in self._new[-KINDS_A_STEP:]}
        del self._new[-KINDS_A_STEP:]
        self.spent = len(found) / KINDS_A_STEP
        self._postings.add(found)
        self._batch.add(found)
        if self._new:
            return
        asked = dict(self._anchored.get(None, {}))
        for anchor in self._batch.list_anchors():
            asked |= self._anchored.get(anchor, {})
        left = [name for name in asked if name not in self._changed]
        self._left = [(name, self._weights[name]) for name in left]
        self._left_weight = sum(weight for _, weight in self._left)
        if not self._left:
            self._batch = Postings()

    def _match_new(self) -> None:
        self.spent = 0.0
        while self._left and self.spent < 1:
            name, weight = self._left.pop()
            self._left_weight -= weight
            if name in self.budgets and name not in self._changed:
                self._covers[name] = self._covers.get(name, 0) | self._match(name, self._batch)
                self.spent += weight / BUDGETS_A_STEP
        if not self._left:
            self._batch = Postings()

    def _match_changed(self) -> int:
        name, weight = next(iter(self._changed.items()))
        self._forget_change(name)
        self.spent = weight / BUDGETS_A_STEP
        covered = self._match(name, self._postings)
        other = covered ^ self._covers.get(name, 0)
        self._covers[name] = covered
        return other

    def _match(self, name: str, postings: Postings) -> int:
        budget = self.budgets[name]
        if budget.selector is None:
            return 0
        self.n_matched += 1
        covered = postings.match(budget.selector)
        for pod in budget.disrupted:
            for row in self._rows_of.get(pod, ()):
                kind = self._kind_of.get(row, -1)
                if kind >= 0:
                    covered &= ~(1 << kind)
        return covered

    # Answers, when no work is left.

    def list_kinds(self, rows: list[int]) -> Ints:
        """List the kinds of the pods in these rows; -1 for none."""
        return np.array([self._kind_of.get(row, -1) for row in rows], np.int64)

    def list_rows(self, kinds: int) -> list[int]:
        """List the rows of the pods of these kinds."""
        if not kinds:
            return []
        asked = set(unpack_bits(kinds).tolist())
        return [row for row, kind in self._kind_of.items() if kind in asked]

    def find_covering(self, kinds: Ints, most: int) -> tuple[Flags, Ints]:
        """Find [n, B] which budgets count for each of n kinds, in the order of their names, and [B] what they allow.

        If at most ``most`` pods go, some budgets cannot matter and are left out: those that allow as many, and for a
        kind all that come after one that allows none.
        """
        if self._table is None or self._table[0] != most:
            self._table = most, *self._tabulate(most)
        _, packed, allowed = self._table
        flags: Flags = (packed[:, kinds >> 3] >> (kinds & 7).astype(np.uint8) & 1).T.astype(bool)
        return flags, allowed

    def _tabulate(self, most: int) -> tuple[_Bytes, Ints]:
        """Return [B, ..] the kinds for which each budget counts, eight to a byte, and [B] what it allows."""
        n_bytes = (len(self._keys) + 7) // 8
        rows: list[bytes] = []
        allowed: list[int] = []
        decided = 0
        for name in sorted(self._covers):
            may_go, covered = self.budgets[name].allowed, self._covers[name] & ~decided
            if covered and may_go < most:
                rows.append(covered.to_bytes(n_bytes, "little"))
                allowed.append(may_go)
                decided |= covered if may_go <= 0 else 0
        packed = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), n_bytes)
        return packed, np.array(allowed, np.int64)


def _count_steps(n: int, in_one: int) -> int:
    return (n + in_one - 1) // in_one


def _weigh(budget: Budget) -> float:
    """Weigh how long a budget takes to match; a budget without values weighs 1."""
    requirements = budget.selector.requirements if budget.selector is not None else ()
    return 1 + sum(len(one.values) for one in requirements) / _VALUES_A_BUDGET


def _find_budget_anchor(budget: Budget) -> Anchor | None:
    # A selector that selects nothing meets no kind, by whatever label it is found.
    return find_anchor(budget.selector) if budget.selector is not None else ("", "")
