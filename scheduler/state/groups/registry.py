"""The groups of a cluster: their definitions, their members, and which of them have changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scheduler.api.groups.definitions import (
    Constraint,
    Definition,
    GroupKey,
    Membership,
    Part,
    Topology,
)
from scheduler.errors import Mistake
from scheduler.state.entities import Entity, Where
from scheduler.state.groups.forming import DEPTH_MAX, Member, form_entity, make_uid
from scheduler.state.groups.joint import JOINT, make_joint_key, split_joint_key
from scheduler.state.groups.levels import Topologies
from scheduler.state.pods import Life, PodRecord


class Groups:
    """Which pods are groups. One writer, like the cluster.

    A change only marks its group. ``take_changed`` then forms the entity of each marked group once, however many of its
    pods have changed.
    """

    def __init__(self, pods: Mapping[str, PodRecord], default_levels: Iterable[str]) -> None:
        """``pods`` are all pods of the cluster, by uid."""
        self._pods = pods
        self._topologies = Topologies(default_levels)
        self._definitions: dict[GroupKey, Definition] = {}
        # By kind, namespace and name of an object: the groups of which it says something.
        self._said_by: dict[tuple[str, str, str], tuple[GroupKey, ...]] = {}
        self._children: dict[GroupKey, set[GroupKey]] = {}
        self._members: dict[GroupKey, dict[str, Membership]] = {}
        self._group_of: dict[str, GroupKey] = {}
        # Pods whose bind was made, and has not come back from the watch yet.
        self._bound: set[str] = set()
        self._changed: dict[GroupKey, None] = {}
        # The roots whose entities were formed last, by a group within: a group may leave its root.
        self._root_of: dict[GroupKey, GroupKey] = {}

    # Definitions.

    def see_object(self, kind: str, namespace: str, name: str, says: Sequence[Definition]) -> None:
        """Take over what an object says of its groups; nothing of an object that is gone."""
        source = kind, namespace, name
        stays = {one.key for one in says}
        for key in self._said_by.pop(source, ()):
            if key not in stays:
                self._drop_definition(key)
        if says:
            self._said_by[source] = tuple(stays)
        for one in says:
            self._see_definition(one)

    def list_objects(self, kind: str) -> list[tuple[str, str]]:
        """List namespace and name of the objects of a kind."""
        return [(namespace, name) for of, namespace, name in self._said_by if of == kind]

    def _see_definition(self, new: Definition) -> None:
        old = self._definitions.get(new.key)
        if old == new:
            return
        self._unlink(old)
        self._definitions[new.key] = new
        if new.parent is not None:
            self._children.setdefault(new.parent, set()).add(new.key)
        self.mark(new.key)

    def _drop_definition(self, key: GroupKey) -> None:
        self._unlink(self._definitions.pop(key, None))
        self.mark(key)

    def _unlink(self, old: Definition | None) -> None:
        if old is not None and old.parent is not None:
            self._children[old.parent].discard(old.key)
            if not self._children[old.parent]:
                del self._children[old.parent]

    # Pods.

    def note_pod(self, pod: PodRecord) -> None:
        """Note a pod that was added or has changed."""
        old, says = self._group_of.get(pod.uid), pod.member
        new = None if says is None else says.group
        if old is not None and old != new:
            self.drop_pod(pod.uid)
        if says is not None:
            self._group_of[pod.uid] = says.group
            self._members.setdefault(says.group, {})[pod.uid] = says
            self._bound.discard(pod.uid)
            self.mark(says.group)

    def drop_pod(self, uid: str) -> None:
        """Forget a pod that is gone or is no member any more."""
        key = self._group_of.pop(uid, None)
        if key is not None:
            self._bound.discard(uid)
            del self._members[key][uid]
            if not self._members[key]:
                del self._members[key]
            self.mark(key)

    def note_bind(self, uid: str) -> None:
        """Note that the bind of a pod was made; the watch will say so, too."""
        if (key := self._group_of.get(uid)) is not None:
            self._bound.add(uid)
            self.mark(key)

    def find_group(self, uid: str) -> GroupKey | None:
        """Find the group of a pod; None for a pod in no group."""
        return self._group_of.get(uid)

    def mark(self, key: GroupKey) -> None:
        """Note that the entity of a group has to be formed anew."""
        self._changed[key] = None

    def mark_all(self) -> None:
        """Note that the entities of all groups have to be formed anew: a topology has changed."""
        self._changed.update(dict.fromkeys(self._members))

    def see_topology(self, kind: str, name: str, topology: Topology | None) -> None:
        """Take over a topology that was added or changed; None for one that is gone or cannot be read."""
        if self._topologies.take(kind, name, topology):
            self.mark_all()

    def list_topologies(self, kind: str) -> list[str]:
        """List the names of the topologies of a kind of objects."""
        return self._topologies.list_names(kind)

    @property
    def has_changed(self) -> bool:
        """Whether the entity of any group has to be formed anew."""
        return bool(self._changed)

    def take_changed(self) -> list[tuple[str, Entity | None]]:
        """Form the entities of all marked groups, and return them by uid; None for a group without waiting pods."""
        roots: dict[GroupKey, None] = {}
        for key in self._changed:
            # A group that has left a root leaves the root's entity smaller.
            if (before := self._root_of.pop(key, None)) is not None:
                roots[before] = None
            root = self.find_root(key)
            if root in self._members or key in self._members or root in self._children:
                self._root_of[key] = root
            roots[root] = None
        self._changed.clear()
        return [(make_uid(root), self._form(root)) for root in roots]

    def _form(self, root: GroupKey) -> Entity | None:
        # A root that has become a part of another one is no entity any more.
        return form_entity(root, self) if self.find_root(root) == root else None

    def find_root(self, key: GroupKey) -> GroupKey:
        """Find the group that is decided about as a whole, of which a group is a part."""
        for _ in range(DEPTH_MAX):
            definition = self.find_definition(key)
            if definition is None or definition.parent in (None, key):
                break
            key = definition.parent
        definition = self.find_definition(key)
        return make_joint_key(definition.together) if definition and definition.together else key

    # What forming reads.

    def find_definition(self, key: GroupKey) -> Definition | None:
        """Return what an object, or else the first of the pods, says of a group."""
        found = self._definitions.get(key)
        if found is not None:
            return found
        if key.kind == JOINT:
            return self._define_joint(key)
        members = self._members.get(key, {}).values()
        return next((one.definition for one in members if one.definition is not None), None)

    def list_children(self, key: GroupKey) -> Sequence[GroupKey]:
        """List the groups that are parts of a group, by age and name."""
        if key.kind == JOINT:
            return split_joint_key(key)
        children = self._children.get(key, ())
        return sorted(children, key=lambda one: (self._definitions[one].created, one.name))

    def _define_joint(self, key: GroupKey) -> Definition:
        """Define the group of several groups that name each other."""
        together = split_joint_key(key)
        said = {one: self.find_definition(one) for one in together}
        silent = [one for one, found in said.items() if found and found.together != together]
        problem = None
        if silent:
            text = f"{silent[0]} does not name the same groups; all groups must name all of them"
            problem = Mistake("gang groups", text)
        return Definition(key, Part("", len(together)), problem=problem)

    def list_members(self, key: GroupKey) -> list[Member]:
        """List the pods of a group that are not finished."""
        members = self._members.get(key, {}).items()
        pods, done = self._pods, self._bound
        return [
            Member(pods[uid], says, uid in done or pods[uid].life == Life.BOUND)
            for uid, says in members
            if uid in pods
        ]

    def resolve(self, constraint: Constraint) -> Where | str:
        """Return where a constraint says that pods go; a text if its topology is not there."""
        return self._topologies.resolve(constraint)
