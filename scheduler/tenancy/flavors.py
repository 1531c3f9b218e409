"""Which flavors a pod set could get: by the taints and labels of their nodes, and by their topology.

Source: Kueue (2026-08), ``flavorassigner.checkFlavorForPodSets``, ``flavorSelector`` and
``checkPodSetAndFlavorMatchForTAS``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from scheduler.api.pods.tolerations import is_hard, tolerates
from scheduler.api.queues.definitions import Flavor
from scheduler.api.queues.workloads import PodShape
from scheduler.api.selectors import meets_requirement

# The fields of a topology request that name a level.
_LEVELS = ("required", "preferred", "podSetSliceRequiredTopology")


class FlavorBook:
    """The flavors, and whom they suit.

    Attributes:
        flavors: the flavors by name.
        ignores_undeclared: whether pods need no flavor of a resource that their queue has no quota of.
    """

    def __init__(self, *, ignores_undeclared: bool = False) -> None:
        self.ignores_undeclared = ignores_undeclared
        self.flavors: dict[str, Flavor] = {}
        # The labels of nodes that are the levels of each topology.
        self._levels: dict[str, tuple[str, ...]] = {}
        self._known: dict[tuple[str, int, bool, frozenset[str]], tuple[PodShape, str]] = {}

    def put(self, flavor: Flavor) -> bool:
        """Add or replace a flavor; return whether that changes anything."""
        if self.flavors.get(flavor.name) == flavor:
            return False
        self.flavors[flavor.name] = flavor
        self._known.clear()
        return True

    def drop(self, name: str) -> None:
        """Remove a flavor."""
        if self.flavors.pop(name, None) is not None:
            self._known.clear()

    def put_topology(self, name: str, levels: tuple[str, ...] | None) -> bool:
        """Add, replace or remove a topology; return whether that changes anything."""
        before = self._levels.get(name)
        if levels is None:
            self._levels.pop(name, None)
        else:
            self._levels[name] = levels
        self._known.clear()
        return before != levels

    def has_topology(self, name: str) -> bool:
        """Whether there is a topology."""
        return name in self._levels

    def get_levels(self, name: str) -> tuple[str, ...]:
        """Return the labels of nodes that are the levels of a topology, the widest first; none if it is not there."""
        return self._levels.get(name, ())

    def is_of_topologies(self, flavors: Collection[str]) -> bool:
        """Whether there are flavors, and all of them have a topology: their pods are placed by it without asking."""
        return bool(flavors) and all(
            name in self.flavors and self.flavors[name].topology for name in flavors
        )

    def find_refusal(
        self, name: str, shape: PodShape, resources: frozenset[str], *, is_implied: bool
    ) -> str:
        """Say why a pod set cannot get a flavor; empty if it can.

        Args:
            name: the flavor.
            shape: of the pod set.
            resources: the resources that the flavor gives.
            is_implied: all flavors of the queue have a topology.
        """
        # Shapes are kept with what is known of them, so no other one gets their identity meanwhile.
        key = name, id(shape), is_implied, resources
        known = self._known.get(key)
        if known is None:
            why = self._judge(name, shape, resources, is_implied=is_implied)
            known = self._known[key] = shape, why
        return known[1]

    def _judge(
        self, name: str, shape: PodShape, resources: frozenset[str], *, is_implied: bool
    ) -> str:
        flavor = self.flavors.get(name)
        if flavor is None:
            return f"flavor {name} not found"
        if why := self._judge_topology(flavor, shape, resources, is_implied=is_implied):
            return why
        tolerations = (*shape.tolerations, *flavor.tolerations)
        for taint in flavor.taints:
            key, value, effect = taint
            if is_hard(taint) and not tolerates(tolerations, taint, compares=True):
                return f"untolerated taint {{{key} {value} {effect} <nil>}} in flavor {name}"
        if not _matches_nodes(flavor.labels, shape):
            return f"flavor {name} doesn't match node affinity"
        return ""

    def _judge_topology(
        self, flavor: Flavor, shape: PodShape, resources: frozenset[str], *, is_implied: bool
    ) -> str:
        if not shape.asks_topology:
            if is_implied or not flavor.topology:
                return ""
            return f'Flavor "{flavor.name}" supports only TopologyAwareScheduling'
        if not flavor.topology:
            if resources.isdisjoint(resource for resource, _ in shape.requests):
                return ""
            return f'Flavor "{flavor.name}" does not support TopologyAwareScheduling'
        levels, asked = self._levels.get(flavor.topology), shape.topology or {}
        if levels is None:
            return f'Flavor "{flavor.name}" information missing in TAS cache'
        lacks = any(asked.get(one) and asked[one] not in levels for one in _LEVELS)
        return f'Flavor "{flavor.name}" does not contain the requested level' if lacks else ""


def _matches_nodes(labels: Mapping[str, str], shape: PodShape) -> bool:
    """Whether nodes with these labels suit a pod set; what it says of other labels does not count."""
    if any(key in labels and labels[key] != value for key, value in shape.selector):
        return False
    if not shape.required:
        return True
    for term in shape.required:
        # A term that says nothing of these labels suits all nodes.
        if all(meets_requirement(one, labels) for one in term if one.key in labels):
            return True
    return False
