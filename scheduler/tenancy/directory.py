"""Which queues there are, and whether a workload may wait in one: what keeps it from being tried at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from scheduler.api.queues import bounds
from scheduler.api.queues.bounds import Ranges
from scheduler.api.queues.definitions import (
    REFUSED_CHECKS,
    Check,
    LocalQueueDefinition,
    QueueDefinition,
    Stop,
)
from scheduler.api.queues.words import (
    CHECK_REJECTED,
    CHECK_RETRY,
    EVALUATED_LATER,
    GATED,
    NOT_SUPPORTED,
)
from scheduler.api.queues.workloads import WorkloadDefinition
from scheduler.api.selectors import Labels
from scheduler.tenancy.flavors import FlavorBook
from scheduler.tenancy.forest import Forest
from scheduler.tenancy.slices import find_refusal
from scheduler.tenancy.trees import Amounts, Tree

MISCONFIGURED, SUSPENDED = "Misconfigured", "Suspended"
_CPU, _THOUSAND = "cpu", 1000.0
# A reason and a message, in Kueue's words.
Obstacle = tuple[str, str]


class Directory:
    """Queues, flavors and local queues.

    Attributes:
        forest: the trees of queues.
        book: the flavors.
        locals: the local queues by namespace and name.
        checks: the admission checks.
        classes: the values of the WorkloadPriorityClasses.
    """

    def __init__(
        self, find_labels: Callable[[str], Labels | None], *, ignores_undeclared: bool = False
    ) -> None:
        """``find_labels`` finds the labels of a namespace; None if there is none. The rest is as in ``QueueSettings``."""
        self._find_labels = find_labels
        self.forest = Forest()
        self.book = FlavorBook(ignores_undeclared=ignores_undeclared)
        self.locals: dict[str, LocalQueueDefinition] = {}
        self.checks: dict[str, Check] = {}
        self.classes: dict[str, int] = {}
        # The LimitRanges of each namespace by name, and what they say together.
        self._ranges: dict[str, dict[str, Ranges]] = {}

    def put_ranges(self, namespace: str, name: str, ranges: Ranges | None) -> None:
        """Add, replace or remove a LimitRange."""
        of_namespace = self._ranges.setdefault(namespace, {})
        if ranges is not None:
            of_namespace[name] = ranges
            return
        of_namespace.pop(name, None)
        if not of_namespace:
            del self._ranges[namespace]

    def list_ranges(self) -> list[str]:
        """List the LimitRanges, by namespace and name."""
        return [f"{space}/{name}" for space, some in self._ranges.items() for name in some]

    def list_locals(self, queue: str) -> Iterator[str]:
        """List the local queues that lead to a queue."""
        return (key for key, local in self.locals.items() if local.queue == queue)

    def list_users(self, flavor: str) -> Iterator[str]:
        """List the queues that have quota of a flavor."""
        for queue in self.forest.queues.values():
            if any(one.flavor == flavor for group in queue.groups for one in group.flavors):
                yield queue.name

    def list_users_of_topology(self, topology: str) -> Iterator[str]:
        """List the queues that have quota of a flavor whose pods are placed by a topology, once for each flavor."""
        for flavor in self.book.flavors.values():
            if flavor.topology == topology:
                yield from self.list_users(flavor.name)

    def list_together(self, queue: str) -> list[str]:
        """List the queues of the tree of a queue, itself among them."""
        tree = self.forest.find_tree(queue)
        return [queue] if tree is None else list(tree.queues)

    def put_check(self, name: str, check: Check | None) -> bool:
        """Add, replace or remove an admission check; return whether it has changed."""
        if self.checks.get(name) == check:
            return False
        self.checks.pop(name, None)
        if check is not None:
            self.checks[name] = check
        return True

    def list_users_of_check(self, check: str) -> Iterator[str]:
        """List the queues that have an admission check."""
        for queue in self.forest.queues.values():
            if any(one.name == check for one in queue.checks):
                yield queue.name

    def hide_inactive(self, queues: Iterable[str]) -> None:
        """Hide those queues that are not active from others of their trees: of all trees of some queues."""
        trees = {id(tree): tree for name in queues if (tree := self.forest.find_tree(name))}
        for tree in trees.values():
            tree.hide_queues(
                {i for name, i in tree.queues.items() if self.list_inactive_reasons(name)}
            )

    def list_inactive_reasons(self, name: str) -> list[Obstacle]:
        """List why a queue admits nobody, as reasons and messages of its condition Active."""
        queue, found = self.forest.queues[name], []
        if queue.is_going:
            found.append(("Terminating", "is terminating"))
        if queue.stop != Stop.NONE:
            found.append(("Stopped", "is stopped"))
        missing = [
            one.flavor
            for group in queue.groups
            for one in group.flavors
            if one.flavor not in self.book.flavors
        ]
        if missing:
            found.append(
                ("FlavorNotFound", f"references missing ResourceFlavor(s): {','.join(missing)}")
            )
        for group in queue.groups:
            for one in group.flavors:
                flavor = self.book.flavors.get(one.flavor)
                if flavor and flavor.topology and not self.book.has_topology(flavor.topology):
                    said = (
                        f'there is no Topology "{flavor.topology}" for TAS flavor "{flavor.name}"'
                    )
                    found.append(("TopologyNotFound", said))
        found += self._list_obstacles_of_checks(queue)
        if self.forest.is_in_circle(name):
            found.append(("CohortCycle", "its cohorts are in a circle"))
        found += [(NOT_SUPPORTED, f"{one} is not supported") for one in queue.refused]
        if queue.mistake:
            found.append(("Misconfigured", queue.mistake))
        return found

    def _list_obstacles_of_checks(self, queue: QueueDefinition) -> Iterator[Obstacle]:
        """List what is wrong with the admission checks of a queue."""
        names = sorted({one.name for one in queue.checks})
        known = {name: self.checks[name] for name in names if name in self.checks}
        if missing := [name for name in names if name not in known]:
            said = f"references missing AdmissionCheck(s): {','.join(missing)}"
            yield "AdmissionCheckNotFound", said
        if inactive := [name for name, one in known.items() if one.is_inactive]:
            said = f"references inactive AdmissionCheck(s): {','.join(inactive)}"
            yield "AdmissionCheckInactive", said
        for name, one in known.items():
            if one.controller in REFUSED_CHECKS:
                said = f"AdmissionCheck {name} of the controller {one.controller} is not supported"
                yield NOT_SUPPORTED, said

    def list_checks(self, queue: str, flavors: Collection[str]) -> list[str]:
        """List the admission checks that a workload has to pass that gets some flavors of a queue."""
        found = self.forest.queues.get(queue)
        checks = found.checks if found else ()
        return sorted(
            {one.name for one in checks if not one.flavors or not one.flavors.isdisjoint(flavors)}
        )

    def hold(self, queue: str, key: str, amounts: Amounts) -> list[str]:
        """Let a workload hold quota of a queue, as ``Forest.hold`` does."""
        changed = self.forest.hold(queue, key, amounts)
        self.hide_inactive(changed)
        return changed

    def find_obstacle(self, defined: WorkloadDefinition, now: float) -> Obstacle | None:
        """Find why a workload may not even be tried; None if it may."""
        if not defined.is_active:
            return SUSPENDED, "The workload is deactivated"
        if defined.chain and (why := find_refusal(defined)):
            return NOT_SUPPORTED, why
        return self._find_obstacle_of_queue(defined) or self._find_own_obstacle(defined, now)

    def _find_obstacle_of_queue(self, defined: WorkloadDefinition) -> Obstacle | None:
        local = self.find_local(defined)
        if local is None or local.is_going:
            return MISCONFIGURED, f"LocalQueue {defined.local} doesn't exist"
        if local.stop != Stop.NONE:
            return SUSPENDED, f"LocalQueue {defined.local} is inactive"
        if local.queue not in self.forest.queues:
            return MISCONFIGURED, f"ClusterQueue {local.queue} doesn't exist"
        if self.list_inactive_reasons(local.queue):
            return SUSPENDED, f"ClusterQueue {local.queue} is inactive"
        return None

    def _find_own_obstacle(self, defined: WorkloadDefinition, now: float) -> Obstacle | None:
        if defined.not_before is None or defined.not_before > now:
            return EVALUATED_LATER, "The workload has been evicted and waits to be tried again"
        if any(state in {CHECK_RETRY, CHECK_REJECTED} for _, state in defined.checks):
            return EVALUATED_LATER, "The workload has failed admission checks"
        namespace = defined.key.partition("/")[0]
        labels = self._find_labels(namespace)
        if labels is None:
            return MISCONFIGURED, f'workload namespace "{namespace}" does not exist'
        if not self._find_queue(defined).namespaces.matches(labels):
            return MISCONFIGURED, "workload namespace doesn't match ClusterQueue selector"
        why = self._find_bad_asks(defined, namespace)
        if why:
            return MISCONFIGURED, why
        # Last, as in Kueue: what has to be mended is said even before all have agreed.
        return (GATED, f"Admission is gated by: {defined.gates}") if defined.gates else None

    def _find_bad_asks(self, defined: WorkloadDefinition, namespace: str) -> str:
        """Say which pods ask for what they may not; empty if none do."""
        paths = [f"spec.podSets[{i}].template.spec" for i in range(len(defined.sets))]
        shapes = [one.shape for one in defined.sets]
        for path, shape in zip(paths, shapes, strict=True):
            problem = f"{path}.{shape.problem}" if shape.problem else bounds.find_excess(shape.asks, path)  # fmt: skip
            if problem:
                return f"resources validation failed: {problem}"
        if namespace in self._ranges:
            ranges = bounds.merge_ranges(self._ranges[namespace].values())
            for path, shape in zip(paths, shapes, strict=True):
                problem = bounds.find_breach(shape.asks, shape.requests, path, ranges)
                if problem:
                    return f"resources didn't satisfy LimitRange constraints: {problem}"
        return ""

    def find_local(self, defined: WorkloadDefinition) -> LocalQueueDefinition | None:
        """Find the local queue of a workload; None if there is none."""
        return self.locals.get(f"{defined.key.partition('/')[0]}/{defined.local}")

    def _find_queue(self, defined: WorkloadDefinition) -> QueueDefinition:
        local = self.find_local(defined)
        return self.forest.queues[local.queue if local else ""]

    def sum_up_tree(self, queue: str) -> Mapping[str, float]:
        """Sum up what there is in the whole tree of a queue, in cores, bytes and counts."""
        tree, total = self.forest.find_tree(queue), dict[str, float]()
        if tree is not None:
            for (_, resource), amount in zip(tree.names, _list_root(tree), strict=True):
                unit = _THOUSAND if resource == _CPU else 1.0
                total[resource] = total.get(resource, 0.0) + amount / unit
        return total


def _list_root(tree: Tree) -> list[int]:
    """List what the root of a tree has of each column."""
    amounts: list[int] = tree.handle.subtree[0].tolist()
    return amounts
