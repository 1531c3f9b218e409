"""VolumeZone: the node is in the zone of its bound volumes' labels; a node without zone labels is accepted.

Source: kube-scheduler's volumezone/volume_zone.go.
"""

from __future__ import annotations

import numpy as np

from scheduler.api import names
from scheduler.plugins import node_terms
from scheduler.plugins.contract import (
    Change,
    Domain,
    Held,
    Hint,
    Reason,
    Rule,
    Standing,
    Tally,
    never,
)
from scheduler.plugins.contract import nothing_of_templates as concerns
from scheduler.plugins.volumes.refusals import ZONE
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.volumes.objects import Zone

_NEW = {names.OLD_ZONE: names.ZONE, names.OLD_REGION: names.REGION}
_KEYS = (names.OLD_ZONE, names.OLD_REGION, names.ZONE, names.REGION)
_Zones = tuple[Zone, ...]


class _Elsewhere:
    """By row, whether a node is not where volumes are."""

    def __init__(self, cluster: Cluster, zones: _Zones) -> None:
        self._cluster, self._zones = cluster, zones

    @property
    def version(self) -> int:
        """Rises with the labels of nodes."""
        return self._cluster.storage.labelled.position

    def by_row(self, capacity: int) -> c.Ints:
        """[capacity] 1 where it is not."""
        nodes = self._cluster.nodes
        rows = np.arange(capacity)
        tells = np.logical_or.reduce([nodes.get_label_column(key) >= 0 for key in _KEYS])
        is_elsewhere = np.zeros(capacity, np.bool_)
        for key, values in self._zones:
            wanted = tuple(sorted(values))
            matches = node_terms.has_one_of(nodes, key, wanted, rows)
            if key in _NEW:
                # If a node does not have the old label, the new one is read.
                has_old = nodes.get_label_column(key) >= 0
                new = node_terms.has_one_of(nodes, _NEW[key], wanted, rows)
                matches = np.where(has_old, matches, new)
            is_elsewhere |= ~matches
        found: c.Ints = (tells & is_elsewhere).astype(np.int64)
        return found


def _needs(pod: Standing, _: Cluster) -> _Zones | None:
    return (pod.storage.zones or None) if pod.storage else None


def _tallies(zones: _Zones, cluster: Cluster) -> tuple[Tally, ...]:
    return (Tally(count=_Elsewhere(cluster, zones), gain=0),)


def _hint(_: Held) -> Hint:
    """The zone of a node changed or was removed; pods that name a changed volume are tried again in any case."""
    return Hint(here=tuple((Change.NODE_LABELS, key) for key in _KEYS))


RULE = Rule(
    name=ZONE,
    reasons=(Reason("node(s) had no available volume zone", resolvable=False),),
    domain=Domain(concerns=concerns, needs=_needs, tallies=_tallies, is_wide=never),
    hint=_hint,
)
