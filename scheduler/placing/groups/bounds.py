"""Whether a group that waits could be placed at all, as far as amounts say: thousands of groups are asked about at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from scheduler.api.pods.templates import PodTemplate
from scheduler.placing.groups import choosing
from scheduler.placing.groups.amounts import (
    find_all_waiting,
    find_enough,
    have_enough,
    sum_least,
)
from scheduler.placing.groups.domains import Domains
from scheduler.schema import columns as c
from scheduler.schema.world import ANYWHERE
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity, Team, Where, list_kinds
from scheduler.state.pods import PodRecord

# Of a group with more kinds of pods not all are counted, because each takes as long as a decision.
_KINDS_MAX = 8


class Bounds:
    """The most pods of a template that fit in one domain, kept until anything moves."""

    def __init__(
        self,
        cluster: Cluster,
        domains: Domains,
        count_places: Callable[[PodRecord], c.Ints],
        make_counter: Callable[[PodRecord], Callable[[], c.Ints]],
        needs_only_amounts: Callable[[PodRecord], bool],
        tell_yielding: Callable[[PodRecord], Hashable],
    ) -> None:
        """Take the questions that the bounds are found by.

        Args:
            cluster: the cluster.
            domains: its domains.
            count_places: counts [N] how many pods like one fit on each node at most.
            make_counter: makes a function that counts the same by the amounts at its call, and reads no board then.
            needs_only_amounts: whether no rule about other pods or volumes decides where a pod fits.
            tell_yielding: returns a value that is equal for pods that leave the same promised room free.
        """
        self._cluster, self._domains, self._count_places = cluster, domains, count_places
        self._make_counter, self._tell_yielding = make_counter, tell_yielding
        self._needs_only_amounts = needs_only_amounts
        # With the template: while it is kept, no other template has its identity.
        self._known: dict[Hashable, tuple[PodTemplate, int]] = {}
        self._known_at = -1

    def could_fit(self, entity: Entity) -> bool:
        """Whether the minimum of a group could have a node at once, if each template's pods had all room for themselves."""
        team = entity.team
        labels = _list_labels(team.where)
        if team.template is not None and not team.teams:
            return team.n_missing <= self._get_most(team.pods[0], labels)
        if any(n > self._get_most(pod, labels) for pod, n in team.list_needs()):
            return False
        return self._have_enough(team, labels)

    def _have_enough(self, team: Team, labels: tuple[str, ...]) -> bool:
        """Whether the nodes of any domain together have enough free for all pods that must have a node at once."""
        least = sum_least(self._cluster, team, find_all_waiting)
        if not labels:
            return have_enough(self._cluster, least, ANYWHERE)
        level = self._domains.get_level(labels)
        n_domains = len(level.names)
        return bool(find_enough(self._cluster, least, level.domain, n_domains, ANYWHERE).any())

    def _get_most(self, pod: PodRecord, labels: tuple[str, ...]) -> int:
        """Return the most pods like one that fit in one domain."""
        if self._known_at != self._cluster.moved.position:
            self._known, self._known_at = {}, self._cluster.moved.position
        by = id(pod.template), labels, self._tell_yielding(pod)
        if by not in self._known:
            self._known[by] = pod.template, self._find_most(pod, labels)
        return self._known[by][1]

    def count_without(
        self, kinds: Sequence[Sequence[PodRecord]], others: c.Ints
    ) -> list[c.Ints] | None:
        """Count [N] for each kind of pods how many would fit on each node at most without others.

        Args:
            kinds: pods of one template each.
            others: [k] rows of the pod table.

        Returns:
            The counts; None if amounts alone do not say so, or there are many kinds.
        """
        if len(kinds) > _KINDS_MAX or not all(self._needs_only_amounts(like[0]) for like in kinds):
            return None
        with self._cluster.roster.lift_charges(others):
            return [self._count_places(like[0]) for like in kinds]

    def could_fit_without(self, entity: Entity, others: c.Ints) -> bool:
        """Whether the minimum of a group could have a node at once without others; True if amounts do not say so."""
        needs = entity.team.list_needs()
        is_counted = len(needs) <= _KINDS_MAX and all(
            self._needs_only_amounts(pod) for pod, _ in needs
        )
        with self._cluster.roster.lift_charges(others):
            if is_counted:
                return self.could_fit(entity)
            return self._have_enough(entity.team, _list_labels(entity.team.where))

    def list_fitting_without(
        self, groups: Sequence[Entity], rows: c.Ints | None, others: c.Ints
    ) -> list[Entity]:
        """List the groups that could fit without others [k], with a pod on one of some rows [n]; None for all rows.

        A group of which amounts alone do not say so is listed if all that it requests is free together.
        """
        counters: dict[Hashable, Callable[[], c.Ints]] = {}
        for pod in (like[0] for one in groups for like in list_kinds(one.members)[:_KINDS_MAX]):
            by = self._make_kind(pod)
            if by not in counters and self._needs_only_amounts(pod):
                counters[by] = self._make_counter(pod)
        with self._cluster.roster.lift_charges(others, is_quiet=True):
            places = {by: count() for by, count in counters.items()}
            some = [
                one for one in groups if self._have_enough(one.team, _list_labels(one.team.where))
            ]
        return [one for one in some if self._have_places(one, rows, places)]

    def _have_places(
        self, entity: Entity, rows: c.Ints | None, places: Mapping[Hashable, c.Ints]
    ) -> bool:
        """Whether there are places [N] for all kinds of pods of a group, and on some rows for one of them."""
        labels = _list_labels(entity.team.where)
        needs = [(self._make_kind(pod), n) for pod, n in entity.team.list_needs()]
        if any(by in places and n > self._sum_most(places[by], labels) for by, n in needs):
            return False
        kinds = [self._make_kind(like[0]) for like in list_kinds(entity.members)]
        return rows is None or any(by not in places or places[by][rows].any() for by in kinds)

    def _make_kind(self, pod: PodRecord) -> Hashable:
        """Make a value that is equal for pods of which as many fit on each node."""
        return id(pod.template), self._tell_yielding(pod)

    def have_enough_without(self, entity: Entity, rows: c.Flags, others: c.Ints) -> bool:
        """Whether some rows [N], [0] for all, together have enough free for the minimum of a group without others [k]."""
        least = sum_least(self._cluster, entity.team, find_all_waiting)
        with self._cluster.roster.lift_charges(others):
            return have_enough(self._cluster, least, rows)

    def _find_most(self, pod: PodRecord, labels: tuple[str, ...]) -> int:
        return self._sum_most(self._count_places(pod), labels)

    def _sum_most(self, places: c.Ints, labels: tuple[str, ...]) -> int:
        """Sum up places [N] in each domain, and return the most that there are in one."""
        if not labels:
            return int(places.sum())
        level = self._domains.get_level(labels)
        sums = choosing.sum_places(places, level.domain, len(level.names), ANYWHERE)
        return int(sums.max(initial=0))


def _list_labels(where: Where | None) -> tuple[str, ...]:
    """List the labels down to the level that is required; none if no level is."""
    return () if where is None else where.labels[: where.required + 1]
