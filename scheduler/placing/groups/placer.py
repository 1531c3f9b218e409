"""Places groups, each by the rules that its profile asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from scheduler.api.door.decisions import Plan
from scheduler.api.groups.definitions import Rule
from scheduler.api.placement import SPREAD, Mode, Placement
from scheduler.api.pods.templates import PodTemplate
from scheduler.placing.groups import by_kai, by_koordinator, by_kueue, choosing
from scheduler.placing.groups.attempts import Attempt
from scheduler.placing.groups.choices import Assign, CountPlaces, PlacePods
from scheduler.placing.groups.domains import Domains, find_domains_there
from scheduler.placing.groups.kai_attempts import KaiAttempt
from scheduler.placing.groups.kubernetes import KubeAttempt
from scheduler.placing.groups.ranks import RankOrder
from scheduler.placing.groups.ways import Ways
from scheduler.schema import columns as c
from scheduler.schema.world import ANYWHERE
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity, Entity, Team
from scheduler.state.pods import PodRecord

# Finds how a pod is to be placed.
FindPlacement = Callable[[PodRecord], Placement]


class Closest(NamedTuple):
    """The domains of a level that come closest to taking a group.

    Attributes:
        label: the label of the level.
        n_domains: how many domains the level has.
        domains: for each of these the values that name the domain, and [N] its nodes.
    """

    label: str
    n_domains: int
    domains: list[tuple[tuple[str, ...], c.Flags]]


def _gathers(entity: Entity, placement: Placement) -> bool:
    """Whether a group without a constraint goes to few domains: one with devices, whose owner does not spread pods.

    Pods with rules about other pods of theirs go where these rules lead.
    """
    if any(one.where is not None and one.where.rule != Rule.KEEL for one in entity.team.list_all()):
        return False
    is_free = not placement.node_policy and placement.objective != SPREAD
    if placement.mode != Mode.KEEL or not is_free:
        return False
    kinds = [one for leaf in entity.team.list_leaves() for one in _list_templates(leaf)]
    has_rules = any(one.has_terms or one.spread for one in kinds)
    return any(one.gpu is not None for one in kinds) and not has_rules


def _list_templates(leaf: Team) -> Iterable[PodTemplate]:
    """List the templates of the pods of a leaf; some may be there twice."""
    return [pod.template for pod in leaf.pods] if leaf.template is None else [leaf.template]


def split_entities(batch: Iterable[AnyEntity]) -> Iterator[list[PodRecord] | Entity]:
    """Yield single pods that follow each other as one list, and each group by itself."""
    pods: list[PodRecord] = []
    for one in batch:
        if not isinstance(one, Entity):
            pods.append(one)
            continue
        if pods:
            yield pods
            pods = []
        yield one
    if pods:
        yield pods


class Placer:
    """Places the groups of one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        domains: Domains,
        ways: Ways,
        count_places: CountPlaces,
        find_placement: FindPlacement,
        *,
        balances: bool,
    ) -> None:
        """``balances``: groups that prefer a level in Kueue's words get balanced placement."""
        self._assign: Mapping[Rule, Assign] = {
            Rule.KUEUE: partial(by_kueue.list_steps, balances=balances),
            Rule.KOORDINATOR: by_koordinator.list_steps,
        }
        self._cluster, self._count_places = cluster, count_places
        self._ways, self._find_placement = ways, find_placement
        self._domains = domains

    def place(self, entity: Entity, place_pods: PlacePods, rows: c.Flags = ANYWHERE) -> Plan:
        """Place all members that fit, or none if fewer would have a node than must have one at once.

        A member whose bind is under way has a node. The plan's hold is that of the first member that does not fit.

        Args:
            entity: the group.
            place_pods: decides for pods one by one, and charges those that it places.
            rows: [N] the only nodes that may be chosen, [0] for all nodes.
        """
        if self.is_exact(entity):
            plugins = self._find_placement(entity.members[0]).kube
            exact = KubeAttempt(self._cluster, self._domains, place_pods, plugins)
            return exact.place(entity, rows)
        return self.place_most(entity, place_pods, rows)

    def is_exact(self, entity: Entity) -> bool:
        """Whether a group is placed as kube-scheduler does, to the letter."""
        return self._find_placement(entity.members[0]).mode == Mode.KUBE_SCHEDULER

    def place_most(self, entity: Entity, place_pods: PlacePods, rows: c.Flags = ANYWHERE) -> Plan:
        """Place a group as ``place`` does, but by keel's rules: these count how many of its pods fit if too few do."""
        make = KaiAttempt if by_kai.is_asked(entity.team) else Attempt
        gathers = _gathers(entity, self._find_placement(entity.members[0]))
        attempt = make(
            self._cluster,
            self._domains,
            self._count_places,
            RankOrder(self._cluster, self._domains, place_pods),
            self._ways,
            assign=self._assign,
            gathers=gathers,
        )
        return attempt.place(entity, rows, reorders=not self.is_exact(entity))

    def list_places(self, entity: Entity) -> list[c.Flags]:
        """List [N] the nodes of each domain in which all of a group would be; [0] for all nodes."""
        where = entity.team.where
        if self.is_exact(entity) or where is None or where.required < 0:
            return [ANYWHERE]
        level = self._domains.get_level(where.labels[: where.required + 1])
        there = find_domains_there(self._cluster, entity.team, level.domain)
        numbers = range(len(level.names)) if not there else sorted(there)[: 2 - len(there)]
        return [level.domain == number for number in numbers if number >= 0]

    def list_closest(self, entity: Entity, labels: tuple[str, ...], most: int) -> Closest:
        """List the domains of the last of some labels that have places for the most pods of a group, at most ``most``.

        A group that requires a domain at this level or above it, and of which a pod has a node, has only the domains
        in which its pods are. The places are those for pods like the first of the largest part.
        """
        level = self._domains.get_level(labels)
        numbers = list(range(len(level.names)))
        where = entity.team.where
        if where is not None and where.required >= len(labels) - 1:
            there = find_domains_there(self._cluster, entity.team, level.domain)
            numbers = sorted(there - {-1}) if there else numbers
        largest = max(entity.team.list_leaves(), key=lambda leaf: len(leaf.pods))
        places = choosing.sum_places(
            self._count_places(largest.pods[0], None), level.domain, len(level.names), ANYWHERE
        )
        fitting = np.minimum(places, len(largest.pods))
        numbers.sort(key=lambda number: (-fitting[number], places[number], number))
        domains = [(level.names[number], level.domain == number) for number in numbers[:most]]
        return Closest(labels[-1], len(level.names), domains)
