"""Who may go for a group: pods by themselves, extra pods of groups, and whole groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from scheduler.api.groups.definitions import Definition, Disruption, GroupKey
from scheduler.disruption import protectors
from scheduler.schema import columns as c
from scheduler.schema import preempting as p
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity, Team, make_entity
from scheduler.state.groups.forming import DEPTH_MAX
from scheduler.state.groups.running import Split, goes_pod_by_pod
from scheduler.state.pods import PodRecord

# So many nodes are tried for a pod that would have to take the place of groups.
_NODES_MAX = 16


class Unit(NamedTuple):
    """Pods that go together or stay together.

    Attributes:
        pods: the pods, by name.
        group: the group of which they are the minimum, or an extra pod; None for a pod by itself.
        is_extra: it is a pod beyond the minimum: it stays only where its group stays.
    """

    pods: tuple[PodRecord, ...]
    group: GroupKey | None = None
    is_extra: bool = False

    @property
    def priority(self) -> int:
        """The highest priority of its pods."""
        return max([pod.priority for pod in self.pods])


def preempts(entity: Entity, may_preempt: Callable[[PodRecord], bool]) -> bool:
    """Whether a group may take the place of others; ``may_preempt``: whether the profile of a pod allows it."""
    if entity.definition is not None and entity.definition.preempts is False:
        return False
    return all(pod.preempts and may_preempt(pod) for pod in entity.members)


def make_lone_entity(pod: PodRecord) -> Entity:
    """Make a group of a pod by itself."""
    key = GroupKey("Pod", pod.namespace, pod.name)
    return make_entity(key, Team("", 1, (pod,), template=pod.template))


def is_core(unit: Unit) -> bool:
    """Whether a unit is the minimum of a group, without which none of the group stays."""
    return unit.group is not None and not unit.is_extra


def list_units(cluster: Cluster, pods: Iterable[PodRecord], priority: int) -> list[Unit]:
    """List the units that may go for a group of a priority and have one of these pods on nodes.

    A group with a pod of at least that priority does not go. Its extra pods of lower priority may. Nor does a unit go with
    a pod that the Eviction API refused to let go a short time ago.
    """
    units: list[Unit] = []
    seen: set[GroupKey] = set()
    # By group, or None for none: whether each of its pods goes by itself.
    is_single: dict[GroupKey | None, bool] = {None: True}
    groups = cluster.groups
    find_group, kept = groups.find_group, groups.kept
    for pod in pods:
        key = find_group(pod.uid)
        if key is not None and key not in is_single:
            root = groups.find_root(key)
            split = kept.find_split(root, groups)
            is_single[key] = split is None and goes_pod_by_pod(groups.find_definition(root))
            if split is not None and root not in seen:
                seen.add(root)
                units += _list_units_of_group(cluster, root, split, priority)
        may_go = is_single[key] and protectors.outranks(priority, pod.priority)
        if may_go and _may_be_asked(cluster, pod):
            units.append(Unit((pod,)))
    return units


def _list_units_of_group(
    cluster: Cluster, root: GroupKey, split: Split, priority: int
) -> list[Unit]:
    """List the units of a group: its minimum, and each pod beyond the minimum unless it goes as a whole."""
    units = [
        Unit((one,), root, is_extra=True)
        for one in split.extras
        if protectors.outranks(priority, one.priority) and _may_be_asked(cluster, one)
    ]
    core = split.core
    everybody = core + split.extras
    refused = cluster.nominations.refused
    is_open = not refused or all(_may_be_asked(cluster, pod) for pod in everybody)
    if core and is_open and protectors.outranks(priority, max([pod.priority for pod in everybody])):
        units.append(Unit(core, root))
    return units


def _may_be_asked(cluster: Cluster, pod: PodRecord) -> bool:
    """Whether the eviction of a pod was not refused a short time ago."""
    return not cluster.nominations.is_refused(pod.uid, cluster.now)


def list_nodes_of_groups(cluster: Cluster, priority: int) -> list[c.Flags]:
    """List [N] some nodes, each by itself, with pods of lower priority that only go with their group."""
    table = cluster.ledger.pods.columns
    may_go = cluster.groups.kept.find_rows(table.node.size)
    may_go &= protectors.find_outranked(cluster, priority) & (table.node >= 0)
    rows = np.unique(table.node[may_go])
    found = []
    for row in rows[np.argsort(cluster.nodes.columns.rank[rows])][:_NODES_MAX].tolist():
        flags = np.zeros(cluster.nodes.capacity, np.bool_)
        flags[row] = True
        found.append(flags)
    return found


class KubeUnit(NamedTuple):
    """Pods that go together or stay together, as kube-scheduler has it.

    Attributes:
        pods: the pods.
        priority: that of the whole group in which they are, or of the pod by itself.
        rank: of units with the same priority the higher rank is more important: pods, then groups, then composite ones.
    """

    pods: tuple[PodRecord, ...]
    priority: int
    rank: int


def list_kube_units(
    cluster: Cluster, priority: int, names: Iterable[str] | None = None
) -> list[KubeUnit]:
    """List kube-scheduler's units that may go for a pod or group of a priority, the most important first.

    A pod goes with the highest group around it that goes as a whole, else by itself, even from a gang. With ``names``
    the units have a pod on one of these nodes.
    """
    units: list[KubeUnit] = []
    seen: set[GroupKey] = set()
    for name in sorted(cluster.nodes.rows) if names is None else names:
        for pod in cluster.pods_on.get(name, {}).values():
            key = cluster.groups.find_group(pod.uid)
            urgency = find_kube_priority(cluster, pod)
            if not protectors.outranks(priority, urgency):
                continue
            whole = _find_whole(cluster, key)
            if whole is None:
                units.append(KubeUnit((pod,), urgency, 1 if key is None else 2))
            elif whole not in seen:
                seen.add(whole)
                there = [one for one in cluster.groups.list_pods(whole) if one.node]
                there.sort(key=lambda one: -one.priority)
                units.append(KubeUnit(tuple(there), urgency, 2 if whole == key else 3))
    start = cluster.ledger.pods.columns.start
    return sorted(
        units,
        key=lambda one: (
            -one.priority,
            -one.rank,
            -len(one.pods),
            min(int(start[pod.row]) for pod in one.pods),
        ),
    )


def find_kube_units(cluster: Cluster, asker: PodRecord, rows: c.Ints) -> tuple[p.Units, int]:
    """Find kube-scheduler's units on node rows [n] that may go for a pod, and at what cost, as ``units.find_units``."""
    pods: list[int] = []
    first, begins = [0], [0]
    node = cluster.ledger.pods.columns.node
    for row in rows.tolist():
        for unit in list_kube_units(cluster, asker.priority, [cluster.nodes.find_name(row)]):
            # Nothing is known of a node that is not there, and nobody has to go from it.
            pods += [one.row for one in unit.pods if node[one.row] >= 0]
            begins.append(len(pods))
        first.append(len(begins) - 1)
    units = p.Units(
        rows=rows,
        first=np.array(first, np.int64),
        begins=np.array(begins, np.int64),
        pods=np.array(pods, np.int64),
        cost=np.zeros(len(begins) - 1, np.int64),
    )
    return units, protectors.add_costs(cluster, units)


def find_rows_with_groups(cluster: Cluster, rows: c.Ints) -> c.Flags:
    """Find [n] which node rows have a pod of a group."""
    find_group, find_name = cluster.groups.find_group, cluster.nodes.find_name
    found = (
        any(find_group(uid) is not None for uid in cluster.pods_on.get(find_name(row), ()))
        for row in rows.tolist()
    )
    return np.fromiter(found, np.bool_, rows.size)


def list_rows_beside(cluster: Cluster, rows: Iterable[int], groups: Iterable[GroupKey]) -> set[int]:
    """List the node rows on which units have changed: those with pods of some groups, or of groups that are on some rows."""
    find_name, find_group = cluster.nodes.find_name, cluster.groups.find_group
    there = (uid for row in rows for uid in cluster.pods_on.get(find_name(row), ()))
    keys = {key for uid in there if (key := find_group(uid)) is not None}
    roots = {cluster.groups.find_root(key) for key in keys.union(groups)}
    pods = (pod for root in roots for pod in cluster.groups.list_pods(root) if pod.node)
    return {cluster.nodes.find_row(pod.node) for pod in pods}


def find_kube_priority(cluster: Cluster, pod: PodRecord) -> int:
    """Find the priority of the highest group around a pod that exists; that of the pod if none does."""
    found, key = pod.priority, cluster.groups.find_group(pod.uid)
    for definition in _list_definitions(cluster, key):
        found = pod.priority if definition.priority is None else definition.priority
    return found


def _list_definitions(cluster: Cluster, key: GroupKey | None) -> Iterator[Definition]:
    """Yield what is said of a group and of those around it, as far as they exist."""
    for _ in range(DEPTH_MAX):
        definition = cluster.groups.find_definition(key) if key is not None else None
        if definition is None:
            break
        yield definition
        key = definition.parent


def _find_whole(cluster: Cluster, key: GroupKey | None) -> GroupKey | None:
    """Find the highest group around a group, or itself, that does not go pod by pod; None if each pod goes by itself."""
    found = None
    for definition in _list_definitions(cluster, key):
        if definition.disruption != Disruption.SINGLE:
            found = definition.key
    return found
