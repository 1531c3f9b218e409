"""Which pods are in which part of a group, and by how much the pods that have succeeded make its minimum smaller."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol, TypeVar

from scheduler.api.groups.definitions import OTHERS, Definition, Membership, Part, Take
from scheduler.state.groups.successes import Success


class Speaker(Protocol):
    """A pod that says of which part of its group it is."""

    @property
    def says(self) -> Membership:
        """What it says of the group."""


T = TypeVar("T", bound=Speaker)


def split_by_part(definition: Definition, members: Iterable[T]) -> Mapping[str, list[T]]:
    """Split the pods of a group by the names of their parts; a part without pods has no entry."""
    parts = Parts(definition.root.list_leaves())
    split: dict[str, list[T]] = {}
    for one in members:
        split.setdefault(parts.find(one.says), []).append(one)
    return split


def count_successes(definition: Definition, successes: Collection[Success]) -> Mapping[str, int]:
    """Count the pods that have succeeded, by the name of their part."""
    if not successes:
        return {}
    split = split_by_part(definition, successes)
    return {name: len(those) for name, those in split.items()}


def count_done(part: Part, definition: Definition, successes: Mapping[str, int]) -> int:
    """Count the pods by which the minimum of a part is smaller, as they have succeeded."""
    n_done, spare = successes.get(part.name, 0), 0
    for one in definition.progress:
        if one.part == part.name:
            n_done, spare = max(n_done, one.succeeded), one.spare
    return max(0, n_done - spare)


class Parts:
    """Finds the parts of pods.

    Attributes:
        names: the names of the parts with pods.
        cuts: by the part that pods name: the parts that take some of them, in the order of their ranks.
    """

    def __init__(self, leaves: Iterable[Part]) -> None:
        self.names: list[str] = []
        self.cuts: dict[str, list[tuple[Take, str]]] = {}
        for leaf in leaves:
            self.names.append(leaf.name)
            for take in leaf.takes:
                self.cuts.setdefault(take.part, []).append((take, leaf.name))

    def find(self, says: Membership) -> str:
        """Find the part of a pod; in a group without parts all pods are in the one part that there is."""
        cuts = self.cuts.get(says.part, [])
        at = bisect_right(cuts, says.index, key=lambda cut: cut[0].first) - 1
        if at >= 0 and says.index < cuts[at][0].end:
            return cuts[at][1]
        if says.part in self.names and says.part not in self.cuts:
            return says.part
        return OTHERS if OTHERS in self.names else ""
