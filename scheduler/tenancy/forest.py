"""All trees of queues, and which queue is in which: what changes makes only the trees anew that it is in."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.api.queues.definitions import CohortDefinition, QueueDefinition
from scheduler.tenancy.trees import Amounts, Node, Tree


class Forest:
    """The trees. A cohort that is only named is a cohort without quotas of its own.

    Attributes:
        queues: the queues by name.
        cohorts: the cohorts that are defined, by name.
    """

    def __init__(self) -> None:
        self.queues: dict[str, QueueDefinition] = {}
        self.cohorts: dict[str, CohortDefinition] = {}
        self._trees: dict[str, Tree] = {}
        # The queues and cohorts whose parent is a cohort, by its name.
        self._queues_in: dict[str, set[str]] = {}
        self._cohorts_in: dict[str, set[str]] = {}
        # What is held, by queue and workload.
        self._held: dict[str, dict[str, Amounts]] = {}
        self._changed: set[str] = set()
        self._last = 0

    def put_queue(self, queue: QueueDefinition) -> None:
        """Add or replace a queue."""
        before = self.queues.get(queue.name)
        if before == queue:
            return
        self._mark_queue(queue.name)
        if before is not None:
            self._leave(self._queues_in, before.cohort, queue.name)
        self.queues[queue.name] = queue
        if queue.cohort:
            self._queues_in.setdefault(queue.cohort, set()).add(queue.name)
        self._mark_queue(queue.name)

    def drop_queue(self, name: str) -> None:
        """Remove a queue, and what is held in it."""
        before = self.queues.get(name)
        if before is not None:
            self._mark_queue(name)
            self._leave(self._queues_in, before.cohort, name)
            del self.queues[name]
            self._trees.pop(name, None)

    def put_cohort(self, cohort: CohortDefinition) -> None:
        """Add or replace a cohort."""
        before = self.cohorts.get(cohort.name)
        if before == cohort:
            return
        self._mark_cohort(cohort.name)
        if before is not None:
            self._leave(self._cohorts_in, before.parent, cohort.name)
        self.cohorts[cohort.name] = cohort
        if cohort.parent:
            self._cohorts_in.setdefault(cohort.parent, set()).add(cohort.name)
        self._mark_cohort(cohort.name)

    def drop_cohort(self, name: str) -> None:
        """Remove what is defined of a cohort; queues that name it stay together."""
        before = self.cohorts.get(name)
        if before is not None:
            self._mark_cohort(name)
            self._leave(self._cohorts_in, before.parent, name)
            del self.cohorts[name]
            self._mark_cohort(name)

    @staticmethod
    def _leave(within: dict[str, set[str]], parent: str, name: str) -> None:
        if parent in within:
            within[parent].discard(name)
            if not within[parent]:
                del within[parent]

    def _mark_queue(self, name: str) -> None:
        """Note that the trees of a queue are to be made anew."""
        self._changed.add(name)
        queue = self.queues.get(name)
        if queue is not None and queue.cohort:
            self._mark_cohort(queue.cohort)

    def _mark_cohort(self, name: str) -> None:
        """Note that the trees of all queues in the same tree as a cohort are to be made anew."""
        root = self.find_root(name)
        self._changed.update(self._list_queues(root or name, {}))

    def find_root(self, cohort: str) -> str | None:
        """Find the cohort above all others; None if they are in a circle."""
        seen = set()
        while cohort not in seen:
            seen.add(cohort)
            defined = self.cohorts.get(cohort)
            if defined is None or not defined.parent:
                return cohort
            cohort = defined.parent
        return None

    def _list_queues(self, cohort: str, seen: dict[str, None]) -> Iterator[str]:
        """List the queues below a cohort, each once, even if cohorts are in a circle."""
        left = [cohort]
        while left:
            name = left.pop()
            if name not in seen:
                seen[name] = None
                yield from self._queues_in.get(name, ())
                left += self._cohorts_in.get(name, ())

    @property
    def has_changed(self) -> bool:
        """Whether trees are to be made anew."""
        return bool(self._changed)

    def take_changed(self) -> list[str]:
        """Make the trees anew in which anything has changed; return the names of their queues."""
        if not self._changed:
            return []
        changed = sorted(self._changed)
        self._changed.clear()
        for name in changed:
            self._trees.pop(name, None)
        for name in changed:
            if name in self.queues and name not in self._trees:
                self._plant(name)
        return changed

    def find_tree(self, queue: str) -> Tree | None:
        """Return the tree of a queue; None if there is no such queue, or its cohorts are in a circle."""
        return self._trees.get(queue)

    def is_in_circle(self, queue: str) -> bool:
        """Whether the cohorts above a queue are in a circle."""
        defined = self.queues.get(queue)
        return bool(defined and defined.cohort and self.find_root(defined.cohort) is None)

    def _plant(self, queue: str) -> None:
        """Make the tree of a queue, and let it hold again what is held in its queues."""
        defined = self.queues[queue]
        if not defined.cohort:
            nodes = [Node(queue, True, -1, defined.groups, defined.weight)]
        else:
            root = self.find_root(defined.cohort)
            if root is None:
                return
            nodes = self._list_nodes(root)
        names = [one.name for one in nodes if one.is_queue]
        more = {
            column
            for name in names
            for amounts in self._held.get(name, {}).values()
            for column in amounts
        }
        tree = Tree(nodes, more)
        # Later than that of any tree before it.
        self._last += 1_000_000_000
        tree.generations = [self._last] * len(nodes)
        for name in names:
            self._trees[name] = tree
            for key, amounts in self._held.get(name, {}).items():
                tree.hold(key, name, amounts)

    def _list_nodes(self, root: str) -> list[Node]:
        """List the nodes below a cohort, each behind its parent, children by name."""
        nodes: list[Node] = []
        left = [(root, -1)]
        for name, parent in left:
            cohort = self.cohorts.get(name) or CohortDefinition(name=name)
            here = len(nodes)
            nodes.append(Node(name, False, parent, cohort.groups, cohort.weight))
            for one in sorted(self._queues_in.get(name, ())):
                queue = self.queues[one]
                nodes.append(Node(one, True, here, queue.groups, queue.weight))
            left += [(one, here) for one in sorted(self._cohorts_in.get(name, ()))]
        return nodes

    def hold(self, queue: str, key: str, amounts: Amounts) -> list[str]:
        """Let a workload hold quota of a queue, instead of what it holds; list the queues whose tree was made anew for it."""
        self.release(queue, key)
        self._held.setdefault(queue, {})[key] = amounts
        tree = self._trees.get(queue)
        if tree is None:
            return []
        if amounts.keys() <= tree.columns.keys():
            tree.hold(key, queue, amounts)
            return []
        # A flavor that no quota names any more.
        self._mark_queue(queue)
        return self.take_changed()

    def release(self, queue: str, key: str) -> None:
        """Let a workload hold nothing of a queue any more."""
        held = self._held.get(queue, {})
        if held.pop(key, None) is not None:
            tree = self._trees.get(queue)
            if tree is not None:
                tree.release(key)
            if not held:
                del self._held[queue]

    def list_held(self, queue: str) -> dict[str, Amounts]:
        """Return what is held of a queue, by workload."""
        return self._held.get(queue, {})

    def list_trees(self) -> list[Tree]:
        """List all trees in which there are queues, and those of cohorts in which there are none."""
        trees = list({id(tree): tree for tree in self._trees.values()}.values())
        known = {one.name for tree in trees for one in tree.nodes if not one.is_queue}
        roots = dict.fromkeys(self.find_root(name) for name in sorted(self.cohorts.keys() - known))
        return trees + [Tree(self._list_nodes(root)) for root in roots if root is not None]
