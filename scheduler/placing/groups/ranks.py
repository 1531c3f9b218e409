"""Hands pods that have ranks to nodes in rank order: consecutive ranks go to the same node, and to the same domain.

Which nodes a group gets, and how many of its pods each, is decided before. Pods of one template change places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scheduler.api import names
from scheduler.api.door.decisions import Bind, Outcome
from scheduler.api.groups.readers.reading import parse_rank
from scheduler.placing.groups.choices import PlacePods
from scheduler.placing.groups.domains import Domains
from scheduler.schema import columns as c
from scheduler.schema.world import ANY_ROWS, ANYWHERE
from scheduler.state.cluster import Cluster
from scheduler.state.entities import list_kinds
from scheduler.state.pods import PodRecord


class RankOrder:
    """Places pods as ``place_pods`` does, and hands them to the nodes in rank order."""

    def __init__(self, cluster: Cluster, domains: Domains, place_pods: PlacePods) -> None:
        self._cluster, self._domains, self._place_pods = cluster, domains, place_pods
        # The pods that were placed first: the next ones begin beside them, such as workers beside their leader.
        self._earlier: dict[str, None] = {}

    def __call__(self, pods: list[PodRecord], among: c.Flags, wanted: c.Ints = ANY_ROWS) -> Outcome:
        """Place pods [k] among rows [N], [0] for all; each on its own row of ``wanted`` [k] if there are any."""
        outcome = self._place(pods, among, wanted)
        self._earlier |= dict.fromkeys(bind.uid for bind in outcome.binds)
        return outcome

    def _place(self, pods: list[PodRecord], among: c.Flags, wanted: c.Ints) -> Outcome:
        if wanted.size or len(pods) < 2 or not any(_find_place(pod) for pod in pods):
            return self._place_pods(pods, among, wanted)
        with self._cluster.trial() as trial:
            outcome = self._place_pods(pods, among)
            found = {bind.uid: self._cluster.nodes.find_row(bind.node) for bind in outcome.binds}
            placed = [pod for pod in pods if pod.uid in found]
            rows = np.array([found[pod.uid] for pod in placed], np.int64)
            before = [self._cluster.pods[uid].node for uid in self._earlier]
            ordered = self._put_in_order(placed, rows, before)
            if (ordered == rows).all():
                trial.commit()
                return outcome
        with self._cluster.trial() as trial:
            again = self._place_pods(placed, ANYWHERE, ordered)
            if len(again.binds) == len(placed):
                trial.commit()
                again.plans += [plan for plan in outcome.plans if plan.hold is not None]
                return again
        # Rules about other pods may let them come to these nodes in no other order.
        return self._place_pods(pods, among)

    def place_in_order(
        self, pods: Sequence[PodRecord], binds: Mapping[str, Bind], before: Sequence[str]
    ) -> list[Bind]:
        """Hand the nodes of pods of one part to them in rank order, in the open trial; return the new binds, if any.

        Args:
            pods: the pods, in rank order if the group knows their ranks.
            binds: by uid, in the order in which the pods came: rules about other pods may allow no other one.
            before: the nodes of pods beside which they begin.
        """
        if not any(_find_place(pod) for pod in pods):
            return []
        nodes = self._cluster.nodes
        rows = np.array([nodes.find_row(binds[pod.uid].node) for pod in pods], np.int64)
        ordered = self._put_in_order(pods, rows, before)
        if (ordered == rows).all():
            return []
        wanted = {pod.uid: row for pod, row in zip(pods, ordered.tolist(), strict=True)}
        uids = [uid for uid in binds if uid in wanted]
        with self._cluster.trial() as trial:
            for uid in uids:
                self._cluster.forget(uid)
            again = [self._cluster.pods[uid] for uid in uids]
            where = np.array([wanted[uid] for uid in uids], np.int64)
            outcome = self._place_pods(again, ANYWHERE, where)
            if len(outcome.binds) == len(uids):
                trial.commit()
                return outcome.binds
        return []

    def _put_in_order(
        self, pods: Sequence[PodRecord], rows: c.Ints, before: Sequence[str]
    ) -> c.Ints:
        """Return [pods] the rows that placed pods get if those of one template change places."""
        order, ordered = self._order_rows(rows, before), rows.copy()
        at = {pod.uid: i for i, pod in enumerate(pods)}
        for kind in list_kinds(pods):
            places = [place for pod in kind if (place := _find_place(pod)) is not None]
            if len(places) == len(kind):
                by_rank = sorted(range(len(kind)), key=places.__getitem__)
                mine = np.array([at[kind[i].uid] for i in by_rank], np.int64)
                ordered[mine] = rows[mine[np.argsort(order[mine], kind="stable")]]
        return ordered

    def _order_rows(self, rows: c.Ints, before: Sequence[str]) -> c.Ints:
        """Return [rows] their places in an order in which those of a node, and of a domain, follow each other.

        Nodes and domains are in the order in which they come first, with those of earlier pods before them.
        """
        nodes, labels = self._cluster.nodes, self._domains.list_inner(())
        earlier = [row for name in before if (row := nodes.find_row(name)) >= 0]
        every = np.concatenate((np.array(earlier, np.int64), rows))
        levels = [self._domains.get_level(labels[:n]).domain for n in range(len(labels), 0, -1)]
        firsts = []
        for key in (every, *(domain[every] for domain in levels)):
            _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
            firsts.append(first[inverse][len(earlier) :])
        order = np.lexsort(firsts)
        places = np.empty_like(order)
        places[order] = np.arange(order.size)
        return places


def _find_place(pod: PodRecord) -> tuple[tuple[str, ...], int] | None:
    """Find the place of a pod among those of its template: by its controller and rank; None for a pod without a rank.

    Pods of a group that knows their ranks are in order already, so they have the same place.
    """
    says = pod.member or pod.owned
    if says is not None and says.index >= 0:
        return (), 0
    rank = parse_rank((pod.labels or {}).get(names.JOB_INDEX))
    return None if rank < 0 else (pod.controller or (), rank)
