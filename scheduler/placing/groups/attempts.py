"""One attempt to place a group: a trial, which is kept or undone as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from scheduler.api.door.decisions import Bind, GroupResult, Hold, Outcome, Plan
from scheduler.api.groups.definitions import Rule
from scheduler.placing.groups import by_kueue, choosing, search
from scheduler.placing.groups.choices import Assign, Choice, CountPlaces, PlacePods, place_step
from scheduler.placing.groups.domains import Domains, find_domains_there
from scheduler.placing.groups.search import MEMBERS_MAX, Search, list_rows
from scheduler.placing.groups.ways import Ways
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity, Team, cut_extras
from scheduler.state.pods import Life, PodRecord

# The label of a level, and the values that name a domain of the level.
DomainName = tuple[str, tuple[str, ...]]
_NOWHERE: DomainName = ("", ())
# Places a team among some rows, in the open trial; returns whether its minimum has a node.
Place = Callable[[Team, c.Flags], bool]


class Attempt:
    """One attempt to place one group."""

    def __init__(
        self,
        cluster: Cluster,
        domains: Domains,
        count_places: CountPlaces,
        place_pods: PlacePods,
        ways: Ways,
        *,
        assign: Mapping[Rule, Assign],
        gathers: bool,
    ) -> None:
        """``assign``: rules of other systems; ``gathers``: pods without a constraint go to few domains as well."""
        self._cluster, self._domains, self._gathers = cluster, domains, gathers
        self._count_places, self._place_pods = count_places, place_pods
        self._ways, self._assign = ways, assign
        self._binds: list[Bind] = []
        self._holds: list[Hold] = []
        self._domain = _NOWHERE
        self._n_domains = 0
        # Why no domain of a required level was tried; empty if one was.
        self._no_domain = ""
        # The attempt in which the most pods had a node: how many had one, the domain, and the holds of the others.
        self._closest: tuple[int, DomainName, list[Hold]] = (-1, _NOWHERE, [])
        # How many pods had a node in the attempt that was undone last.
        self._n_tried = 0
        self._places: dict[int, c.Ints] = {}

    def place(self, entity: Entity, rows: c.Flags) -> Plan:
        """Place the group among some rows, or among all."""
        waiting = [
            pod.uid for leaf in entity.team.list_leaves() for pod in self._list_waiting(leaf)
        ]
        if self._try(self._place_anew, entity.team, rows):
            n_placed, domain, holds = len(self._binds), self._domain, self._holds
        elif entity.team.teams and self._try(self._place_anew, cut_extras(entity.team), rows):
            # The extra pods of one part had taken the room that another part needs. They come by themselves.
            n_placed, domain = len(self._binds), self._domain
            placed = {bind.uid for bind in self._binds}
            holds = [one for one in self._closest[2] if one.uid not in placed]
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

    def _try(self, place: Place, team: Team, among: c.Flags) -> bool:
        """Place a team; undo everything unless its minimum has a node."""
        n_binds, n_holds, domain = len(self._binds), len(self._holds), self._domain
        with self._cluster.trial() as trial:
            is_placed = place(team, among)
            if is_placed:
                trial.commit()
        if not is_placed:
            n_tried = max(len(self._binds), self._n_tried)
            if n_tried > self._closest[0] and len(self._holds) > n_holds:
                self._closest = n_tried, self._domain, self._holds[n_holds:]
            del self._binds[n_binds:], self._holds[n_holds:]
            self._domain = domain
        return is_placed

    def _place_anew(self, team: Team, among: c.Flags) -> bool:
        """Place a team without regard to what its pods are promised: the promises are for all of them together."""
        for leaf in team.list_leaves():
            for pod in leaf.pods:
                self._cluster.nominations.drop(pod.uid)
        return self._place_root(team, among)

    def _place_root(self, team: Team, among: c.Flags) -> bool:
        """Place the group; return whether its minimum has a node."""
        return self._place_team(team, among)

    def _place_team(self, team: Team, among: c.Flags) -> bool:
        """Place a team where its constraint allows; return whether its minimum has a node."""
        where = team.where
        if where is None:
            gathers = self._gathers and not team.teams and team.template is not None
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

    def _is_there(self, team: Team) -> bool:
        """Whether a pod of a team has a node already: those that come later join it."""
        return any(leaf.there or self._count_assumed(leaf) for leaf in team.list_leaves())

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
        """Place a team without a constraint where its pods go by themselves if that is one domain, else in few domains."""
        is_placed, n_binds = False, len(self._binds)

        def place(team: Team, among: c.Flags) -> bool:
            nonlocal is_placed
            is_placed = self._place_members(team, among)
            find_row = self._cluster.nodes.find_row
            rows = {find_row(bind.node) for bind in self._binds[n_binds:]}
            return is_placed and self._domains.is_one_domain(sorted(rows))

        if self._try(place, team, among):
            return True
        few = is_placed and self._place_closely(team, among, ())
        return few or (is_placed and self._place_members(team, among))

    def _place_closely(self, team: Team, among: c.Flags, labels: tuple[str, ...]) -> bool:
        """Place a team within its domain, of the last of these labels, in few domains of the cluster's narrower levels."""
        inner = self._domains.list_inner(labels)
        if not inner or team.teams or team.template is None:
            return False
        few = partial(self._place_in_few, (*labels, inner[0]))
        return self._try(few, team, among)

    def _place_members(self, team: Team, among: c.Flags) -> bool:
        """Place the pods or the teams of a team."""
        if not team.teams:
            return self._place_pods_of(team, self._list_waiting(team), among)
        n_placed, n_left, around = 0, len(team.teams), self._domain
        for one in team.teams:
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
            tried = self._place_here(waiting, among)
            self._binds += tried.binds
            self._holds += tried.holds
            if self._is_enough(team):
                trial.commit()
                return True
        del self._binds[n_binds:]
        self._n_tried = max(self._n_tried, n_binds + len(tried.binds))
        return self._search(team, waiting, among)

    def _place_here(self, pods: list[PodRecord], among: c.Flags) -> Outcome:
        """Decide for each of the pods by itself, among some rows."""
        return self._place_pods(pods, among)

    def _is_enough(self, team: Team) -> bool:
        """Whether as many pods of a team have a node as must have one at once."""
        return self._count_assumed(team) >= team.n_missing

    def _search(self, team: Team, waiting: list[PodRecord], among: c.Flags) -> bool:
        """Look for other places for a team that did not fit at the first try."""
        least = team.n_missing - self._count_assumed(team)
        rows = list_rows(self._cluster, among)
        if len(waiting) > MEMBERS_MAX or not self._is_worth_a_search(waiting, least, rows):
            return False
        found = Search(self._cluster, self._ways, rows).find(waiting, least)
        if found is None:
            return False
        self._binds += found
        placed, tried_before = {bind.uid for bind in found}, {pod.uid for pod in waiting}
        self._holds = [hold for hold in self._holds if hold.uid not in tried_before]
        rest = [pod for pod in waiting if pod.uid not in placed]
        if rest:
            tried = self._place_pods(rest, among)
            self._binds += tried.binds
            self._holds += tried.holds
        return True

    def _is_worth_a_search(self, waiting: list[PodRecord], least: int, rows: c.Ints) -> bool:
        """Whether another choice of nodes or cards may help, as far as sums of amounts say."""
        n_fitting = sum(bool(self._get_places(pod)[rows].any()) for pod in waiting)
        if n_fitting < least:
            return False
        first = waiting[0].template
        is_plain = first.gpu is None and not first.has_terms and not first.spread
        if is_plain and all(pod.template is first for pod in waiting):
            # Of like pods as many fit on a node whichever comes first.
            return False
        return search.have_room(self._cluster, waiting, least, rows)

    def _place_in_few(self, labels: tuple[str, ...], team: Team, among: c.Flags) -> bool:
        """Place a team in few domains of a level, and within these in few of each narrower level."""
        waiting = self._list_waiting(team)
        if team.teams or not waiting:
            return self._place_members(team, among)
        self._spread(waiting, among, labels)
        return self._is_enough(team)

    def _spread(self, pods: list[PodRecord], among: c.Flags, labels: tuple[str, ...]) -> None:
        """Place pods in few domains of a level; pods in a row go to the same domain."""
        domains = self._domains.get_level(labels)
        places = choosing.sum_places(
            self._get_places(pods[0]), domains.domain, len(domains.names), among
        )
        inner = self._domains.list_inner(labels)
        at = 0
        for number, n in choosing.share_out(places, len(pods)):
            part, rows = pods[at : at + n], domains.domain == number
            rows = rows & among if among.size else rows
            at += n
            if inner:
                self._spread(part, rows, (*labels, inner[0]))
            else:
                tried = self._place_here(part, rows)
                self._binds += tried.binds
                self._holds += tried.holds
        if at < len(pods):
            # Nodes without the label are in no domain.
            tried = self._place_here(pods[at:], among)
            self._binds += tried.binds
            self._holds += tried.holds

    def _list_waiting(self, team: Team) -> list[PodRecord]:
        pods = self._cluster.pods
        return [one for pod in team.pods if (one := pods[pod.uid]).life == Life.PENDING]

    def _count_assumed(self, team: Team) -> int:
        pods = self._cluster.pods
        return sum(pods[pod.uid].life != Life.PENDING for pod in team.pods)

    # Domains.

    def _list_domains(self, team: Team, level: int, among: c.Flags) -> Iterator[c.Flags]:
        """Yield the rows of the domains of a level that could take a team, in the order in which they are tried."""
        before = self._domain
        if team.where is None:
            return
        labels = team.where.labels[: level + 1]
        domains = self._domains.get_level(labels)
        there = find_domains_there(self._cluster, team, domains.domain)
        if there:
            # Pods that come later join the others. If these are in several domains, no domain has them all.
            order = sorted(there) if len(there) == 1 else []
            if not order:
                label = team.where.labels[level]
                self._no_domain = (
                    f"Its pods are in several domains of {label}, and all must be in one."
                )
        else:
            order = self._order_domains(team, labels, among).tolist()
        self._n_domains = max(self._n_domains, len(domains.names))
        if not domains.names:
            self._no_domain = f"No node has the label{'s' * (level > 0)} {' and '.join(labels)}."
        for number in order:
            if number >= 0:
                rows = domains.domain == number
                self._domain = team.where.labels[level], domains.names[number]
                yield rows & among if among.size else rows
        self._domain = before

    def _order_domains(self, team: Team, labels: tuple[str, ...], among: c.Flags) -> c.Ints:
        """Order the domains of a level that have places enough for the minimum of each leaf of a team."""
        level = self._domains.get_level(labels)
        n_domains = len(level.names)
        could = np.ones(n_domains, np.bool_)
        wanted, places_of_most = 0, np.zeros(n_domains, np.int64)
        for leaf in team.list_leaves():
            waiting = self._list_waiting(leaf)
            if not waiting:
                continue
            places = choosing.sum_places(
                self._get_places(waiting[0]), level.domain, n_domains, among
            )
            least = leaf.n_missing - (len(leaf.pods) - len(waiting))
            is_alike = all(pod.template is waiting[0].template for pod in waiting)
            if not team.teams and is_alike:
                could &= places >= least
            if len(waiting) > wanted:
                wanted, places_of_most = len(waiting), places
        places = np.where(could, places_of_most, 0)
        first = team.pods[0] if team.template is not None and not team.teams else None
        inner = self._get_places(first) if first is not None else None
        around = self._domains.look_around(labels, places_of_most, wanted, inner, among)
        order = choosing.order_domains(places, 1, wanted, around)
        if order.size or not n_domains:
            return order
        # None takes the team. The one that comes closest is tried all the same, to find out which pod lacks what there.
        return np.array([places_of_most.argmax()])

    def _get_places(self, pod: PodRecord) -> c.Ints:
        key = id(pod.template)
        if key not in self._places:
            self._places[key] = self._count_places(pod, None)
        return self._places[key]
