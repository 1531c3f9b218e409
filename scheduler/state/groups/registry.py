"""The groups of a cluster: what is said of them, which pods are in them, and which have changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence

from msgspec import structs

from scheduler.api.groups import table
from scheduler.api.groups.definitions import (
    Constraint,
    Definition,
    GroupKey,
    Match,
    Membership,
    Topology,
)
from scheduler.api.groups.readers import kubernetes
from scheduler.api.groups.table import GroupSource
from scheduler.state.entities import Entity, Where, make_uid
from scheduler.state.groups.awaited import Awaited
from scheduler.state.groups.forming import DEPTH_MAX, Former, list_all_members, list_groups_within
from scheduler.state.groups.index import Index, list_below
from scheduler.state.groups.joint import Joints, define_joint
from scheduler.state.groups.kept import Kept, Pods
from scheduler.state.groups.levels import Topologies
from scheduler.state.groups.members import Member
from scheduler.state.groups.shortages import Shortages
from scheduler.state.groups.sources import Sources
from scheduler.state.groups.successes import Success, Successes
from scheduler.state.pods import Life, PodRecord
from scheduler.state.structures.changes import Log

_KUBERNETES = (kubernetes.KIND, kubernetes.COMPOSITE_KIND)


class Groups:
    """Which pods are groups. One writer, like the cluster.

    A change only marks its group. ``take_changed`` then forms the entity of each marked group once, however many of its
    pods have changed.

    Attributes:
        shortages: running groups that are below their minimum.
        changes: the groups whose pods or objects have changed.
        successes: pods of groups that have succeeded.
        awaited: pods whose owner is not known yet.
    """

    def __init__(
        self,
        known: Pods,
        default_levels: Iterable[str],
        get_going: Callable[[], Container[str]],
        has_label: Callable[[str], bool],
        tell_time: Callable[[], float],
        by_kube: Collection[str] = (),
    ) -> None:
        """Know no group yet.

        Args:
            known: the pods of the cluster.
            default_levels: the labels of levels, the widest first.
            get_going: returns the pods that are being evicted, although the API server may not say so yet.
            has_label: whether any node has a label.
            tell_time: returns the present time, in seconds.
            by_kube: the schedulers whose pods are placed by kube-scheduler's rules.
        """
        self._by_kube = by_kube
        self._pods, self._get_going = known.pods, get_going
        self._topologies = Topologies(default_levels, has_label)
        self._sources = Sources()
        self._joints = Joints()
        # Groups by the group of which they are parts.
        self._children: Index[GroupKey, GroupKey] = Index()
        self._members: dict[GroupKey, dict[str, Membership]] = {}
        self._group_of: dict[str, GroupKey] = {}
        # By the word by which pods say that they belong near each other.
        self._company: Index[str, str] = Index()
        # By the key of an owner, which may ask that they be a group, or say how their group is treated.
        self._owners: Index[str, GroupKey] = Index()
        # Pods whose bind was made, and has not come back from the watch yet.
        self._bound: set[str] = set()
        self._changed: dict[GroupKey, None] = {}
        self._left: dict[str, None] = {}
        self.shortages = Shortages(tell_time)
        self.successes = Successes()
        self.awaited = Awaited()
        self._kept = Kept(known)
        self.changes: Log[GroupKey] = Log()
        # The roots whose entities were formed last, by a group within: a group may leave its root.
        self._root_of: dict[GroupKey, GroupKey] = {}

    # Objects.

    def see_object(self, found: GroupSource) -> None:
        """Take over an object that was added or changed."""
        uid = self._sources.find_uid(found)
        key = self._sources.see(found)
        if key is not None and uid not in {"", found.metadata.uid}:
            self.successes.forget_group(key)
        self._apply(key)

    def drop_object(self, kind: str, namespace: str, name: str) -> None:
        """Forget an object that is gone, and what its pods have done."""
        key = self._sources.drop(kind, namespace, name)
        if key is not None:
            self.successes.forget_group(key)
        self._apply(key)

    def list_objects(self, kind: str) -> list[tuple[str, str]]:
        """List namespace and name of the objects of a kind."""
        return self._sources.list_names(kind)

    def _apply(self, key: GroupKey | None) -> None:
        """Note that what an object says of a group, or of all groups that it stands for, has changed."""
        if key is None:
            return
        for uid in tuple(self._owners.list_of(key)):
            self.note_pod(self._pods[uid])
        definition, before = self._sources.define(key), self._children.find(key)
        self._children.put(key, None if definition is None else definition.parent)
        self._mark(key)
        if self._children.find(key) != before:
            # The group that it was in has a part less, and the groups within it have another root.
            for one in (*([before] if before else ()), *list_below(self._children, key)):
                self._mark(one)
        for group in self._sources.list_groups(key):
            self._mark(group)

    def see_topology(self, kind: str, name: str, topology: Topology | None) -> None:
        """Take over a topology that was added or changed; None for one that is gone or cannot be read."""
        if self._topologies.take(kind, name, topology):
            self._changed.update(dict.fromkeys(self._members))

    def note_label_keys(self) -> None:
        """Note that a label came to the first node, or left the last one: the cluster may have other levels."""
        if self._topologies.follow_levels():
            self._changed.update(dict.fromkeys(self._members))

    def list_topologies(self, kind: str) -> list[str]:
        """List the names of the topologies of a kind of objects."""
        return self._topologies.list_names(kind)

    # Pods.

    def note_pod(self, pod: PodRecord) -> None:
        """Note a pod that was added or has changed."""
        uid, says = pod.uid, pod.member
        owner = table.find_object(pod.owned.group) if pod.owned is not None else None
        self._owners.put(uid, says.owner if says is not None else owner)
        if says is None and owner is not None:
            says = pod.owned if self._is_asked(pod, owner) else None
        old, new = self._group_of.get(uid), None if says is None else says.group
        if old is not None and old != new:
            self._leave(uid)
            self._left[uid] = None
        if says is not None:
            self._company.put(uid, says.company or None)
            self._group_of[uid] = says.group
            self._members.setdefault(says.group, {})[uid] = says
            self._bound.discard(uid)
            if old != new:
                self.successes.replace(pod.name, says)
            self._sources.note_group(says.group)
            self._mark(says.group)

    def _is_asked(self, pod: PodRecord, owner: GroupKey) -> bool:
        """Whether an owner asks that its pods be a group, or may do so once it is seen."""
        if not self._sources.has_object(owner):
            return self.awaited.waits(pod, owner.kind.partition(".")[0])
        self.awaited.drop(pod.uid)
        return self._sources.is_asked(owner)

    def give_up_owner(self, uid: str) -> None:
        """Let a pod go alone whose owner has not been seen."""
        self.awaited.give_up(uid)
        self.note_pod(self._pods[uid])

    def drop_pod(self, pod: PodRecord) -> None:
        """Forget a pod that is gone."""
        self.awaited.drop(pod.uid)
        self._owners.put(pod.uid, None)
        self._leave(pod.uid)

    def note_success(
        self, uid: str, name: str, says: Membership, *, is_deleted: bool = False
    ) -> None:
        """Note that a pod has succeeded, before it is dropped."""
        self.successes.put(Success(uid, name, says, is_deleted))
        self._mark(says.group)

    def note_deleted(self, uid: str) -> None:
        """Note that the object of a pod is gone, which may have succeeded."""
        group = self.successes.note_deleted(uid)
        if group is not None and group not in self._members:
            self.successes.forget_deleted(group)

    def _leave(self, uid: str) -> None:
        key = self._group_of.pop(uid, None)
        if key is not None:
            self._bound.discard(uid)
            self._company.put(uid, None)
            del self._members[key][uid]
            if not self._members[key]:
                del self._members[key]
                self._sources.forget_group(key)
                self.successes.forget_deleted(key)
            self._mark(key)

    def list_company(self, word: str) -> Iterable[str]:
        """List the pods that say by this word that they belong near each other."""
        return self._company.list_of(word)

    def note_failed_bind(self, uid: str) -> None:
        """Note that the bind of a pod has failed."""
        if (group := self._group_of.get(uid)) is not None:
            self.shortages.urgency.note_cut(self.find_root(group))

    def note_bind(self, uid: str) -> None:
        """Note that the bind of a pod was made; the watch will say so, too."""
        if (key := self._group_of.get(uid)) is not None:
            self._bound.add(uid)
            self._mark(key)

    def note_assumed(self, uids: Iterable[str]) -> None:
        """Note that pods were decided to be on nodes: from then on they go and stay with their groups."""
        for key in dict.fromkeys(self._group_of.get(uid) for uid in uids):
            if key is None:
                continue
            self._kept.mark(key)
            self.changes.add(key)
            definition = self.find_definition(key)
            if definition is not None and definition.match == Match.WAITING:
                # How many of the others have to come at once depends on it.
                self._changed[key] = None

    def note_leaving(self, uids: Iterable[str]) -> None:
        """Note that pods are being evicted, or stay after all."""
        for key in dict.fromkeys(self._group_of.get(uid) for uid in uids):
            if key is not None:
                self._mark(key)

    def find_group(self, uid: str) -> GroupKey | None:
        """Find the group of a pod; None for a pod in no group."""
        return self._group_of.get(uid)

    def find_owner(self, uid: str) -> GroupKey | None:
        """Find the object that owns a pod and may say something of it; None if there is none."""
        return self._owners.find(uid)

    @property
    def have_pods(self) -> bool:
        """Whether any pod is in a group."""
        return bool(self._members)

    def list_roots(self) -> dict[GroupKey, GroupKey]:
        """List the groups that have pods and the groups above them, each with the group that is decided about."""
        roots = {key: self.find_root(key) for key in self._members}
        return roots | {root: root for root in roots.values()}

    def list_pods(self, root: GroupKey) -> list[PodRecord]:
        """List the pods of a root group that are not finished."""
        return [one.pod for one in list_all_members(root, self)]

    @property
    def default_labels(self) -> tuple[str, ...]:
        """The labels of the levels that the configuration names, the widest first."""
        return self._topologies.default_labels

    # Entities.

    @property
    def has_changed(self) -> bool:
        """Whether the entity of any group has to be formed anew."""
        return bool(self._changed)

    def take_changed(self) -> Iterator[tuple[str, Entity | None]]:
        """Form the entities of all marked groups, and yield them with their uids; None for a group without waiting pods."""
        roots: dict[GroupKey, None] = {}
        for key in self._changed:
            # A group that has left a root leaves the root's entity smaller.
            if (before := self._root_of.pop(key, None)) is not None:
                roots[before] = None
            root = self.find_root(key)
            if key in self._members:
                self._root_of[key] = root
            roots[root] = None
            if not (
                key in self._members or self._children.list_of(key) or self._sources.define(key)
            ):
                self._kept.forget_unknown(key)
        self._changed.clear()
        for root in roots:
            yield make_uid(root), self._form(root)

    def take_left(self) -> list[str]:
        """List the pods that have left a group since the last call, and are now in no group."""
        left = [uid for uid in self._left if uid not in self._group_of]
        self._left.clear()
        return left

    def _mark(self, key: GroupKey) -> None:
        self._changed[key] = None
        self._kept.mark(key)
        self.changes.add(key)

    def _form(self, root: GroupKey) -> Entity | None:
        is_root = self.is_root(root)
        was_cut = self.shortages.urgency.was_cut(root)
        former = Former(root, self)
        entity = former.form(was_cut=was_cut) if is_root else None
        self.shortages.note_group(root, entity, former, is_root=is_root)
        if not former.members and root not in self.shortages.below:
            self._joints.forget(root)
        if entity is not None and entity.n_short and not self.shortages.urgency.is_urgent(root):
            return structs.replace(entity, is_urgent=False)
        return entity

    def find_root(self, key: GroupKey) -> GroupKey:
        """Find the group that is decided about as a whole, of which a group is a part.

        A group whose parents form a circle, or that has too many, is decided about, and refused, by itself.
        """
        root, definition = key, self.find_definition(key)
        for _ in range(DEPTH_MAX + 1):
            if definition is None or definition.parent is None:
                break
            root = definition.parent
            definition = self.find_definition(root)
        else:
            return key
        together = definition.together if definition is not None else ()
        return self._joints.join(together) if together else root

    def is_root(self, key: GroupKey) -> bool:
        """Whether a group is decided about as a whole; not if it has become a part, or its parts name it no more."""
        parts = self._joints.find_parts(key)
        return any(self.find_root(one) == key for one in parts or (key,))

    # What forming reads.

    def find_definition(self, key: GroupKey) -> Definition | None:
        """Return what an object, or else the first of the pods, says of a group."""
        if parts := self._joints.find_parts(key):
            return define_joint(key, {one: self.find_definition(one) for one in parts})
        if (found := self._sources.define(key)) is not None:
            return found
        for one in self._members.get(key, {}).values():
            if one.definition is not None:
                return one.definition
        return None

    def list_children(self, key: GroupKey) -> Sequence[GroupKey]:
        """List the groups that are parts of a group, by age and name."""
        if parts := self._joints.find_parts(key):
            # The pods of a group that does not name the others are not theirs, whoever names it.
            return [one for one in parts if self.find_root(one) == key or one not in self._members]
        # A group that is refused by itself, see ``find_root``, is a part of none.
        children = (one for one in self._children.list_of(key) if self.find_root(one) != one)
        return sorted(children, key=self._sources.find_age)

    def list_members(self, key: GroupKey) -> list[Member]:
        """List the pods of a group that are not finished."""
        pods, done, going = self._pods, self._bound, self._get_going()
        return [
            Member(pod, says, uid in done or pod.life == Life.BOUND, uid in going)
            for uid, says in self._members.get(key, {}).items()
            if (pod := pods.get(uid)) is not None
        ]

    def list_objects_of(self, root: GroupKey) -> list[GroupSource]:
        """List the objects of a group and of the groups within it."""
        found = map(self._sources.find_object, list_groups_within(root, self))
        return [one for one in found if one is not None]

    def list_successes(self, key: GroupKey) -> Collection[Success]:
        """List the pods of a group that have succeeded."""
        return self.successes.list_of(key)

    def misses_finished(self, key: GroupKey) -> bool:
        """Whether a pod that has succeeded is missing like any that is gone, when its group is placed.

        In kube-scheduler it is: it does not watch finished pods.
        """
        if key.kind not in _KUBERNETES or not self._by_kube:
            return False
        return any(one.says.scheduler in self._by_kube for one in list_all_members(key, self))

    @property
    def kept(self) -> Kept:
        """The pods on nodes that only go with the whole of their group."""
        self._kept.refresh(self)
        return self._kept

    def resolve(self, constraint: Constraint) -> Where | str:
        """Return where a constraint says that pods go; a text if its topology is not there."""
        return self._topologies.resolve(constraint)
