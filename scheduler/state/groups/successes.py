"""Members of groups that have succeeded: they have no node any more, and are not missing.

Such a pod counts as long as its object is there. If somebody cleans up while the group goes on, it counts until the group
has no other pod, for what it did is done. It does not count once a pod in its place has come, which does the work anew.

Only pods make others count: what a tenant writes helps groups of his own namespace alone. Of the pods without an object a
namespace has so many at most that nobody can fill the memory.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator
from typing import NamedTuple

from scheduler.api.groups.definitions import GroupKey, Membership

# So many deleted pods of a namespace are remembered; the ones that were deleted first are forgotten first.
DELETED_MAX = 10_000
# A group with a name of a pod, or with a part and a rank.
_Place = tuple[GroupKey, str, int | None]


class Success(NamedTuple):
    """A pod that has succeeded.

    Attributes:
        says: its group, its part and its rank, and its scheduler; nothing else.
        is_deleted: its object is gone.
    """

    uid: str
    name: str
    says: Membership
    is_deleted: bool = False


class Successes:
    """The members that have succeeded, by group."""

    def __init__(self) -> None:
        self._of_group: dict[GroupKey, dict[str, Success]] = {}
        self._group_of: dict[str, GroupKey] = {}
        # The newest pod of each name, and of each rank of a part.
        self._at: dict[_Place, str] = {}
        # By namespace: the pods whose objects are gone, in the order in which they went.
        self._deleted: dict[str, dict[str, None]] = {}

    def __contains__(self, uid: object) -> bool:
        return uid in self._group_of

    def put(self, one: Success) -> None:
        """Remember a pod."""
        self.drop(one.uid)
        group = one.says.group
        self._of_group.setdefault(group, {})[one.uid] = one
        self._group_of[one.uid] = group
        for place in _list_places(one.name, one.says):
            self._at[place] = one.uid
        if one.is_deleted:
            deleted = self._deleted.setdefault(group.namespace, {})
            deleted[one.uid] = None
            if len(deleted) > DELETED_MAX:
                self.drop(next(iter(deleted)))

    def drop(self, uid: str) -> GroupKey | None:
        """Forget a pod, and return its group; None for a pod that is not remembered."""
        group = self._group_of.pop(uid, None)
        if group is None:
            return None
        one = self._of_group[group].pop(uid)
        if not self._of_group[group]:
            del self._of_group[group]
        for place in _list_places(one.name, one.says):
            if self._at.get(place) == uid:
                del self._at[place]
        if one.is_deleted:
            deleted = self._deleted[group.namespace]
            del deleted[uid]
            if not deleted:
                del self._deleted[group.namespace]
        return group

    def note_deleted(self, uid: str) -> GroupKey | None:
        """Note that the object of a pod is gone, and return its group; None for a pod that is not remembered."""
        group = self._group_of.get(uid)
        if group is not None:
            self.put(self._of_group[group][uid]._replace(is_deleted=True))
        return group

    def forget_deleted(self, group: GroupKey) -> None:
        """Forget the pods of a group without other pods, unless the object of one of them is there."""
        found = self.list_of(group)
        if all(one.is_deleted for one in found):
            self.forget_group(group)

    def forget_group(self, group: GroupKey) -> None:
        """Forget the pods of a group."""
        for uid in [one.uid for one in self.list_of(group)]:
            self.drop(uid)

    def replace(self, name: str, says: Membership) -> None:
        """Forget the pods in whose place a pod has come: those of its name, and those of its rank in its part."""
        for place in _list_places(name, says):
            if place in self._at:
                self.drop(self._at[place])

    def list_of(self, group: GroupKey) -> Collection[Success]:
        """List the pods of a group."""
        return self._of_group.get(group, {}).values()

    def list_all(self) -> Iterator[Success]:
        """Yield all pods, the deleted ones of a namespace in the order in which they went."""
        for group in self._of_group.values():
            yield from (one for one in group.values() if not one.is_deleted)
        for deleted in self._deleted.values():
            yield from (self._of_group[self._group_of[uid]][uid] for uid in deleted)

    def list_missing(self, present: Container[str], scheduler: str) -> list[str]:
        """List the uids of a scheduler's pods that have objects and are not among those present."""
        return [
            one.uid
            for one in self.list_all()
            if not one.is_deleted and one.says.scheduler == scheduler and one.uid not in present
        ]


def _list_places(name: str, says: Membership) -> list[_Place]:
    """List what two pods of which one does the work of the other have in common: the name, or the rank in the part."""
    by_name: list[_Place] = [(says.group, name, None)]
    return by_name if says.index < 0 else [*by_name, (says.group, says.part, says.index)]
