"""The pods on nodes that only go with the whole of their group."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.api.groups.definitions import GroupKey


class Kept:
    """By group: the uids of the pods that do not go by themselves.

    Attributes:
        uids: the pods that are kept.
        version: rises whenever other pods are kept.
    """

    def __init__(self) -> None:
        self._of_group: dict[GroupKey, frozenset[str]] = {}
        self.uids: set[str] = set()
        self.version = 0

    def put(self, group: GroupKey, uids: Iterable[str]) -> None:
        """Take over which pods a group keeps now."""
        old, new = self._of_group.get(group, frozenset()), frozenset(uids)
        if old == new:
            return
        self.version += 1
        if new:
            self._of_group[group] = new
        else:
            del self._of_group[group]
        self.uids -= old - new
        self.uids |= new
