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
from scheduler.api.door.decisions import Bind, GroupResult, Hold, Plan
from scheduler.api.kube_plugins import KubePlugins
from scheduler.placing.groups.attempts import PlacePods, find_domains_there
from scheduler.placing.groups.domains import Domains
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity, Team
from scheduler.state.pods import Life, PodRecord

UNSCHEDULABLE = "pod group is unschedulable"
_NO_PLACEMENT = "no feasible placements found"
_ALWAYS = (names.CPU, names.MEMORY, names.EPHEMERAL)
_NONZERO = {names.CPU: 0, names.MEMORY: 1}


@dataclass(slots=True)
class _Result:
    """The result for a team, or for a team in one placement.

    Attributes:
        reasons: why it is not placed; empty if it is.
        binds: where its members go.
        holds: the members that fit nowhere.
    """

    reasons: tuple[str, ...] = ()
    binds: list[Bind] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)

    @property
    def is_placed(self) -> bool:
        """Whether the team is placed."""
        return not self.reasons

    def add(self, other: _Result) -> None:
        """Add the members of a team within."""
        self.binds += other.binds
        self.holds += other.holds


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

    def place(self, entity: Entity, rows: c.Flags) -> Plan:
        """Place the group among some rows, or among all."""
        waiting = self._list_waiting(entity.team)
        found = self._place_team(entity.team, rows)
        if found.is_placed and not found.binds and waiting:
            found.reasons = (UNSCHEDULABLE,)
        binds = tuple(found.binds) if found.is_placed else ()
        holds = self._write_holds(waiting, found)
        result = GroupResult(
            entity.key,
            tuple(pod.uid for pod in waiting),
            0,
            len(found.binds),
            members=holds,
            status=", ".join(found.reasons),
        )
        return Plan(entity.uid, binds, hold=holds[0] if holds else None, group=result)

    def _write_holds(self, waiting: list[PodRecord], found: _Result) -> tuple[Hold, ...]:
        """Write why each member that is not placed waits: in its own words, or in those of the group."""
        own = {hold.uid: hold for hold in found.holds}
        if found.is_placed:
            return tuple(own.values())
        fitting = {bind.uid for bind in found.binds}
        status = ", ".join(found.reasons)
        first = [own[pod.uid] for pod in waiting if pod.uid in own]
        rest = [
            Hold(pod.uid, said=f"{UNSCHEDULABLE}, {status}" if pod.uid in fitting else status)
            for pod in waiting
            if pod.uid not in own
        ]
        return (*first, *rest)

    def _list_waiting(self, team: Team) -> list[PodRecord]:
        pods = self._cluster.pods
        return [
            one
            for leaf in team.list_leaves()
            for pod in leaf.pods
            if (one := pods[pod.uid]).life == Life.PENDING
        ]

    # Placements.

    def _place_team(self, team: Team, among: c.Flags) -> _Result:
        """Place a team in the best of its placements; nothing stays charged unless it is placed."""
        placements = self._list_placements(team, among)
        if not placements:
            return _Result((_NO_PLACEMENT,))
        if len(placements) == 1:
            return self._choose([self._try(team, placements[0], keeps=True)])
        tried = [self._try(team, rows, keeps=False) for rows in placements]
        feasible = [i for i, (one, _) in enumerate(tried) if one.is_placed]
        if not feasible:
            return self._choose(tried)
        best = feasible[0]
        if len(feasible) > 1:
            most = max(n for i in feasible for _, (_, n) in (tried[i],))
            scores = {i: tried[i][1][0] + tried[i][1][1] * 100 // most for i in feasible}
            best = max(feasible, key=lambda i: scores[i])
        return self._try(team, placements[best], keeps=True)[0]

    def _choose(self, tried: list[tuple[_Result, tuple[int, int]]]) -> _Result:
        """Return the result of the only placement that is left; of several that failed, that of the first."""
        found, _ = tried[0]
        if not found.is_placed:
            text = f"0/{len(tried)} placements are available, first placement status: "
            found.reasons = (UNSCHEDULABLE, text + ", ".join(found.reasons))
        return found

    def _try(self, team: Team, rows: c.Flags, *, keeps: bool) -> tuple[_Result, tuple[int, int]]:
        """Place a team among rows in a trial; return also how full the rows become, and how many members are there."""
        with self._cluster.trial() as trial:
            found = self._place_members(team, rows)
            score = (0, 0)
            if found.is_placed and not keeps:
                n_there = sum(len(leaf.there) for leaf in team.list_leaves())
                score = self._score_rows(team, rows), n_there + len(found.binds)
            if found.is_placed and keeps:
                trial.commit()
        return found, score

    def _list_placements(self, team: Team, among: c.Flags) -> list[c.Flags]:
        where = team.where
        if where is None or where.required < 0:
            return [among]
        level = self._domains.get_level(where.labels[: where.required + 1])
        there = find_domains_there(self._cluster, team, level.domain)
        found = []
        for number in range(len(level.names)):
            rows = level.domain == number
            rows = rows & among if among.size else rows
            if rows.any() and (not there or there == {number}):
                found.append(rows)
        return found

    # Members.

    def _place_members(self, team: Team, rows: c.Flags) -> _Result:
        """Place the pods or the teams of a team, in their order."""
        if not team.teams:
            return self._place_leaf(team, rows)
        found, n_placed, n_left = _Result(), 0, len(team.teams)
        for one in team.teams:
            if n_placed + n_left < team.minimum:
                break
            inner = self._place_team(one, rows)
            n_left -= 1
            n_placed += inner.is_placed
            if inner.is_placed:
                found.add(inner)
            else:
                found.holds += inner.holds
        if n_placed < max(1, team.minimum):
            found.reasons = (_write_quorum(team.minimum, n_placed, n_left),)
        return found

    def _place_leaf(self, team: Team, rows: c.Flags) -> _Result:
        waiting = self._list_waiting(team)
        minimum = max(1, team.minimum)
        n_scheduled = len(team.there) + len(team.pods) - len(waiting)
        n_left = len(waiting)
        if n_scheduled + n_left < minimum:
            quorum = _write_quorum(minimum, n_scheduled, n_left)
            return _Result((UNSCHEDULABLE, quorum))
        found = _Result()
        for pod in waiting:
            tried = self._place_pods([pod], rows)
            n_left -= 1
            n_scheduled += len(tried.binds)
            found.binds += tried.binds
            found.holds += tried.holds
            if n_scheduled + n_left < minimum:
                found.reasons = (_write_quorum(minimum, n_scheduled, n_left),)
                break
        return found

    def _score_rows(self, team: Team, rows: c.Flags) -> int:
        """Score how full the nodes of a placement are, in percent, with the members that were just placed there."""
        nodes = self._cluster.nodes
        there = nodes.columns.valid & rows if rows.size else nodes.columns.valid
        requested = {
            name for pod in self._list_all(team) for name, _ in pod.template.requests.amounts
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

    def _list_all(self, team: Team) -> list[PodRecord]:
        return [pod for leaf in team.list_leaves() for pod in leaf.pods]


def _write_quorum(minimum: int, n_scheduled: int, n_left: int) -> str:
    return f"minCount ({minimum}) cannot be satisfied: {n_scheduled} scheduled, {n_left} remaining"


def add_preemption(result: GroupResult, words: str, *, is_promised: bool) -> GroupResult:
    """Return a result with what preemption came to; ``is_promised``: the group waits for its victims to leave."""
    status = f"{result.status}, pod group preemption: {words}"
    members = tuple(
        replace(one, said=status)
        if is_promised and _is_of_group(one)
        else replace(one, said=f"{UNSCHEDULABLE}, {status}")
        if _is_of_group(one)
        else one
        for one in result.members
    )
    return msgspec.structs.replace(result, members=members, status=status)


def _is_of_group(hold: Hold) -> bool:
    """Whether a member fits by itself, and waits for the others."""
    return hold.said.startswith(f"{UNSCHEDULABLE}, ")
