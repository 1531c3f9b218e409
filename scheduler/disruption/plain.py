"""Nodes on which the pods with promised room mean nothing but amounts to a pod that yields to them.

There the amounts are added for a moment, instead of placing the promised pods in a trial, which takes fifty times as long:
while the victims of a large group leave, hundreds of nodes are promised, and other pods are decided about.
"""

from __future__ import annotations

from scheduler.shapes.boards import Boards
from scheduler.shapes.keys import Keys
from scheduler.shapes.views import ALONE
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

# Pods by the row that they are nominated to.
ByRow = dict[int, list[PodRecord]]


class PlainPromises:
    """Finds such nodes on one cluster."""

    def __init__(self, cluster: Cluster, boards: Boards, keys: Keys) -> None:
        self._cluster, self._boards, self._keys = cluster, boards, keys

    def list_plain(self, pod: PodRecord, promised: ByRow) -> ByRow:
        """List the rows on which promised pods, none of which says anything of others, mean but amounts to a pod."""
        key = self._keys.make_key(pod)
        if key is None or key.view is not ALONE:
            return {}
        find_name, later = self._cluster.nodes.find_name, self._cluster.later.on
        families = self._find_families(promised) if pod.template.most else {}
        columns, find_pool = self._cluster.nodes.columns, self._cluster.registers.find_pool
        return {
            row: pods
            for row, pods in promised.items()
            # Pods that will have ended by then do not count beside what is promised for later. Ports mean nothing to a pod that
            # has none; one that has some is not alone.
            if find_name(row) not in later
            and not any(
                one.volumes is not None
                or columns.pools.managed[find_pool(families.get(id(one.template), -1), row)]
                for one in pods
            )
        }

    def _find_families(self, promised: ByRow) -> dict[int, int]:
        """Find by the identity of its template the family of cards that a promised pod requests, if it requests any."""
        templates = {one.template: one for pods in promised.values() for one in pods}
        found: dict[int, int] = {}
        for template, pod in templates.items():
            key = self._keys.make_key(pod) if template.most else None
            if key is not None:
                found[id(template)] = self._boards.make_unscored(key).ask.family
        return found
