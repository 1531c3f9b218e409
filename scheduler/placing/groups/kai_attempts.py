"""An attempt to place a group that says in KAI's words where its pods go: to the domains that KAI tries, in its order.

KAI places the pods that must have a node at once, and then the others one after the other.
"""

from __future__ import annotations

import numpy as np

from scheduler.api.door.decisions import Outcome
from scheduler.api.groups.definitions import Rule
from scheduler.placing.groups import by_kai
from scheduler.placing.groups.attempts import Attempt
from scheduler.placing.groups.domains import find_domains_there
from scheduler.schema import columns as c
from scheduler.state.entities import Team
from scheduler.state.pods import PodRecord


class KaiAttempt(Attempt):
    """One attempt to place one group by KAI's rules."""

    # The pods that are placed now, by uid; None: all that wait.
    _tasks: frozenset[str] | None = None
    # [N] which nodes the pods that are placed now like better; [0]: none.
    _scores: c.Ints = np.zeros(0, np.int64)
    # Among which rows the pods were placed that were placed last.
    _rows: c.Flags = np.zeros(0, np.bool_)

    def _place_root(self, team: Team, among: c.Flags) -> bool:
        needed = self._list_needed(team)
        if needed:
            self._tasks = frozenset(pod.uid for pod in needed)
            if not self._place_team(team, among):
                return False
        domain = self._domain
        for leaf in team.list_leaves():
            self._place_extras(team, leaf, among)
        self._domain = domain
        return True

    def _list_needed(self, team: Team) -> list[PodRecord]:
        """List the pods that must have a node at once."""
        if not team.teams:
            missing = max(0, team.n_missing - self._count_assumed(team))
            return self._list_waiting(team)[:missing]
        ready = [self._list_needed(one) for one in team.teams if one.is_complete]
        return [pod for pods in sorted(ready, key=len)[: team.minimum] for pod in pods]

    def _place_extras(self, team: Team, leaf: Team, among: c.Flags) -> None:
        """Place the pods of a leaf beyond those that must have a node, until one does not fit."""
        while True:
            self._tasks = None
            waiting = self._list_waiting(leaf)
            if not waiting:
                return
            first = waiting[0]
            self._tasks = frozenset({first.uid})
            self._closest = (-1, self._domain, [])
            if not self._try(self._place_team, team, among):
                self._holds += self._closest[2][:1]
                return
            # The domain that takes a pod comes first for the next one, too, as it is fuller than before.
            rest = waiting[1:]
            unlike = next((i for i, pod in enumerate(rest) if pod.template is not first.template), len(rest))  # fmt: skip
            if unlike:
                self._binds += self._place_here(rest[:unlike], self._rows).binds

    def _place_team(self, team: Team, among: c.Flags) -> bool:
        where = team.where
        if where is None or where.rule != Rule.KAI:
            return super()._place_team(team, among)
        choice = self._make_choice(team, among)
        if not any(pods for _, pods in choice.waiting):
            return self._place_members(team, among)
        there: set[int] = set()
        if where.required >= 0:
            level = self._domains.get_level(where.labels[: where.required + 1])
            there = find_domains_there(self._cluster, team, level.domain) - {-1}
            self._n_domains = max(self._n_domains, len(level.names))
        sets, scores = by_kai.list_sets(choice, there)
        before = self._domain, self._scores
        if scores.size:
            self._scores = scores
        is_placed = False
        for one in sets:
            self._domain = one.label, one.values
            is_placed = self._try(self._place_members, team, one.rows)
            if is_placed:
                # Parts of the team may have domains within this one.
                self._domain = one.label, one.values
                break
        self._scores = before[1]
        if not is_placed:
            self._domain = before[0]
        return is_placed

    def _place_here(self, pods: list[PodRecord], among: c.Flags) -> Outcome:
        """Decide for each of the pods by itself; those go first to nodes that KAI likes better."""
        self._rows = among
        if not self._scores.size:
            return super()._place_here(pods, among)
        found, left = Outcome(), pods
        inside = among if among.size else self._cluster.nodes.columns.valid
        for score in np.unique(self._scores[inside])[::-1].tolist():
            tried = super()._place_here(left, inside & (self._scores == score))
            found.plans += [plan for plan in tried.plans if plan.binds]
            placed = {bind.uid for bind in tried.binds}
            left = [pod for pod in left if pod.uid not in placed]
            if not left:
                return found
        # What keeps the others off all of these nodes.
        found.plans += super()._place_here(left, among).plans
        return found

    def _is_enough(self, team: Team) -> bool:
        return super()._is_enough(team) and not self._list_waiting(team)

    def _search(self, team: Team, waiting: list[PodRecord], among: c.Flags) -> bool:
        return super()._search(team, waiting, among) and self._is_enough(team)

    def _list_waiting(self, team: Team) -> list[PodRecord]:
        waiting = super()._list_waiting(team)
        if self._tasks is None:
            return waiting
        return [pod for pod in waiting if pod.uid in self._tasks]
