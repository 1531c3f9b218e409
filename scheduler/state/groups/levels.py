"""Topologies by name, and the levels that a constraint names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from scheduler.api import names
from scheduler.api.groups.definitions import Constraint, Level, Rule, Topology
from scheduler.state.entities import Where


class Topologies:
    """The topologies that objects describe, and the one of the configuration."""

    def __init__(self, default: Iterable[str], has_label: Callable[[str], bool]) -> None:
        """``default`` are the labels of the configuration's levels, the widest first.

        ``has_label`` says whether any node has a label: a level of the configuration that no node has does not count.
        """
        self._has_label = has_label
        # The configuration's levels that the cluster has.
        self._present: tuple[str, ...] = ()
        levels = tuple(Level(label, label) for label in default)
        self._default = Topology(Rule.KEEL, "", levels)
        # By the kind of the object and its name.
        self._taken: dict[tuple[str, str], Topology] = {}
        self._named: dict[tuple[Rule, str], Topology] = {}

    def take(self, kind: str, name: str, topology: Topology | None) -> bool:
        """Take over a topology that was added, has changed or is gone (None); return whether that changes anything."""
        before = self._taken.get((kind, name))
        if topology is None:
            self._taken.pop((kind, name), None)
        else:
            self._taken[kind, name] = topology
        self._named = {(one.rule, one.name): one for one in self._taken.values()}
        return before != topology

    def follow_levels(self) -> bool:
        """Return whether the cluster has other levels of the configuration than when this was called last."""
        before = self._present
        self._present = tuple(filter(self._has_label, self.default_labels))
        return self._present != before

    @property
    def default_labels(self) -> tuple[str, ...]:
        """The labels of the configuration's levels, the widest first."""
        return tuple(level.label for level in self._default.levels)

    def list_names(self, kind: str) -> list[str]:
        """List the names of the topologies of a kind of objects."""
        return [name for of, name in self._taken if of == kind]

    def resolve(self, constraint: Constraint) -> Where | str:
        """Return where a constraint says that pods go; a text if its topology, or a level, is missing."""
        wanted = [
            level
            for level in (
                constraint.required,
                *constraint.also_required,
                *constraint.preferred,
                *(one.level for one in constraint.slices),
            )
            if level
        ]
        topology = self._find_topology(constraint, wanted)
        if topology is None:
            return f'Topology "{constraint.topology}" does not exist'
        places = {level.name: i for i, level in reversed(list(enumerate(topology.levels)))}
        for level in wanted:
            if level not in places:
                known = ", ".join(places)
                return f'Topology "{topology.name}" has no level "{level}"; its levels are {known}'
        if constraint.rule != Rule.KOORDINATOR:
            # Koordinator's are no slices: a domain takes a multiple of their size, at any level.
            order = [places[one.level] for one in constraint.slices]
            outer = max(
                (places[one] for one in (constraint.required, *constraint.preferred) if one),
                default=-1,
            )
            if order != sorted(set(order)) or (order and order[0] < outer):
                return "slices must be at finer levels than what they lie in"
        required = [places[one] for one in (constraint.required, *constraint.also_required) if one]
        return Where(
            rule=constraint.rule,
            labels=tuple(level.label for level in topology.levels),
            # A domain of the finest level lies within one of each wider level.
            required=max(required, default=-1),
            preferred=tuple(_order_wishes(constraint, places)),
            spreads_freely=constraint.spreads_freely,
            slices=tuple((places[one.level], one.size) for one in constraint.slices),
        )

    def _find_topology(self, constraint: Constraint, wanted: list[str]) -> Topology | None:
        """Find the topology that a constraint names, or the first one that has all its levels."""
        if constraint.topology:
            return self._named.get((constraint.rule, constraint.topology))
        if constraint.rule == Rule.KUBERNETES:
            # Kubernetes knows no tree: equal values of the label are one domain, wherever they are.
            return Topology(constraint.rule, "", tuple(Level(one, one) for one in wanted))
        named = [self._named[key] for key in sorted(self._named) if key[0] == constraint.rule]
        for topology in (*named, self._make_default(wanted)):
            if {level.name for level in topology.levels}.issuperset(wanted):
                return topology
        if named and constraint.rule == Rule.KOORDINATOR:
            # Its layers have names of their own, and are no labels.
            return named[0]
        # Nobody describes these levels: each label is a level of its own, down to single nodes.
        labels = dict.fromkeys([*wanted, names.HOSTNAME])
        return Topology(constraint.rule, "", tuple(Level(one, one) for one in labels))

    def _make_default(self, wanted: Sequence[str]) -> Topology:
        """Make the topology of the configuration, of the levels that the cluster has and of those that are wanted."""
        levels = tuple(
            level
            for level in self._default.levels
            if level.name in wanted or self._has_label(level.label)
        )
        return Topology(Rule.KEEL, "", levels)


def _order_wishes(constraint: Constraint, places: Mapping[str, int]) -> list[int]:
    """Order preferred levels. Koordinator writes them in any order, and the finest one comes first."""
    wishes = [places[level] for level in constraint.preferred]
    return sorted(wishes, reverse=True) if constraint.rule == Rule.KOORDINATOR else wishes
