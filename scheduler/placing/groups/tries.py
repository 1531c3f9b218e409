"""What an attempt to place a group has come to: what is placed in the open trial, and which domains come next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from scheduler.api.door.decisions import Bind, Hold, Outcome
from scheduler.api.groups.definitions import Rule
from scheduler.placing.groups import ordering
from scheduler.placing.groups.amounts import find_enough, sum_least
from scheduler.placing.groups.choices import Assign, CountPlaces
from scheduler.placing.groups.domains import Domains, find_domains_there
from scheduler.placing.groups.needs import MEMBERS_MAX
from scheduler.placing.groups.ordering import Kind
from scheduler.placing.groups.orders import AsWritten
from scheduler.placing.groups.ranks import RankOrder
from scheduler.placing.groups.ways import Ways
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Team, list_kinds
from scheduler.state.pods import Life, PodRecord

# The label of a level, and the values that name a domain of the level.
DomainName = tuple[str, tuple[str, ...]]
_NOWHERE: DomainName = ("", ())
# The rules of systems that order ranks themselves.
_OWN_ORDER = frozenset({Rule.KUEUE, Rule.KAI, Rule.KOORDINATOR})
# Places a team among some rows, in the open trial; returns whether its minimum has a node.
Place = Callable[[Team, c.Flags], bool]


class Tries:
    """The tries of one attempt to place one group."""

    def __init__(
        self,
        cluster: Cluster,
        domains: Domains,
        count_places: CountPlaces,
        place_pods: RankOrder,
        ways: Ways,
        *,
        assign: Mapping[Rule, Assign],
        gathers: bool,
    ) -> None:
        """``assign``: rules of other systems; ``gathers``: pods without a constraint go to few domains as well."""
        self._cluster, self._domains, self._gathers = cluster, domains, gathers
        self._count_places, self._place_pods = count_places, place_pods
        self._ways, self._assign = ways, assign
        self._order = AsWritten(cluster)
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
        self._counted_beside: set[int] = set()
        # All of the group.
        self._whole = Team()

    def _try(self, place: Place, team: Team, among: c.Flags) -> bool:
        """Place a team; undo everything unless its minimum has a node."""
        self._cluster.pauses.take()
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

    def _note(self, tried: Outcome) -> None:
        """Note what was decided for pods by themselves."""
        self._binds += tried.binds
        self._holds += tried.holds

    def _put_in_rank_order(self, team: Team) -> None:
        """Hand the nodes that the parts of a team have to their pods in rank order.

        Other systems have an order of their own. Like pods of a large group are in order already: only for a small one, or
        beside pods that are there, they are not placed at once.
        """
        if self._has_own_order(team):
            return
        is_one = team.template is not None and not team.teams and not team.there
        if is_one and len(self._binds) > MEMBERS_MAX:
            return
        binds = {bind.uid: bind for bind in self._binds}
        before: list[str] = []
        for leaf in team.list_leaves():
            placed = [pod for pod in leaf.pods if pod.uid in binds]
            before += [pod.node for pod in leaf.there]
            again = self._place_pods.place_in_order(placed, binds, before)
            binds |= {bind.uid: bind for bind in again}
            before += [binds[pod.uid].node for pod in placed]
        self._binds = list(binds.values())

    def _has_own_order(self, team: Team) -> bool:
        """Whether the rules of another system, or slices, say which pods of a team go where."""
        wheres = [one.where for one in team.list_all() if one.where is not None]
        return any(one.rule in _OWN_ORDER or one.slices for one in wheres)

    def _is_there(self, team: Team) -> bool:
        """Whether a pod of a team has a node already: those that come later join it."""
        return any(leaf.there or self._count_assumed(leaf) for leaf in team.list_leaves())

    def _is_enough(self, team: Team) -> bool:
        """Whether as many pods of a team have a node as must have one at once."""
        return self._count_assumed(team) >= team.n_missing

    def _count_waiting(self, team: Team) -> int:
        return sum(len(self._list_waiting(leaf)) for leaf in team.list_leaves())

    def _find_waiting(self, team: Team) -> tuple[list[PodRecord], int]:
        return self._list_waiting(team), team.n_missing - self._count_assumed(team)

    def _count_templates(self, team: Team) -> int:
        """Count the kinds of pods of a team."""
        return len({id(pod.template) for leaf in team.list_leaves() for pod in leaf.pods})

    def _list_waiting(self, team: Team) -> list[PodRecord]:
        return self._list_pending(team.pods)

    def _list_pending(self, pods: Sequence[PodRecord]) -> list[PodRecord]:
        known = self._cluster.pods
        return [one for pod in pods if (one := known[pod.uid]).life == Life.PENDING]

    def _count_assumed(self, team: Team) -> int:
        pods = self._cluster.pods
        return sum(pods[pod.uid].life != Life.PENDING for pod in team.pods)

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
        """Order the domains of a level that may have places enough for the minimum of a team."""
        order, places = ordering.order_domains(
            self._domains, labels, list(self._list_kinds(team)), among
        )
        if order.size and self._count_templates(team) > 1:
            level = self._domains.get_level(labels)
            least = sum_least(self._cluster, team, self._find_waiting)
            enough = find_enough(self._cluster, least, level.domain, len(level.names), among)
            order = order[enough[order]]
        if order.size or not places.size:
            return order
        # None takes the team. The one that comes closest is tried all the same, to find out which pod lacks what there.
        return np.array([places.argmax()])

    def _list_kinds(self, team: Team, *, is_must: bool = True) -> Iterator[Kind]:
        """Yield the kinds of the waiting pods of a team; ``is_must``: it must have its minimum."""
        for one in team.teams:
            yield from self._list_kinds(one, is_must=is_must and team.minimum >= len(team.teams))
        waiting = self._list_waiting(team)
        n_left_out = len(team.pods) - team.n_missing
        for like in list_kinds(waiting):
            least = max(0, len(like) - n_left_out) if is_must else 0
            yield Kind(like, least, self._get_places(like[0]))

    def _get_places(self, pod: PodRecord) -> c.Ints:
        """Return [N] how many pods like one fit on each node at most."""
        key = id(pod.template)
        if key not in self._places:
            self._cluster.pauses.take()
            self._places[key] = self._count_places(pod, None)
            if self._binds:
                self._counted_beside.add(key)
        return self._places[key]

    def _count_anew(self) -> None:
        """Have those places counted anew that were counted while other pods of the group were on nodes."""
        for key in self._counted_beside:
            del self._places[key]
        self._counted_beside.clear()
