"""Cards that a placed pod leaves to the pods that are promised room on its node.

That a node has room for all of them does not say that any cards would do for the pod.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from scheduler.api.cards import Grants
from scheduler.api.door.decisions import Bind
from scheduler.disruption.plain import ByRow
from scheduler.disruption.promises import Promises
from scheduler.placing.rooms import Rooms, suffice_cards
from scheduler.shapes.boards import Boards, Shape
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord


class CardPromises:
    """Gives placed pods other cards where promised pods need those that were chosen."""

    def __init__(self, cluster: Cluster, boards: Boards, rooms: Rooms, promises: Promises) -> None:
        self._cluster, self._boards, self._rooms = cluster, boards, rooms
        self._promises = promises

    def spare_nominated(self, pod: PodRecord, shape: Shape, bind: Bind) -> Bind:
        """The bind of a pod that is placed, with other cards where its node has promised cards to those before it."""
        # Devices of claims would have to be chosen anew with the cards.
        is_free = bind.devices and not bind.allotted
        before = self._list_nominated(pod, bind.node) if is_free else {}
        if not any(one.template.most for pods in before.values() for one in pods):
            return bind
        cluster, (row,) = self._cluster, before
        cluster.forget(pod.uid)
        cards = self._choose_beside(pod, shape, row, before[row], in_the_end=False) or bind.devices
        cluster.assume(pod.uid, bind.node, cards, bind.given)
        return replace(bind, devices=cards)

    def spare_later(self, pod: PodRecord, shape: Shape, bind: Bind) -> Bind | None:
        """The bind of a pod that is placed, with other cards where a group that is promised the node needs the chosen ones.

        None if the pod gets no cards there that the group does not need; then the pod is not placed any more.
        """
        cluster = self._cluster
        later = cluster.later.on.get(bind.node, ())
        if not (later and bind.devices and cluster.is_bound_later(pod)):
            return bind
        if bind.allotted:
            # Its devices would have to be chosen anew with its cards.
            return bind
        row = cluster.nodes.find_row(bind.node)
        group = [one for uid in later if (one := cluster.pods.get(uid)) and not one.node]
        if self._fit_in_the_end(group, row):
            return bind
        cluster.forget(pod.uid)
        cards = self._choose_beside(pod, shape, row, group, in_the_end=True)
        if cards is not None and suffice_cards(cluster, self._boards, pod, shape, (row, cards)):
            cluster.assume(pod.uid, bind.node, cards, bind.given)
            if self._fit_in_the_end(group, row):
                return replace(bind, devices=cards)
            cluster.forget(pod.uid)
        return None

    def _choose_beside(
        self, pod: PodRecord, shape: Shape, row: int, others: list[PodRecord], *, in_the_end: bool
    ) -> Grants | None:
        """Choose the cards of a pod that is not placed beside others that are promised its node; None if there are none."""
        with self._promises.keep_promises({row: others}, in_the_end=in_the_end):
            if not self._promises.takes_cards(shape, row):
                return None
            self._rooms.put(pod, shape, row)
            return self._cluster.pods[pod.uid].claim

    def _fit_in_the_end(self, pods: Sequence[PodRecord], row: int) -> bool:
        """Whether pods that are promised a node for later fit there once those in their way have ended."""
        cluster, rows = self._cluster, np.array([row], np.int64)
        with cluster.trial(is_quiet=True) as trial:
            self._promises.let_pods_end(trial, row, pods)
            for pod in pods:
                key = self._promises.make_key(pod)
                if key is None:
                    continue
                shape = self._boards.make_unscored(key)
                if self._boards.find_refusals(shape, rows)[0, 0]:
                    return False
                self._rooms.put(pod, shape, row)
        return True

    def _list_nominated(self, pod: PodRecord, node: str) -> ByRow:
        """List by row the nominated pods on a node to which a pod yields. No cards are promised for later."""
        later = self._cluster.later.on.get(node, ())
        before = self._promises.list_before(pod, pod.uid, [node])
        kept = {row: [one for one in pods if one.uid not in later] for row, pods in before.items()}
        return {row: pods for row, pods in kept.items() if pods}
