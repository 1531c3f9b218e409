"""One attempt to place a group: a trial, which is kept or undone as a whole."""

from __future__ import annotations

from functools import partial

from scheduler.api.door.decisions import GroupResult, Hold, Outcome, Plan
from scheduler.placing.groups import by_kueue, needs
from scheduler.placing.groups.choices import Choice, place_step
from scheduler.placing.groups.domains import find_domains_there
from scheduler.placing.groups.gathering import has_own_places, list_close, share_in_few
from scheduler.placing.groups.needs import MEMBERS_MAX, Needs
from scheduler.placing.groups.orders import LargestFirst
from scheduler.placing.groups.reaching import list_reaches
from scheduler.placing.groups.search import search_ways
from scheduler.placing.groups.tries import Tries
from scheduler.schema import columns as c
from scheduler.state.entities import Entity, Team, cut_extras
from scheduler.state.pods import PodRecord


class Attempt(Tries):
    """One attempt to place one group."""

    def place(self, entity: Entity, rows: c.Flags, *, reorders: bool) -> Plan:
        """Place the group among some rows, or among all; ``reorders``: its pods may be placed in another order than its own."""
        waiting = [
            pod.uid for leaf in entity.team.list_leaves() for pod in self._list_waiting(leaf)
        ]
        if self._try(self._place_anew, entity.team, rows):
            n_placed, domain, holds = len(self._binds), self._domain, self._holds
        elif self._place_otherwise(entity.team, rows, reorders=reorders):
            n_placed, domain = len(self._binds), self._domain
            placed = {bind.uid for bind in self._binds}
            holds = [one for one in (*self._holds, *self._closest[2]) if one.uid not in placed]
            holds = holds or [Hold(uid) for uid in waiting if uid not in placed]
        else:
            n_placed, domain, holds = self._closest
            holds = holds or [Hold(waiting[0], said=self._no_domain)] if waiting else []
        n_assumed = len(entity.members) - len(waiting)
        least = max(0, entity.team.count_least() - n_assumed)
        result = GroupResult(
            entity.key,
            tuple(waiting),
            least,
            max(0, n_placed),
            domain,
            self._n_domains,
            max(0, entity.n_short - n_assumed - len(self._binds)),
        )
        hold = holds[0] if holds else None
        return Plan(entity.uid, tuple(self._binds), hold=hold, group=result)

    def _place_otherwise(self, team: Team, among: c.Flags, *, reorders: bool) -> bool:
        """Place a group that did not fit at the first try: only its minimum, then with the largest pods first."""
        if team.teams:
            whole, team = team, cut_extras(team)
            has_extras = self._count_waiting(team) < self._count_waiting(whole)
            if has_extras and self._try(self._place_anew, team, among):
                # The extra pods of one part had taken the room that another part needs. They come by themselves.
                return True
        if not (reorders and self._is_unlike(team)):
            return False
        largest_first = LargestFirst(self._cluster)
        if largest_first.list_pods(team) == self._order.list_pods(team):
            return False
        self._order = largest_first
        return self._try(self._place_anew, team, among)

    def _is_unlike(self, team: Team) -> bool:
        """Whether the pods of a group differ, and are too many to search for; other systems have an order of their own."""
        return (
            self._count_waiting(team) > MEMBERS_MAX
            and self._count_templates(team) > 1
            and not self._has_own_order(team)
        )

    def _place_anew(self, team: Team, among: c.Flags) -> bool:
        """Place a team without regard to what its pods are promised: the promises are for all of them together."""
        self._whole = team
        self._count_anew()
        for leaf in team.list_leaves():
            for pod in leaf.pods:
                self._cluster.nominations.drop(pod.uid)
        if not (self._place_in_reach(team, among) or self._place_root(team, among)):
            return False
        self._put_in_rank_order(team)
        return True

    def _place_in_reach(self, team: Team, among: c.Flags) -> bool:
        """Place the group among the nodes that can use devices of a claim that its pods share, set by set."""
        closest = self._closest
        reaches = list_reaches(self._cluster, team, self._list_kinds, among)
        if any(self._try(self._place_root, team, rows) for rows in reaches):
            return True
        # Of a group that fits nowhere it is said what it lacks on all nodes.
        self._closest = closest
        return False

    def _place_root(self, team: Team, among: c.Flags) -> bool:
        """Place the group; return whether its minimum has a node."""
        return self._place_team(team, among)

    def _place_team(self, team: Team, among: c.Flags) -> bool:
        """Place a team where its constraint allows; return whether its minimum has a node."""
        where = team.where
        if where is None:
            gathers = self._gathers and (team is self._whole or team.template is not None)
            place = self._place_gathered if gathers else self._place_members
            return place(team, among)
        if where.rule in self._assign and (by_kueue.is_cut(team) or not self._is_there(team)):
            if self._try(self._place_assigned, team, among):
                return True
            if where.slices:
                # Nobody else cuts a team in slices.
                self._no_domain = by_kueue.say_no_slices(self._domains, team, where)
                return False
        if where.required < 0:
            return self._place_by_wish(team, among)
        for level in where.preferred:
            # A domain that is wished for lies within one that is required; all of them come before the second best.
            if level > where.required and any(
                self._try(self._place_members, team, rows)
                for rows in self._list_domains(team, level, among)
            ):
                return True
        return any(
            self._try(self._place_by_wish, team, rows)
            for rows in self._list_domains(team, where.required, among)
        )

    def _make_choice(self, team: Team, among: c.Flags) -> Choice:
        waiting = [(leaf, self._list_waiting(leaf)) for leaf in team.list_leaves()]
        return Choice(self._cluster, self._domains, team, waiting, self._count_places, among)

    def _place_assigned(self, team: Team, among: c.Flags) -> bool:
        """Place a team as the rules of its system say; return whether its minimum has a node."""
        choice, has_steps = self._make_choice(team, among), False
        for step in self._assign[team.where.rule](choice) if team.where is not None else ():
            has_steps = True
            binds, holds = place_step(step, self._place_pods)
            self._binds += binds
            self._holds += holds
        if not has_steps:
            return False
        self._note_shared_domain(team)
        return all(self._count_assumed(leaf) >= leaf.n_missing for leaf in team.list_leaves())

    def _note_shared_domain(self, team: Team) -> None:
        """Note the domain of the level asked for, or of one above it, that all pods of a team share."""
        where = team.where
        if where is None:
            return
        asked = where.required if where.required >= 0 else next(iter(where.preferred), -1)
        for level in range(asked, -1, -1):
            domains = self._domains.get_level(where.labels[: level + 1])
            there = find_domains_there(self._cluster, team, domains.domain)
            if len(there) == 1 and (number := there.pop()) >= 0:
                self._domain = where.labels[level], domains.names[number]
                self._n_domains = max(self._n_domains, len(domains.names))
                return

    def _place_by_wish(self, team: Team, among: c.Flags) -> bool:
        """Place a team in one domain of a preferred level if it fits there, else in few domains."""
        where = team.where
        if where is None:
            return self._place_members(team, among)
        if not (where.preferred or where.spreads_freely):
            labels = where.labels[: where.required + 1]
            return self._place_closely(team, among, labels) or self._place_members(team, among)
        for level in where.preferred:
            for rows in self._list_domains(team, level, among):
                if self._try(self._place_members, team, rows):
                    return True
        finest = where.preferred[0] if where.preferred else len(where.labels) - 1
        for level in range(finest - 1, where.required, -1):
            for rows in self._list_domains(team, level, among):
                if self._try(partial(self._place_in_few, where.labels[: finest + 1]), team, rows):
                    return True
        few = partial(self._place_in_few, where.labels[: finest + 1])
        return self._try(few, team, among) or self._place_members(team, among)

    def _place_gathered(self, team: Team, among: c.Flags) -> bool:
        """Place a team without a constraint in one domain, the smallest that takes all its pods, else in few domains."""
        inner, closest = self._domains.list_inner(()), self._closest
        # A pod by itself goes to the node that suits it best.
        if not inner or self._count_waiting(team) < 2 or not self._may_gather(team):
            return self._place_members(team, among)
        if self._place_in_one(((), inner), team, among):
            return True
        # Of a group that fits nowhere it is said what it lacks on all nodes.
        self._closest = closest
        is_placed, n_binds, spent = False, len(self._binds), self._ways.spent

        def place(team: Team, among: c.Flags) -> bool:
            nonlocal is_placed
            is_placed = self._place_members(team, among)
            find_row = self._cluster.nodes.find_row
            rows = {find_row(bind.node) for bind in self._binds[n_binds:]}
            # For a group that had to be searched for, there may be no time to find a place once more.
            is_kept = self._ways.spent > spent or self._domains.is_one_domain(sorted(rows))
            return is_placed and is_kept

        if self._try(place, team, among):
            return True
        few = partial(self._place_in_few, inner[:1])
        return is_placed and (self._try(few, team, among) or self._place_members(team, among))

    def _place_closely(self, team: Team, among: c.Flags, labels: tuple[str, ...]) -> bool:
        """Place a team within its domain, of the last of these labels, in few domains of the cluster's narrower levels."""
        inner = self._domains.list_inner(labels)
        if not inner or not self._may_gather(team):
            return False
        is_alike = team.template is not None and not team.teams
        if not is_alike and self._place_in_one((labels, inner), team, among):
            return True
        few = partial(self._place_in_few, (*labels, inner[0]))
        return self._try(few, team, among)

    def _may_gather(self, team: Team) -> bool:
        """Whether a team may go to domains that it does not ask for: one of like pods, or without rules of its parts."""
        if team.template is not None and not team.teams:
            return True
        if self._count_templates(team) > MEMBERS_MAX:
            # The places of each kind would be counted in each domain.
            return False
        self._count_anew()
        has_rules = any(one.has_rules for one in self._list_kinds(team))
        return not has_rules and not has_own_places(team)

    def _place_in_one(
        self, labels: tuple[tuple[str, ...], tuple[str, ...]], team: Team, among: c.Flags
    ) -> bool:
        """Place all pods of a team in one domain of the narrowest level that takes them; ``labels`` as in ``list_close``."""
        self._count_anew()
        kinds = list(self._list_kinds(team))
        return any(
            self._try(partial(self._place_all_in_few, close.labels), team, close.rows)
            for close in list_close(self._domains, labels, kinds, among)
        )

    def _place_members(self, team: Team, among: c.Flags) -> bool:
        """Place the pods or the teams of a team."""
        if not team.teams:
            return self._place_pods_of(team, self._list_waiting(team), among)
        is_placed = self._try(self._place_parts, team, among)
        return is_placed or self._search_for_parts(team, among)

    def _place_parts(self, team: Team, among: c.Flags) -> bool:
        """Place the teams of a team, one after another."""
        n_placed, n_left, around = 0, len(team.teams), self._domain
        for one in self._order.order_parts(team.teams):
            n_left -= 1
            n_placed += self._try(self._place_team, one, among)
            if n_placed + n_left < team.minimum:
                return False
            if len(team.teams) > 1:
                # Each part may have a domain of its own: none is that of the whole team.
                self._domain = around
        return n_placed >= team.minimum

    def _place_pods_of(self, team: Team, waiting: list[PodRecord], among: c.Flags) -> bool:
        if not waiting:
            return self._is_enough(team)
        n_binds = len(self._binds)
        with self._cluster.trial() as trial:
            self._note(self._place_here(self._order.order_pods(waiting), among))
            if self._is_enough(team):
                trial.commit()
                return True
        self._n_tried = max(self._n_tried, len(self._binds))
        del self._binds[n_binds:]
        return self._search(team, waiting, among)

    def _place_here(self, pods: list[PodRecord], among: c.Flags) -> Outcome:
        """Decide for each of the pods by itself, among some rows."""
        return self._place_pods(pods, among)

    def _search(self, team: Team, waiting: list[PodRecord], among: c.Flags) -> bool:
        """Look for other places for a team that did not fit at the first try."""
        first = waiting[0].template
        is_plain = first.gpu is None and not first.has_terms and not first.spread
        has_claims = any(pod.claims for pod in waiting)
        if is_plain and not has_claims and all(pod.template is first for pod in waiting):
            # Of like pods as many fit on a node whichever comes first. A claim that they share ties them to its nodes.
            return False
        least = team.n_missing - self._count_assumed(team)
        is_part = team is not self._whole and self._count_waiting(self._whole) <= MEMBERS_MAX
        if not self._find_ways(needs.read_pods(waiting, least), among, leaves_half=is_part):
            return False
        if rest := self._list_waiting(team):
            self._note(self._place_pods(self._order.order_pods(rest), among))
        return True

    def _search_for_parts(self, team: Team, among: c.Flags) -> bool:
        """Look for places for all parts of a team together, which did not fit one after another."""
        if team is not self._whole and self._count_waiting(self._whole) <= MEMBERS_MAX:
            # All parts of the group are searched for together.
            return False
        if self._count_waiting(team) > MEMBERS_MAX:
            return False
        wanted = needs.Reader(self._cluster, self._domains, self._list_waiting).read_team(team)
        if wanted is None or sum(bool(part.pods) for part in wanted.parts) < 2:
            return False
        self._count_anew()
        if not self._find_ways(wanted, among, leaves_half=False):
            return False
        if self._count_waiting(team):
            self._place_parts(team, among)
        return True

    def _find_ways(self, wanted: Needs, among: c.Flags, *, leaves_half: bool) -> bool:
        """Place what is needed in whatever way there is."""
        ways, get_places = self._ways, self._get_places
        found = search_ways(self._cluster, ways, wanted, get_places, among, leaves_half=leaves_half)
        self._binds += found
        if found:
            tried_before = {pod.uid for part in wanted.parts for pod in part.pods}
            self._holds = [hold for hold in self._holds if hold.uid not in tried_before]
        return bool(found)

    def _place_in_few(self, labels: tuple[str, ...], team: Team, among: c.Flags) -> bool:
        """Place a team in few domains of a level, and within these in few of each narrower level.

        Of unlike pods those are first that request most cards in all, or the largest ones; the others go to the same
        domains as far as they fit. Those that want others near them come after these.
        """
        kinds, n_binds = self._order.order_kinds(list(self._list_kinds(team))), len(self._binds)
        if not kinds or has_own_places(team):
            return self._place_members(team, among)
        first, *others = kinds
        self._share_in_few(labels, first.pods, first.places, among)
        for kind in others:
            there = [self._cluster.nodes.find_row(bind.node) for bind in self._binds[n_binds:]]
            near = self._domains.find_near(there, among)
            self._binds += self._place_here(kind.pods, near).binds
            left = self._list_pending(kind.pods)
            if left:
                # Beside the pods that are there by now.
                places = self._count_places(left[0], None)
                self._share_in_few(labels, left, places, among)
        return all(self._is_enough(leaf) for leaf in team.list_leaves())

    def _place_all_in_few(self, labels: tuple[str, ...], team: Team, among: c.Flags) -> bool:
        """Place all pods of a team in few domains, not only its minimum."""
        return self._place_in_few(labels, team, among) and not self._count_waiting(team)

    def _share_in_few(
        self, labels: tuple[str, ...], pods: list[PodRecord], places: c.Ints, among: c.Flags
    ) -> None:
        """Place like pods in few domains; ``places`` [N]: how many of them fit on each node."""
        for part in share_in_few(self._domains, labels, pods, places, among):
            self._note(self._place_here(part.pods, part.rows))
