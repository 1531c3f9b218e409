"""VolumeZone: the node is in the zone that the pod's bound volumes have as labels; a node without zone labels fits.

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
    is_never_wide,
)
from scheduler.plugins.contract import concerns_no_template as concerns
from scheduler.plugins.volumes.refusals import ZONE
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.volumes.objects import Zone

_NEW = {names.OLD_ZONE: names.ZONE, names.OLD_REGION: names.REGION}
_KEYS = (names.OLD_ZONE, names.OLD_REGION, names.ZONE, names.REGION)
_Zones = tuple[Zone, ...]


class _Elsewhere:
    """By row, whether the node is outside the zones of the volumes."""

    def __init__(self, cluster: Cluster, zones: _Zones) -> None:
        self._cluster, self._zones = cluster, zones

    @property
    def version(self) -> int:
        """Rises with the labels of nodes."""
        return self._cluster.storage.labelled.position

    def list_by_row(self, capacity: int) -> c.Ints:
        """[capacity] 1 for a node outside the zones."""
        nodes = self._cluster.nodes
        rows = np.arange(capacity)
        tells = np.logical_or.reduce([nodes.get_label_column(key) >= 0 for key in _KEYS])
        is_elsewhere = np.zeros(capacity, np.bool_)
        for key, values in self._zones:
            wanted = tuple(sorted(values))
            matches = node_terms.match_values(nodes, key, wanted, rows)
            if key in _NEW:
                # If a node does not have the old label, the new label is read.
                has_old = nodes.get_label_column(key) >= 0
                new = node_terms.match_values(nodes, _NEW[key], wanted, rows)
                matches = np.where(has_old, matches, new)
            is_elsewhere |= ~matches
        found: c.Ints = (tells & is_elsewhere).astype(np.int64)
        return found


def _read_zones(pod: Standing, _: Cluster) -> _Zones | None:
    return (pod.storage.zones or None) if pod.storage else None


def _list_tallies(zones: _Zones, cluster: Cluster) -> tuple[Tally, ...]:
    return (Tally(count=_Elsewhere(cluster, zones), gain=0),)


def _make_hint(_: Held) -> Hint:
    """A zone label of a node changed or was removed. Pods that name a changed volume are tried again in any case."""
    return Hint(here=tuple((Change.NODE_LABELS, key) for key in _KEYS))


RULE = Rule(
    name=ZONE,
    reasons=(Reason("node(s) had no available volume zone", resolvable=False),),
    domain=Domain(
        concerns=concerns, needs=_read_zones, tallies=_list_tallies, is_wide=is_never_wide
    ),
    hint=_make_hint,
)
