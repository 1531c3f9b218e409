"""The pods of a group that are on nodes: who of them is the minimum, and who only goes with the whole group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from scheduler.api.groups.definitions import Definition, Disruption, GroupKey
from scheduler.state.groups.forming import Lore
from scheduler.state.groups.members import find_place
from scheduler.state.groups.parts import Parts, count_done, count_successes
from scheduler.state.pods import PodRecord

# Of each team of a group: its minimum, and its pods on nodes.
Running = list[tuple[int, list[PodRecord]]]


class Split(NamedTuple):
    """The pods on nodes of a root group that does not go pod by pod.

    Attributes:
        core: the pods that go together or stay together, by name.
        extras: those beyond the minimum, of which any may go by itself.
    """

    core: tuple[PodRecord, ...]
    extras: tuple[PodRecord, ...]


def list_running(groups: Iterable[GroupKey], lore: Lore) -> Running:
    """List the minimum and the pods on nodes of each team of some groups, the pods to keep first.

    Those that are being evicted come last: others are the minimum, if there are enough.
    """
    found = []
    for group in groups:
        definition = lore.find_definition(group)
        there = sorted(
            (one for one in lore.list_members(group) if one.is_there),
            key=lambda one: (one.is_leaving, *find_place(one)),
        )
        if definition is None or not there:
            continue
        leaves = list(definition.root.list_leaves())
        parts = Parts(leaves)
        successes = count_successes(definition, lore.list_successes(group))
        for leaf in leaves:
            pods = [
                one.pod
                for one in there
                # All pods are in the one part that there is.
                if len(leaves) == 1 or parts.find(one.says) == leaf.name
            ]
            least = leaf.minimum - count_done(leaf, definition, successes)
            found.append((max(0, least) if definition.is_gang else 0, pods))
    return found


def goes_pod_by_pod(definition: Definition | None) -> bool:
    """Whether each pod of a group goes by itself."""
    return definition is None or definition.disruption == Disruption.SINGLE


def split_pods(definition: Definition | None, found: Running) -> Split | None:
    """Split the pods on nodes of a root group, each team with those to keep first; None if each goes by itself."""
    if not found or definition is None or goes_pod_by_pod(definition):
        return None
    core: list[PodRecord] = []
    extras: list[PodRecord] = []
    for minimum, there in found:
        kept = minimum if definition.disruption == Disruption.EXTRAS else len(there)
        core += there[:kept]
        extras += there[kept:]
    return Split(tuple(sorted(core, key=lambda pod: pod.key)), tuple(extras))


def list_kept(split: Split | None) -> frozenset[str]:
    """List the pods of a root group that go with the whole group or not at all."""
    # One pod is whole by itself.
    return (
        frozenset(pod.uid for pod in split.core) if split and len(split.core) > 1 else frozenset()
    )
