"""Judges whether the pods of a group still fit where they were placed, once others come back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from scheduler.api.door.decisions import Bind
from scheduler.devices import table as devices
from scheduler.disruption.group_units import Unit
from scheduler.kernels.devices import gpus
from scheduler.shapes.boards import Boards, Shape
from scheduler.shapes.keys import Keys
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord


class Guard:
    """Judges for one placement of one group."""

    def __init__(self, cluster: Cluster, boards: Boards, keys: Keys, binds: Sequence[Bind]) -> None:
        self._cluster, self._boards, self._keys = cluster, boards, keys
        # By the identity of a template: the shape of a pod of the group.
        self._shapes: dict[int, Shape | None] = {}
        self._on: dict[str, list[Bind]] = {}
        for bind in binds:
            self._on.setdefault(bind.node, []).append(bind)
        # A pod with rules that look beyond its node is judged whichever node a unit comes back to.
        self._wide = [bind for bind in binds if self._is_wide(bind)]

    def is_clearly_over(self, unit: Unit) -> bool:
        """Whether a unit that is away would exceed what a node has of something that the group takes there.

        This is for resources that are counted by nodes; what it does not see, ``still_fits`` sees.
        """
        nodes = self._cluster.nodes
        wanted: Counter[tuple[int, int]] = Counter()
        for pod in unit.pods:
            near, row = self._on.get(pod.node), nodes.find_row(pod.node)
            if near and row >= 0:
                amounts = dict(pod.template.requests.amounts)
                for name, resource in self._list_counted(near[0], row):
                    wanted[row, resource] += amounts.get(name, 0)
        allocatable, requested = nodes.columns.allocatable, nodes.columns.requested
        return any(
            amount and requested[resource, row] + amount > allocatable[resource, row]
            for (row, resource), amount in wanted.items()
        )

    def _list_counted(self, bind: Bind, row: int) -> Iterator[tuple[str, int]]:
        """Yield what a pod of the group requests that is counted by nodes, and not card by card: names and rows."""
        shape = self._get_shape(self._cluster.pods[bind.uid])
        pool = -1 if shape is None else shape.ask.pool
        has_cards = pool >= 0 and bool(self._cluster.nodes.columns.managed[pool, row])
        for name, _ in self._cluster.pods[bind.uid].template.requests.amounts:
            resource = self._cluster.nodes.resources.find(name)
            if resource >= 0 and not (has_cards and devices.find_place(name) >= 0):
                yield name, resource

    def still_fits(self, unit: Unit) -> bool:
        """Whether the group still fits beside a unit that has come back."""
        nodes = dict.fromkeys(pod.node for pod in unit.pods)
        near = [bind for node in nodes for bind in self._on.get(node, ())]
        return all(map(self._fits, {bind.uid: bind for bind in (*near, *self._wide)}.values()))

    def _is_wide(self, bind: Bind) -> bool:
        shape = self._get_shape(self._cluster.pods[bind.uid])
        return shape is not None and shape.view.is_wide

    def _get_shape(self, pod: PodRecord) -> Shape | None:
        key = id(pod.template)
        if key not in self._shapes:
            made = self._keys.make_key(pod)
            self._shapes[key] = None if made is None else self._boards.make_unscored(made)
        return self._shapes[key]

    def _fits(self, bind: Bind) -> bool:
        """Whether a pod still fits on its node, with its cards."""
        cluster = self._cluster
        shape, row = self._get_shape(cluster.pods[bind.uid]), cluster.nodes.find_row(bind.node)
        if shape is None or self._is_short(shape, row):
            return False
        if not (bind.slots or len(shape.counted) or shape.view.storage is not None):
            # Nothing but amounts can have changed for it.
            return True
        with cluster.trial():
            cluster.forget(bind.uid)
            if self._boards.find_refusals(shape, np.array([row], np.int64))[0, 0]:
                return False
            return not bind.slots or self._has_cards(shape, row, bind)

    def _is_short(self, shape: Shape, row: int) -> bool:
        """Whether more of a resource that the pod requests is in use on its node than the node has."""
        nodes, ask = self._cluster.nodes.columns, shape.ask
        over = nodes.requested[ask.resources, row] > nodes.allocatable[ask.resources, row]
        pools = ask.by_cards
        counted = (pools < 0) | ~nodes.managed[np.maximum(pools, 0), row]
        return bool((over & counted & (ask.resources >= 0)).any())

    def _has_cards(self, shape: Shape, row: int, bind: Bind) -> bool:
        """Whether the pod could get its cards on a node, on which it is not."""
        there = self._cluster.registers.list_cards(bind.uid, shape.ask.pool, row)
        picks = [(there.get(use.uuid, -1), i) for i, uses in enumerate(bind.slots) for use in uses]
        world = self._boards.get_world(shape)
        return bool(gpus.suffices(world, shape.ask, row, np.array(picks, np.int64)))
