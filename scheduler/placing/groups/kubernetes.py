"""Places a group exactly as kube-scheduler 1.37 does, for pods whose profile asks for that, with its texts.

It is greedy: members are tried in their order, each on the node that is best for it, and no choice is taken back. With a
topology constraint every domain is tried; of those that take the minimum the one with the highest score wins, which is
how full its nodes become plus how many members it takes (kube-scheduler-1.37: pod group scheduling cycle, KEP-5732,
KEP-6012). Of equal domains kube-scheduler takes any, and Evenkeel the first by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec

from scheduler.api import names
from scheduler.api.door.decisions import Bind, GroupResult, Hold, LeafResult, Plan
from scheduler.api.kube_plugins import KubePlugins
from scheduler.errors import Mistake
from scheduler.placing.groups.choices import PlacePods
from scheduler.placing.groups.domains import Domains, Level, find_domains_there
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity, Team
from scheduler.state.pods import Life, PodRecord

UNSCHEDULABLE = "pod group is unschedulable"
_NO_DOMAIN = "cannot determine domain for already scheduled pods"
_CHILD_ERROR = "composite pod group evaluation failed due to child error"
_NO_PLACEMENT = "no feasible placements found"
_ALWAYS = (names.CPU, names.MEMORY, names.EPHEMERAL)
_NONZERO = {names.CPU: 0, names.MEMORY: 1}


@dataclass(slots=True)
class _Status:
    """Why teams are not placed; what is added to it is said of all teams that share it.

    Attributes:
        reasons: the reasons, in their order.
        is_general: it says first that a pod group is unschedulable.
        is_error: something is wrong, and no further placement is tried.
    """

    reasons: list[str] = field(default_factory=list)
    is_general: bool = True
    is_error: bool = False

    @property
    def text(self) -> str:
        """What is told."""
        return ", ".join([UNSCHEDULABLE, *self.reasons] if self.is_general else self.reasons)

    @property
    def summary(self) -> str:
        """What the status of a team around it says of it."""
        return UNSCHEDULABLE if self.is_general else self.text


@dataclass(slots=True)
class _Result:
    """The result for a team, or for a team in one placement.

    Attributes:
        status: why it is not placed; None if it is.
        binds: where its members go, or would go.
        holds: the members that fit nowhere.
    """

    status: _Status | None = None
    binds: list[Bind] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)


# By the identity of a team; a team that was not reached has none.
_Results = dict[int, _Result]


class KubeAttempt:
    """One attempt to place one group as kube-scheduler does."""

    def __init__(
        self,
        cluster: Cluster,
        domains: Domains,
        place_pods: PlacePods,
        plugins: KubePlugins,
    ) -> None:
        self._cluster, self._domains, self._place_pods = cluster, domains, place_pods
        self._plugins = plugins
        # By the identity of a leaf: its members that have no node, and no bind under way.
        self._waiting: dict[int, list[PodRecord]] = {}

    def place(self, entity: Entity, rows: c.Flags) -> Plan:
        """Place the group among some rows, or among all."""
        for leaf in entity.team.list_leaves():
            self._waiting[id(leaf)] = self._list_waiting(leaf)
        results: _Results = {}
        root = self._place_team(entity.team, rows, results)
        if root.status is None and not _list_binds(entity.team, results):
            root.status = _Status()
        _pass_down(entity.team, results, None)
        leaves = [(one, results[id(one)]) for one in entity.team.list_leaves()]
        holds = tuple(hold for one, found in leaves for hold in self._write_holds(one, found))
        binds = tuple(_list_binds(entity.team, results))
        statuses = [found.status for found in results.values() if found.status is not None]
        result = GroupResult(
            entity.key,
            tuple(pod.uid for one, _ in leaves for pod in self._waiting[id(one)]),
            0,
            sum(len(found.binds) for _, found in leaves),
            members=holds,
            status="" if root.status is None else root.status.text,
            leaves=tuple(
                LeafResult(
                    self._find_name(one),
                    "" if found.status is None else found.status.text,
                    tuple(bind.uid for bind in found.binds) if found.status is not None else (),
                    sum(one is found.status for one in statuses),
                    found.status is not None and found.status.is_error,
                )
                for one, found in leaves
                if one.pods
            ),
        )
        return Plan(entity.uid, binds, hold=holds[0] if holds else None, group=result)

    def _find_name(self, leaf: Team) -> str:
        key = self._cluster.groups.find_group(leaf.pods[0].uid)
        return "" if key is None else key.name

    def _write_holds(self, leaf: Team, found: _Result) -> list[Hold]:
        """Write why each member of a leaf that is not placed waits: in its own words, or in those of the group."""
        if found.status is None:
            return found.holds
        if found.status.is_error:
            problem = Mistake("", found.status.text)
            return [Hold(pod.uid, problem=problem) for pod in self._waiting[id(leaf)]]
        own = {hold.uid: hold for hold in found.holds}
        fitting = {bind.uid for bind in found.binds}
        text = found.status.text
        return [
            own.get(uid) or Hold(uid, said=f"{UNSCHEDULABLE}, {text}" if uid in fitting else text)
            for uid in (pod.uid for pod in self._waiting[id(leaf)])
        ]

    def _list_waiting(self, leaf: Team) -> list[PodRecord]:
        pods = self._cluster.pods
        return [one for pod in leaf.pods if (one := pods[pod.uid]).life == Life.PENDING]

    # Placements.

    def _place_team(self, team: Team, among: c.Flags, results: _Results) -> _Result:
        """Place a team in the best of its placements; nothing stays charged unless it is placed.

        Args:
            team: the team.
            among: [N] the only nodes that may be chosen, [0] for all nodes.
            results: gets the results of the team and of those within.
        """
        placements = self._list_placements(team, among)
        if isinstance(placements, _Status):
            results[id(team)] = _Result(placements)
            return results[id(team)]
        keeps = len(placements) == 1
        tried = [self._try(team, rows, keeps=keeps) for rows in placements]
        for found, _, _ in tried:
            if (status := found[id(team)].status) is not None and status.is_error:
                results.update(found)
                return results[id(team)]
        feasible = [i for i, one in enumerate(tried) if one[0][id(team)].status is None]
        if not feasible:
            # Of those that fail alike, kube-scheduler tells any.
            found = tried[0][0]
            head = f"0/{len(tried)} placements are available, first placement status: "
            first = found[id(team)].status or _Status()
            found[id(team)].status = _Status([head + first.summary])
        elif keeps:
            found = tried[0][0]
        else:
            best = feasible[0]
            if len(feasible) > 1:
                most = max(tried[i][2] for i in feasible)
                best = max(feasible, key=lambda i: tried[i][1] + tried[i][2] * 100 // most)
            found = self._try(team, placements[best], keeps=True)[0]
        results.update(found)
        return results[id(team)]

    def _try(self, team: Team, rows: c.Flags, *, keeps: bool) -> tuple[_Results, int, int]:
        """Place a team among rows in a trial; return also how full the rows become, and how many members are there."""
        results: _Results = {}
        n_there = fullness = 0
        with self._cluster.trial() as trial:
            found = self._place_members(team, rows, results)
            results[id(team)] = found
            if found.status is None:
                binds = _list_binds(team, results)
                n_there = len(binds) + sum(self._count_there(leaf) for leaf in team.list_leaves())
                if keeps:
                    trial.commit()
                else:
                    fullness = self._score_rows(binds, rows)
        return results, fullness, n_there

    def _count_there(self, leaf: Team) -> int:
        """Count the members of a leaf that had a node before the attempt."""
        return len(leaf.there) + len(leaf.pods) - len(self._waiting[id(leaf)])

    def _list_placements(self, team: Team, among: c.Flags) -> list[c.Flags] | _Status:
        """List the rows of each placement of a team; or say why there is none."""
        where = team.where
        if where is None or where.required < 0:
            return [among]
        level = self._domains.get_level(where.labels[: where.required + 1])
        there = find_domains_there(self._cluster, team, level.domain)
        if len(there) > 1 or -1 in there:
            return self._refuse_domains(team, level, there)
        found = []
        for number in range(len(level.names)):
            rows = level.domain == number
            rows = rows & among if among.size else rows
            if rows.any() and (not there or there == {number}):
                found.append(rows)
        return found or _Status([_NO_PLACEMENT], is_general=False)

    def _refuse_domains(self, team: Team, level: Level, there: set[int]) -> _Status:
        """Refuse a team whose members are in more than one domain, or in none."""
        names = sorted(level.names[number][-1] for number in there if number >= 0)
        text = f"more than 1 domain found for pod group: {', '.join(names)}"
        if -1 in there:
            pods = [pod for leaf in team.list_leaves() for pod in (*leaf.there, *leaf.pods)]
            outside = [
                pod.key
                for pod in pods
                if (row := self._cluster.nodes.find_row(pod.node)) >= 0 and level.domain[row] < 0
            ]
            text = f"no topology domain found for pod {min(outside)}"
        return _Status([f"{_NO_DOMAIN}: {text}"], is_general=False, is_error=True)

    # Members.

    def _place_members(self, team: Team, rows: c.Flags, results: _Results) -> _Result:
        """Place the pods or the teams of a team, in their order."""
        if not team.teams:
            return self._place_leaf(team, rows)
        minimum = max(1, team.minimum)
        n_placed, n_left = 0, len(team.teams)
        for one in team.teams:
            if n_placed + n_left < minimum:
                break
            inner = self._place_team(one, rows, results)
            if inner.status is not None and inner.status.is_error:
                text = f"{_CHILD_ERROR}: {inner.status.text}"
                return _Result(_Status([text], is_general=False, is_error=True))
            n_left -= 1
            n_placed += inner.status is None
        if n_placed + n_left < minimum:
            return _Result(_Status([_write_quorum(minimum, n_placed, n_left)], is_general=False))
        return _Result()

    def _place_leaf(self, team: Team, rows: c.Flags) -> _Result:
        waiting = self._waiting[id(team)]
        minimum = max(1, team.minimum)
        n_scheduled, n_left = self._count_there(team), len(waiting)
        if n_scheduled + n_left < minimum:
            return _Result(_Status([_write_quorum(minimum, n_scheduled, n_left)]))
        found = _Result()
        for pod in waiting:
            tried = self._place_pods([pod], rows)
            n_left -= 1
            n_scheduled += len(tried.binds)
            found.binds += tried.binds
            found.holds += tried.holds
            if n_scheduled + n_left < minimum:
                quorum = _write_quorum(minimum, n_scheduled, n_left)
                found.status = _Status([quorum], is_general=False)
                break
        return found

    def _score_rows(self, binds: list[Bind], rows: c.Flags) -> int:
        """Score how full the nodes of a placement are, in percent, with the members that were just placed there."""
        nodes = self._cluster.nodes
        there = nodes.columns.valid & rows if rows.size else nodes.columns.valid
        requested = {
            name
            for bind in binds
            for name, _ in self._cluster.pods[bind.uid].template.requests.amounts
        }
        total = weights = 0
        for name, weight in self._plugins.fit.resources:
            row = nodes.resources.find(name)
            if row < 0 or (name not in _ALWAYS and name not in requested):
                continue
            capacity = int(nodes.columns.allocatable[row, there].sum())
            if not capacity:
                continue
            used = (
                nodes.columns.requested[row]
                if name not in _NONZERO
                else (nodes.columns.nonzero[_NONZERO[name]])
            )
            in_use = min(capacity, int(used[there].sum()))
            total += in_use * 100 // capacity * weight
            weights += weight
        return total // weights if weights else 0


def _list_binds(team: Team, results: _Results) -> list[Bind]:
    """List the binds of a team and of those within; a team that is not placed has none, whatever is within."""
    found = results.get(id(team))
    if found is None or found.status is not None:
        return []
    return [*found.binds, *(bind for one in team.teams for bind in _list_binds(one, results))]


def _pass_down(team: Team, results: _Results, around: _Result | None) -> None:
    """Give the status of a team that is not placed to the teams within that are placed, or were not reached."""
    found = results.get(id(team))
    if around is not None and around.status is not None and (found is None or not found.status):
        found = _Result(around.status)
    results[id(team)] = found = found or _Result()
    for one in team.teams:
        _pass_down(one, results, found)


def _write_quorum(minimum: int, n_scheduled: int, n_left: int) -> str:
    return f"minCount ({minimum}) cannot be satisfied: {n_scheduled} scheduled, {n_left} remaining"


def add_preemption(result: GroupResult, words: str, *, is_promised: bool) -> GroupResult:
    """Return a result with what preemption came to; ``is_promised``: the group waits for its victims to leave."""
    words = f", {words}"
    said: dict[str, str] = {}
    leaves = []
    for leaf in result.leaves:
        text = leaf.status + words * leaf.n_sharing
        leaves.append(leaf._replace(status=text))
        whole = text if is_promised else f"{UNSCHEDULABLE}, {text}"
        said |= dict.fromkeys(leaf.fitting, whole)
    members = tuple(
        replace(one, said=said[one.uid]) if one.uid in said else one for one in result.members
    )
    return msgspec.structs.replace(
        result, members=members, status=result.status + words, leaves=tuple(leaves)
    )


def add_attempt(before: Plan, after: Plan) -> Plan:
    """Return one plan of two that follow each other: the second is for the members that the first has not placed."""
    first, second = before.group, after.group
    if first is None or second is None:
        return before
    placed = {leaf.name for leaf in first.leaves if not leaf.status}
    said = {leaf.name: leaf for leaf in second.leaves}
    # A PodGroup that was placed once stays so, whatever becomes of its other members.
    leaves = tuple(
        leaf if leaf.name in placed else said.get(leaf.name, leaf) for leaf in first.leaves
    )
    result = msgspec.structs.replace(
        second, waiting=first.waiting, n_placed=first.n_placed + second.n_placed, leaves=leaves
    )
    return msgspec.structs.replace(after, binds=before.binds + after.binds, group=result)
