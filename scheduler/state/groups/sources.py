"""The objects that stand for groups, and what they say."""

from __future__ import annotations

from scheduler.api import kinds
from scheduler.api.groups import objects, table
from scheduler.api.groups.definitions import Definition, GroupKey
from scheduler.api.groups.table import GroupSource

# These objects make another one, which stands for the group.
_ASKERS = objects.TrainJob, objects.RayJob, objects.RayService
_ASKING = frozenset(one.__name__ for one in _ASKERS)


class Sources:
    """The objects that stand for groups, by the key of the group, or of all their groups.

    A LeaderWorkerSet stands for a group for each replica. A TrainJob, a RayJob and a RayService ask for the group of
    an object that is made of them.
    """

    def __init__(self) -> None:
        self._objects: dict[GroupKey, GroupSource] = {}
        self._askers: dict[GroupKey, GroupSource] = {}
        # By kind, namespace and name of an object: the key under which it is.
        self._key_of: dict[tuple[str, str, str], GroupKey] = {}
        self._defined: dict[GroupKey, Definition] = {}
        # By the key of an object: the groups that have pods.
        self._groups: dict[GroupKey, dict[GroupKey, None]] = {}

    def see(self, found: GroupSource) -> GroupKey | None:
        """Take over an object; return the key of its group, or of all its groups; None if nobody knows it yet."""
        meta, kind = found.metadata, kinds.read_kind_name(found)
        source = kind, meta.namespace, meta.name
        key = table.find_group(found)
        before = self._key_of.pop(source, None)
        if before is not None and before != key:
            self._pop(kind, before)
        if key is None:
            return before
        self._key_of[source] = key
        if isinstance(found, _ASKERS):
            self._askers[key] = found
        else:
            self._objects[key] = found
        self._forget(key)
        return key

    def find_uid(self, found: GroupSource) -> str:
        """Find the uid that the object of this kind and name had when it was seen last; empty for none."""
        meta = found.metadata
        key = self._key_of.get((kinds.read_kind_name(found), meta.namespace, meta.name))
        known = self._askers if isinstance(found, _ASKERS) else self._objects
        before = None if key is None else known.get(key)
        return "" if before is None else before.metadata.uid

    def drop(self, kind: str, namespace: str, name: str) -> GroupKey | None:
        """Forget an object that is gone; return the key of its group."""
        key = self._key_of.pop((kind, namespace, name), None)
        if key is not None:
            self._pop(kind, key)
        return key

    def _pop(self, kind: str, key: GroupKey) -> None:
        (self._askers if kind in _ASKING else self._objects).pop(key, None)
        self._forget(key)

    def _forget(self, key: GroupKey) -> None:
        """Forget what an object said of its groups."""
        self._defined.pop(key, None)
        for group in self._groups.get(key, ()):
            self._defined.pop(group, None)

    def list_names(self, kind: str) -> list[tuple[str, str]]:
        """List namespace and name of the objects of a kind."""
        return [(namespace, name) for of, namespace, name in self._key_of if of == kind]

    def is_asked(self, key: GroupKey) -> bool:
        """Whether an owner, or the object that it is made of, asks that its pods be a group."""
        both = self._objects.get(key), self._askers.get(key)
        return any(one is not None and table.is_gang_asked(one) for one in both)

    def has_object(self, key: GroupKey) -> bool:
        """Whether the object that stands for a group, or asks for it, is known."""
        return key in self._objects or key in self._askers

    def find_age(self, key: GroupKey) -> tuple[str, str]:
        """Find the place of a group among those that are parts of one: by the time of its creation, then by its name."""
        definition = self.define(key)
        return definition.created if definition is not None else "", key.name

    def define(self, group: GroupKey) -> Definition | None:
        """Return what the object of a group says of it; None if there is no object."""
        known = self._defined.get(group)
        if known is not None:
            return known
        key = table.find_object(group)
        found = self._objects.get(key)
        if found is None:
            return None
        definition = table.read_definition(found, group, self._askers.get(key))
        self._defined[group] = definition
        return definition

    def find_object(self, group: GroupKey) -> GroupSource | None:
        """Find the object that stands for a group; None if there is none."""
        return self._objects.get(table.find_object(group))

    def note_group(self, group: GroupKey) -> None:
        """Note that a group has pods."""
        self._groups.setdefault(table.find_object(group), {})[group] = None

    def forget_group(self, group: GroupKey) -> None:
        """Note that a group has no pods any more."""
        key = table.find_object(group)
        there = self._groups.get(key, {})
        there.pop(group, None)
        if not there:
            self._groups.pop(key, None)
        if group != key:
            self._defined.pop(group, None)

    def list_groups(self, key: GroupKey) -> list[GroupKey]:
        """List the groups with pods for which an object stands."""
        return list(self._groups.get(key, ()))
