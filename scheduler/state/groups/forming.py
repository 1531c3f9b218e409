"""Makes the entity of a group from its definitions and its members."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import structs

from scheduler.api.groups import table
from scheduler.api.groups.definitions import (
    Constraint,
    Definition,
    GroupKey,
    Match,
    Part,
)
from scheduler.api.pods.templates import PodTemplate
from scheduler.errors import Mistake
from scheduler.state.entities import Entity, Team, Where, make_entity
from scheduler.state.groups.members import Member, find_minimum_of_new, find_place
from scheduler.state.groups.parts import Parts, count_done, count_successes, split_by_part
from scheduler.state.groups.successes import Success
from scheduler.state.pods import Life

# The deepest tree of groups; Kubernetes allows four levels.
DEPTH_MAX = 8
# kube-scheduler's texts.
_ALIKE = "all pods in a single pod group should have the same"
_SCHEDULER = ".spec.schedulerName set"
_PRIORITY = "priority as the pod group's priority"
_POLICY = "preemption policy as the pod group's preemption policy"


class Lore(Protocol):
    """What is known of groups: the registry."""

    def find_definition(self, key: GroupKey) -> Definition | None:
        """Return what is said of a group; None if nobody has said anything."""

    def find_root(self, key: GroupKey) -> GroupKey:
        """Find the group that is decided about as a whole, of which a group is a part."""

    def is_root(self, key: GroupKey) -> bool:
        """Whether a group is decided about as a whole."""

    def list_children(self, key: GroupKey) -> Sequence[GroupKey]:
        """List the groups that are parts of a group, in the order in which they are placed."""

    def list_members(self, key: GroupKey) -> Sequence[Member]:
        """List the pods of a group that are not finished."""

    def list_successes(self, key: GroupKey) -> Collection[Success]:
        """List the pods of a group that have succeeded."""

    def misses_finished(self, key: GroupKey) -> bool:
        """Whether a pod that has succeeded is missing like any that is gone, when its group is placed."""

    def resolve(self, constraint: Constraint) -> Where | str:
        """Return where a constraint says that pods go; a text if its topology is not there."""


def list_all_members(key: GroupKey, lore: Lore) -> list[Member]:
    """List the pods of a root group and of the groups within it that are not finished."""
    return [one for leaf in list_groups_within(key, lore) for one in lore.list_members(leaf)]


class Former:
    """Forms the entity of one root group, and notes what is missing and what is wrong on the way.

    Attributes:
        members: the pods of the group, and of the groups within it, that are not finished.
    """

    def __init__(self, key: GroupKey, lore: Lore) -> None:
        self._key, self._lore = key, lore
        self._misses_finished = self._was_cut = False
        self._definition = lore.find_definition(key)
        self._members_of = {one: lore.list_members(one) for one in list_groups_within(key, lore)}
        self.members = [one for members in self._members_of.values() for one in members]
        # A group of which a pod runs has had its minimum: a pod that comes again joins it alone.
        self._was_placed = any(one.is_kept for one in self.members)
        self._successes: dict[GroupKey, Mapping[str, int]] = {}
        self._lacks = ""
        self._problem: Mistake | None = None

    def form(self, *, was_cut: bool) -> Entity | None:
        """Form the entity; None if none of the pods waits for a node or a bind.

        ``was_cut``: if the group is below its minimum, the scheduler has failed to bind some of its pods.
        """
        if not any(one.waits for one in self.members):
            return None
        self._misses_finished, self._was_cut = self._lore.misses_finished(self._key), was_cut
        team = self._make_group_team(self._key, 0)
        in_parts = {pod.uid for leaf in team.list_leaves() for pod in leaf.pods}
        others = [one for one in self.members if one.waits and one.pod.uid not in in_parts]
        if not in_parts:
            self._note_lack(f"no pod of {self._key} is in one of its parts")
            team = self._make_leaf("", 0, self.members, None)
        elif others:
            # The group is refused for them, and they wait with it.
            if self._problem is None:
                self._note_lack(f"pod {others[0].pod.name} is in no part of {self._key}")
            team = Team(team.name, 2, teams=(team, self._make_leaf("", 0, others, None)))
        self._refuse_unlike()
        if not self._lacks and not self._problem and not team.is_complete:
            self._lacks = self._describe_missing(team)
        return make_entity(
            self._key,
            team,
            definition=self._definition,
            lacks=self._lacks,
            problem=self._problem,
            n_short=team.count_short() if self._was_placed else 0,
        )

    def count_below(self) -> int:
        """Count the pods that a running group lacks until it has its minimum; 0 for a group that does not run.

        Those that have succeeded are not missing. Of a group that goes by itself when pods are missing, KAI's, none is
        missing once one has succeeded.
        """
        is_kai = self._definition is not None and self._definition.grace_seconds is not None
        is_done = is_kai and any(map(self._lore.list_successes, self._members_of))
        if is_done or not self._was_placed:
            return 0
        self._misses_finished = self._was_cut = False
        return self._make_group_team(self._key, 0).count_below()

    def is_to_restart(self) -> bool:
        """Whether the group starts anew as a whole: its objects say it, or else owners of its pods, or else a pod."""
        groups = dict.fromkeys((self._key, *(one.says.group for one in self.members)))
        owners = dict.fromkeys(one.says.owner for one in self.members if one.says.owner is not None)
        for one in (*groups, *owners):
            definition = self._lore.find_definition(one)
            if definition is not None and definition.restarts is not None:
                return definition.restarts
        return any(one.says.restarts for one in self.members)

    def _make_group_team(self, key: GroupKey, depth: int) -> Team:
        """Make the team of a group, with the groups that are parts of it."""
        definition = self._lore.find_definition(key)
        if definition is None:
            self._note_lack(f"{key} does not exist")
        elif definition.problem is not None:
            mistake = definition.problem
            self._note_problem(Mistake(f"{key}: {mistake.field}", mistake.text))
        elif depth == 0 and definition.parent is not None:
            # Else the topmost of its parents would be the root.
            text = f"they form a circle, or are more than {DEPTH_MAX}"
            self._note_problem(Mistake(f"{key}: the groups around it", text))
        children = self._lore.list_children(key) if depth < DEPTH_MAX else ()
        if children:
            teams = tuple(self._make_group_team(child, depth + 1) for child in children)
            root = Part("", 0) if definition is None else definition.root
            return Team(key.name, root.minimum, where=self._resolve(root.constraint), teams=teams)
        members = self._members_of[key]
        if definition is None:
            return self._make_team(Part("", 0), None, {"": members})
        self._refuse_unknown_parts(key, definition, members)
        team = self._make_team(definition.root, definition, split_by_part(definition, members))
        return self._split_roles(team, members) if definition.by_role else team

    def _split_roles(self, team: Team, members: Sequence[Member]) -> Team:
        """Split a team that is complete into one for each role: a name that pods say, else pods that are alike."""
        roles: dict[str | int, list[Member]] = {}
        for one in sorted(members, key=find_place):
            if one.waits or one.is_kept:
                roles.setdefault(one.says.part or id(one.pod.template), []).append(one)
        n_members = sum(len(role) for role in roles.values())
        if len(roles) < 2 or n_members < team.minimum:
            return team
        # Kueue takes roles by their names.
        order = sorted(roles.items(), key=lambda role: role[0] if isinstance(role[0], str) else "")
        teams = [
            self._make_leaf(f"{i}", len(role) if team.minimum else 0, role, None)
            for i, (_, role) in enumerate(order)
        ]
        return Team(team.name, len(teams), teams=tuple(teams))

    def _make_team(
        self, part: Part, definition: Definition | None, members: Mapping[str, Sequence[Member]]
    ) -> Team:
        """Make the team of a part of a group from the members of the group by their parts."""
        if part.parts:
            teams = tuple(self._make_team(one, definition, members) for one in part.parts)
            return Team(part.name, part.minimum, where=self._resolve(part.constraint), teams=teams)
        mine = members.get(part.name, ())
        n_there = sum(one.is_kept for one in mine)
        n_done = 0
        if definition is not None and not self._misses_finished:
            n_done = count_done(part, definition, self._find_successes(definition))
        minimum = self._find_minimum(part, definition, mine, n_done)
        team = self._make_leaf(part.name, minimum, mine, part.constraint)
        is_gang = definition is not None and definition.is_gang
        n_short = max(0, part.minimum - n_done - n_there) if is_gang else 0
        return structs.replace(team, n_short=n_short, n_done=n_done)

    def _make_leaf(
        self, name: str, minimum: int, members: Sequence[Member], constraint: Constraint | None
    ) -> Team:
        """Make the team of some pods; they say where they go unless something else does."""
        waiting = sorted((one for one in members if one.waits), key=find_place)
        there = tuple(one.pod for one in members if one.is_kept)
        own = next((one.says.constraint for one in waiting if one.says.constraint), None)
        return Team(
            name=name,
            minimum=minimum,
            pods=tuple(one.pod for one in waiting),
            there=there,
            ranks=tuple(one.says.index for one in waiting),
            template=_find_template(waiting),
            where=self._resolve(constraint or own),
            n_short=max(0, minimum - len(there)),
        )

    def _find_minimum(
        self, part: Part, definition: Definition | None, mine: Sequence[Member], n_done: int
    ) -> int:
        """Find how many pods of a part, with those that are there, must have a node at once."""
        if definition is None or not definition.is_gang:
            return 0
        if definition.match == Match.ONCE and (self._was_placed or self._stays_placed(definition)):
            return 0
        if definition.match == Match.WAITING:
            return find_minimum_of_new(mine, part.minimum, was_cut=self._was_cut)
        return max(0, part.minimum - n_done)

    def _find_successes(self, definition: Definition) -> Mapping[str, int]:
        """Count the pods of each part of a group that have succeeded; once, as there may be many."""
        key = definition.key
        if key not in self._successes:
            self._successes[key] = count_successes(definition, self._lore.list_successes(key))
        return self._successes[key]

    def _stays_placed(self, definition: Definition) -> bool:
        """Whether a group of which no pod runs any more is still one that was placed."""
        return definition.stays_placed and bool(self._lore.list_successes(definition.key))

    def _resolve(self, constraint: Constraint | None) -> Where | None:
        if constraint is None:
            return None
        found = self._lore.resolve(constraint)
        if isinstance(found, str):
            self._note_lack(found)
            return None
        return found

    def _note_lack(self, text: str) -> None:
        self._lacks = self._lacks or text

    def _note_problem(self, problem: Mistake) -> None:
        self._problem = self._problem or problem

    def _refuse_unknown_parts(
        self, key: GroupKey, definition: Definition, members: Sequence[Member]
    ) -> None:
        """Refuse a group one of whose pods names a part that the group has not."""
        parts = Parts(definition.root.list_leaves())
        if "" in parts.names:
            return
        for one in members:
            if one.waits and not parts.find(one.says):
                said = f'"{one.says.part}"' if one.says.part else "no part"
                if parts.cuts.get(one.says.part):
                    said += (
                        f", and its rank is {one.says.index}"
                        if one.says.index >= 0
                        else ", and has no rank"
                    )
                known = ", ".join(parts.names)
                text = f"pod {one.pod.name} names {said}; the parts of {key} are {known}"
                self._note_problem(Mistake("", text))

    def _refuse_unlike(self) -> None:
        """Refuse a group whose pods have different schedulers or priorities; the texts are those of Kubernetes 1.37."""
        for one in self.members:
            if one.says.problem is not None and one.waits:
                mistake = one.says.problem
                self._note_problem(Mistake(f"pod {one.pod.name}: {mistake.field}", mistake.text))
        said: dict[GroupKey, Definition] = {}
        for one in self.members:
            definition = one.says.definition
            if definition is not None and said.setdefault(one.says.group, definition) != definition:
                self._note_problem(_describe_difference(one.says.group, self.members))
        if self._are_alike():
            return
        # Those that wait come first, in the order in which they are placed.
        members = sorted(self.members, key=lambda one: (not one.waits, *find_place(one)))
        wanted = self._definition.priority if self._definition else None
        wanted = members[0].pod.priority if wanted is None else wanted
        preempts = self._definition.preempts if self._definition else None
        for one in members:
            for text, got, first in (
                (_SCHEDULER, f'"{one.says.scheduler}"', f'"{members[0].says.scheduler}"'),
                (_PRIORITY, one.pod.priority, wanted),
                (_POLICY, _name_policy(one.pod.preempts), _name_policy(preempts)),
            ):
                if got != first and not (text == _POLICY and preempts is None):
                    self._note_problem(
                        Mistake(
                            "",
                            f"{_ALIKE} {text}, got{':' * (text == _SCHEDULER)} {got} and {first}",
                        )
                    )

    def _are_alike(self) -> bool:
        """Whether all pods have the scheduler, the priority and the policy that the group has, if it has any."""
        says = self._definition
        priorities = {one.pod.priority for one in self.members}
        if says is not None and says.priority is not None:
            priorities.add(says.priority)
        policies = {True}
        if says is not None and says.preempts is not None:
            policies = {says.preempts, *(one.pod.preempts for one in self.members)}
        schedulers = {one.says.scheduler for one in self.members}
        return len(schedulers) == len(priorities) == len(policies) == 1

    def _describe_missing(self, team: Team) -> str:
        """Say how many pods of which team, and of which group within the group, are missing."""
        children = self._lore.list_children(self._key)
        groups = zip(children, team.teams, strict=True) if children else ((None, team),)
        parts = []
        if len(team.teams) < team.minimum and team.teams:
            parts.append(f"{team.minimum} groups, and {len(team.teams)} exist")
        for group, inner in groups:
            definition = self._definition if group is None else self._lore.find_definition(group)
            counts_new = definition is not None and definition.match == Match.WAITING
            for one in (leaf for leaf in inner.list_leaves() if not leaf.is_complete):
                name = f' of part "{one.name}"' * bool(one.name) + f" of {group}" * bool(group)
                n_there = len(one.there) + sum(pod.life == Life.ASSUMED for pod in one.pods)
                more, n = "more " * bool(one.n_done), len(one.pods) + len(one.there)
                if counts_new and n_there:
                    least, n = one.minimum - n_there, n - n_there
                    parts.append(f"{least} pods{name} beside those on nodes, and {n} exist")
                else:
                    parts.append(f"{one.minimum} {more}pods{name}, and {n} exist")
        return f"{self._key} needs {'; '.join(parts)}"


def list_groups_within(key: GroupKey, lore: Lore, depth: int = 0) -> Iterator[GroupKey]:
    """List a group and the groups within it."""
    yield key
    if depth < DEPTH_MAX:
        for child in lore.list_children(key):
            yield from list_groups_within(child, lore, depth + 1)


def _find_template(members: Sequence[Member]) -> PodTemplate | None:
    """Find the template of pods that are alike; None if they differ."""
    found = {id(one.pod.template) for one in members}
    return members[0].pod.template if len(found) == 1 else None


def _describe_difference(group: GroupKey, members: Sequence[Member]) -> Mistake:
    """Name two pods that say different things of their group, and the annotation."""
    said = [
        (one.pod.name, one.says.definition)
        for one in sorted(members, key=lambda one: one.pod.name)
        if one.says.group == group and one.says.definition is not None
    ]
    (first, one), *others = said
    second, other = next(pair for pair in others if pair[1] != one)
    field = f"{group}: {table.name_difference(one, other)}"
    return Mistake(field, f"pod {first} and pod {second} say different things")


def _name_policy(preempts: bool | None) -> str:
    return "Never" if preempts is False else "PreemptLowerPriority"
