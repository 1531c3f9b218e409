"""Entities: a pod, or a group of pods of which either enough are placed at once or none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from scheduler.api.groups.definitions import Definition, GroupKey, Rule
from scheduler.api.pods.templates import PodTemplate
from scheduler.errors import Mistake
from scheduler.state.pods import Life, PodRecord


class Where(msgspec.Struct, frozen=True):
    """Where in a topology the pods of a team go; a level is its place in ``labels``.

    Attributes:
        rule: by whose rules the domain is chosen.
        labels: the node labels of the levels, the widest level first.
        required: the level of which all pods share a domain; -1: of none.
        preferred: the levels of which a shared domain is wished for, the most wished for first.
        spreads_freely: any nodes will do, but the fewest domains are wished for.
        slices: (level, size) pairs: so many pods in a row share a domain of the level; the outermost first.
    """

    rule: Rule
    labels: tuple[str, ...]
    required: int = -1
    preferred: tuple[int, ...] = ()
    spreads_freely: bool = False
    slices: tuple[tuple[int, int], ...] = ()


class Team(msgspec.Struct, frozen=True):
    """A part of a group, with its pods or with teams.

    Attributes:
        name: the name of the part.
        minimum: how many of its pods, or of its teams, must be placed at once; pods that are there count.
        pods: its pods without a node and those whose bind is under way, in the order in which they are placed.
        there: its pods that are bound to nodes and count.
        ranks: the rank of each of its pods; -1 for a pod without one.
        template: the template that all its waiting pods have; None if they differ.
        where: where its pods go; None: anywhere.
        teams: the teams within; empty for a team with pods.
        n_short: how many pods it lacks on nodes until it has its minimum; of a team with teams it has no meaning.
        n_done: by how much its minimum is smaller than that of its part, as pods have succeeded.
    """

    name: str = ""
    minimum: int = 1
    pods: tuple[PodRecord, ...] = ()
    there: tuple[PodRecord, ...] = ()
    ranks: tuple[int, ...] = ()
    template: PodTemplate | None = None
    where: Where | None = None
    teams: tuple[Team, ...] = ()
    n_short: int = 0
    n_done: int = 0

    @property
    def n_missing(self) -> int:
        """How many of its pods must have a node at once, beside those that are there."""
        return max(0, self.minimum - len(self.there))

    @property
    def is_complete(self) -> bool:
        """Whether there are as many pods as must be placed at once."""
        if not self.teams:
            return len(self.pods) >= self.n_missing
        return sum(team.is_complete for team in self.teams) >= self.minimum

    def list_needs(self) -> list[tuple[PodRecord, int]]:
        """List how many pods of a template must have a node at once at least, each time with one of them."""
        if not self.teams and self.template is not None:
            return [(self.pods[0], self.n_missing)]
        needs: dict[int, tuple[PodRecord, int]] = {}
        for pod, n in self._list_parts_of_needs():
            one, so_far = needs.get(id(pod.template), (pod, 0))
            needs[id(pod.template)] = one, so_far + n
        return list(needs.values())

    def _list_parts_of_needs(self) -> Iterator[tuple[PodRecord, int]]:
        if self.teams:
            for team in self.teams if self.minimum >= len(self.teams) else ():
                yield from team.list_needs()
            return
        n_left_out = len(self.pods) - self.n_missing
        for like in list_kinds(self.pods):
            if len(like) > n_left_out:
                yield like[0], len(like) - n_left_out

    def list_all(self) -> Iterator[Team]:
        """Yield the team and all teams within it."""
        yield self
        for team in self.teams:
            yield from team.list_all()

    def list_leaves(self) -> Iterator[Team]:
        """Yield the teams that have pods, in order."""
        if not self.teams:
            yield self
        for team in self.teams:
            yield from team.list_leaves()

    def count_least(self, placed: Collection[str] = ()) -> int:
        """Count the pods that must have a node at once, beside those that are there.

        ``placed``: the uids of pods that were given a node since the team was formed.
        """
        if not self.teams:
            # Most groups wait for all of their pods, and there may be thousands of them.
            n_placed = sum(pod.uid in placed for pod in self.pods) if placed else 0
            return max(0, self.n_missing - n_placed)
        return sum(sorted(team.count_least(placed) for team in self.teams)[: self.minimum])

    def count_below(self) -> int:
        """Count the pods that it lacks until it has its minimum; those whose bind is under way count as there."""
        if not self.teams:
            return max(0, self.n_short - sum(pod.life == Life.ASSUMED for pod in self.pods))
        return sum(sorted(team.count_below() for team in self.teams)[: self.minimum])

    def count_short(self) -> int:
        """Count the pods that it lacks on nodes until it has its minimum, whether they may come one by one or not."""
        if not self.teams:
            return self.n_short
        return sum(sorted(team.count_short() for team in self.teams)[: self.minimum])


class Entity(msgspec.Struct, frozen=True):
    """A group of pods about which one decision is made. A single pod is an entity by itself, and needs no such value.

    Attributes:
        key: the key of the group.
        team: its pods and what must be placed at once.
        members: its pods without a node and those whose bind is under way, in the order in which they are placed; at
            least one.
        definition: what its object or its pods say of it; None while nobody has said anything.
        lacks: what it waits for before it can be tried; empty for nothing.
        problem: what a person must mend before it can be placed; None for nothing.
        n_short: of a group that has pods on nodes, how many it lacks there until it has its minimum; else 0.
        is_urgent: whether such a group comes before others.
    """

    key: GroupKey
    team: Team
    members: tuple[PodRecord, ...]
    definition: Definition | None = None
    lacks: str = ""
    problem: Mistake | None = None
    n_short: int = 0
    is_urgent: bool = True

    @property
    def uid(self) -> str:
        """A uid that no pod has."""
        return make_uid(self.key)

    @property
    def namespace(self) -> str:
        """The namespace of all members."""
        return self.members[0].namespace

    @property
    def priority(self) -> int:
        """The priority of the group."""
        if self.definition is not None and self.definition.priority is not None:
            return self.definition.priority
        return self.members[0].priority

    @property
    def created(self) -> str:
        """The creation time of its first member."""
        return self.members[0].created

    @property
    def order(self) -> int:
        """The arrival number of its first member."""
        return self.members[0].order

    @property
    def gated(self) -> bool:
        """Whether a member waits behind scheduling gates."""
        return any(pod.gated for pod in self.members)


def list_kinds(pods: Sequence[PodRecord]) -> list[list[PodRecord]]:
    """Split pods by their templates."""
    kinds: dict[int, list[PodRecord]] = {}
    for pod in pods:
        kinds.setdefault(id(pod.template), []).append(pod)
    return list(kinds.values())


def make_entity(
    key: GroupKey,
    team: Team,
    *,
    definition: Definition | None = None,
    lacks: str = "",
    problem: Mistake | None = None,
    n_short: int = 0,
) -> Entity:
    """Make an entity of the pods of a team; there must be one."""
    members = tuple(pod for leaf in team.list_leaves() for pod in leaf.pods)
    return Entity(key, team, members, definition, lacks, problem, n_short)


def cut_extras(team: Team) -> Team:
    """Cut the pods of a team that need not have a node at once."""
    if team.teams:
        return replace(team, teams=tuple(map(cut_extras, team.teams)))
    n = team.n_missing
    return replace(team, pods=team.pods[:n], ranks=team.ranks[:n])


def make_anew(entity: Entity) -> Entity:
    """Make the entity that a group would be if none of its pods had a node."""
    return make_entity(entity.key, _make_team_anew(entity.team), definition=entity.definition)


def _make_team_anew(team: Team) -> Team:
    if team.teams:
        return replace(team, teams=tuple(map(_make_team_anew, team.teams)))
    pods = (*team.pods, *team.there)
    is_alike = all(pod.template is pods[0].template for pod in pods)
    minimum = max(team.minimum, len(team.there) + team.n_short)
    template = pods[0].template if pods and is_alike else None
    return replace(team, minimum=minimum, pods=pods, there=(), template=template, ranks=())


def require_minimum(entity: Entity) -> Entity:
    """Make the entity that a running group would be if as many pods as it lacks had to have a node at once."""
    return replace(entity, team=_require_minimum(entity.team))


def _require_minimum(team: Team) -> Team:
    if team.teams:
        return replace(team, teams=tuple(map(_require_minimum, team.teams)))
    return replace(team, minimum=max(team.minimum, len(team.there) + team.n_short))


def make_uid(key: GroupKey) -> str:
    """Make the uid of a group's entity."""
    return f"group {key.kind} {key.namespace}/{key.name}"


# A pod is an entity of one member, and has the fields that an order reads.
AnyEntity = PodRecord | Entity


def count_pods(entities: Iterable[AnyEntity]) -> int:
    """Count the pods of entities."""
    # Nearly all entities are single pods.
    return sum([len(one.members) if isinstance(one, Entity) else 1 for one in entities])
