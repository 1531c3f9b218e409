"""In which order the pods of a group are placed: its parts, the pods of a part, and the kinds of pods that are gathered.

Pods that want others near them come after these. Else parts come as they are written, and pods by rank and age. So small
pods may take the room of large ones. A group that does not fit in this order may fit if its largest pods come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler.api.pods import gpus
from scheduler.api.pods.templates import PodTemplate
from scheduler.placing.groups.ordering import Kind
from scheduler.placing.groups.wanting import put_wanted_first, waits_for_others
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Team
from scheduler.state.pods import PodRecord

# The shares of the nodes that a pod requests, the greatest first.
_Shares = tuple[float, ...]


class AsWritten:
    """The order of the group itself."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def list_pods(self, team: Team) -> list[PodRecord]:
        """List the pods of a team as they are placed if each of its parts is."""
        if not team.teams:
            return self.order_pods(team.pods)
        return [pod for one in self.order_parts(team.teams) for pod in self.list_pods(one)]

    def order_pods(self, pods: Sequence[PodRecord]) -> list[PodRecord]:
        """Order the pods of a part."""
        return put_wanted_first(self._cluster, pods)

    def order_parts(self, parts: Sequence[Team]) -> list[Team]:
        """Order the parts of a team: one whose pods want pods of others near them comes after these."""
        pods = [pod for one in parts for leaf in one.list_leaves() for pod in leaf.pods]
        ordered = put_wanted_first(self._cluster, pods)
        if ordered == pods:
            return list(parts)
        places = {pod.uid: i for i, pod in enumerate(ordered)}

        def find_last(one: Team) -> int:
            mine = (places[pod.uid] for leaf in one.list_leaves() for pod in leaf.pods)
            return max(mine, default=-1)

        return sorted(parts, key=find_last)

    def order_kinds(self, kinds: Sequence[Kind]) -> list[Kind]:
        """Order the kinds of pods that are gathered in few domains."""
        ordered = sorted(kinds, key=self._rate_kind, reverse=True)
        return sorted(ordered, key=lambda one: waits_for_others(self._cluster, one.pods[0]))

    def _rate_kind(self, kind: Kind) -> Any:
        """Return what the kind has most of that is gathered first: the cards of all its pods."""
        return kind.size


class LargestFirst(AsWritten):
    """The order in which the largest pods come first, and the parts that have them; else the group's own.

    The size of a pod is the greatest share that it requests of what the largest node has: of any resource, and of the
    cores and the memory of cards. Of pods with equal shares the next greatest counts, and of such parts the number of pods.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        nodes = cluster.nodes.columns
        # [R]: the most that any node has.
        self._most = nodes.allocatable[:, nodes.valid].max(axis=1, initial=0)
        self._shares: dict[int, _Shares] = {}

    def order_pods(self, pods: Sequence[PodRecord]) -> list[PodRecord]:
        """Order the pods of a part, the largest first."""
        return super().order_pods(sorted(pods, key=self._find_shares, reverse=True))

    def order_parts(self, parts: Sequence[Team]) -> list[Team]:
        """Order the parts of a team: first those that have the largest pods."""
        return super().order_parts(sorted(parts, key=self._rate_part, reverse=True))

    def _rate_kind(self, kind: Kind) -> Any:
        return self._find_shares(kind.pods[0]), kind.size

    def _rate_part(self, part: Team) -> tuple[_Shares, int]:
        pods = [pod for leaf in part.list_leaves() for pod in leaf.pods]
        return max(map(self._find_shares, pods), default=()), len(pods)

    def _find_shares(self, pod: PodRecord) -> _Shares:
        """Find the shares of what the largest node has that a pod requests, the greatest first."""
        template = pod.template
        if id(template) not in self._shares:
            shares = [*self._list_shares(template), *self._list_shares_of_cards(template)]
            self._shares[id(template)] = tuple(sorted(shares, reverse=True))
        return self._shares[id(template)]

    def _list_shares(self, template: PodTemplate) -> list[float]:
        find = self._cluster.nodes.resources.find
        found = [(find(name), amount) for name, amount in template.requests.amounts]
        return [
            amount / int(self._most[row]) for row, amount in found if row >= 0 and self._most[row]
        ]

    def _list_shares_of_cards(self, template: PodTemplate) -> list[float]:
        if template.gpu is None:
            return []
        asked = gpus.sum_up(template.gpu)
        nodes = self._cluster.nodes
        pools = nodes.find_pools(nodes.devices.find_family(template.gpu.family))
        most = nodes.columns.pools.total[:, pools[nodes.columns.valid]].max(axis=1, initial=0)
        # Memory in percent of a card is a share as cores are, of which each card has 100 percent.
        figures = (c.CORES, max(asked.cores, asked.mem_percent)), (c.MIB, asked.mem_mib)
        return [asked.cards * each / int(most[figure]) for figure, each in figures if most[figure]]
