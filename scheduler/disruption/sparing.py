"""Spares units that need not go: they come back one by one as long as the group still fits as it was placed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from scheduler.api.door.decisions import Bind
from scheduler.devices import table as devices
from scheduler.disruption.group_units import Unit
from scheduler.disruption.promises import Promises
from scheduler.kernels.devices import gpus
from scheduler.shapes.boards import Boards, Shape
from scheduler.shapes.keys import Keys
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from scheduler.state.trials import Trial


def put_back(trial: Trial, units: Sequence[Unit], guard: Guard) -> tuple[Unit, ...]:
    """Put units back in their order as long as the group fits as it was placed; return those that have to go."""
    gone: list[Unit] = []
    broken = set()
    for unit in units:
        is_lost = unit.is_extra and unit.group in broken
        if not is_lost and not guard.is_clearly_over(unit):
            for pod in unit.pods:
                trial.put_back(pod.uid)
            if guard.still_fits(unit):
                continue
            trial.take_away(*(pod.uid for pod in unit.pods))
            guard.note_fitting()
        if not unit.is_extra and unit.group is not None:
            broken.add(unit.group)
        gone.append(unit)
    return tuple(gone)


class Guard:
    """Judges whether the pods of a group still fit where they were placed."""

    def __init__(
        self,
        boards: Boards,
        keys: Keys,
        binds: Sequence[Bind],
        cluster: Cluster,
        promises: Promises | None,
    ) -> None:
        """With ``promises`` what is promised to other pods counts as if they were there."""
        self._cluster, self._boards, self._keys = cluster, boards, keys
        self._promises = promises
        # By the identity of a template: the shape of a pod of the group.
        self._shapes: dict[int, Shape | None] = {}
        self._on: dict[str, list[Bind]] = {}
        # By the name of a node: the resources that are counted there, with their rows.
        self._counted: dict[str, dict[str, int]] = {}
        for bind in binds:
            self._on.setdefault(bind.node, []).append(bind)
        # A pod with rules that look beyond its node is judged whichever node a unit comes back to.
        self._wide = [bind for bind in binds if self._is_wide(bind)]
        # By the identity of such a shape: the versions of its counts when its pods fitted last.
        self._versions: dict[int, tuple[int, ...]] = {}
        self.note_fitting()

    def is_clearly_over(self, unit: Unit) -> bool:
        """Whether a unit that is away would exceed what a node has of something that the group takes there.

        This is for resources that are counted by nodes; what it does not see, ``still_fits`` sees.
        """
        wanted: Counter[tuple[str, int]] = Counter()
        for pod in unit.pods:
            if pod.node in self._on:
                for name, amount in pod.template.requests.amounts:
                    if (resource := self._get_counted(pod.node).get(name, -1)) >= 0:
                        wanted[pod.node, resource] += amount
        nodes = self._cluster.nodes
        allocatable, requested = nodes.columns.allocatable, nodes.columns.requested
        for (node, resource), amount in wanted.items():
            row = nodes.find_row(node)
            if amount and requested[resource, row] + amount > allocatable[resource, row]:
                return True
        return False

    def _get_counted(self, node: str) -> dict[str, int]:
        """Return the resources that the group takes of a node and that are counted by nodes, with their rows."""
        if node not in self._counted:
            row = self._cluster.nodes.find_row(node)
            found = self._list_counted(self._on[node][0], row) if row >= 0 else ()
            self._counted[node] = dict(found)
        return self._counted[node]

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
        counted = [bind for bind in self._wide if self._has_changed(bind)]
        if not all(map(self._fits, {bind.uid: bind for bind in (*near, *counted)}.values())):
            return False
        if counted:
            self.note_fitting()
        return True

    def note_fitting(self) -> None:
        """Note that all pods of the group fit as things are."""
        for bind in self._wide:
            shape = self._get_shape(self._cluster.pods[bind.uid])
            if shape is not None:
                self._versions[id(shape)] = shape.counted.read_versions()

    def _has_changed(self, bind: Bind) -> bool:
        """Whether pods that count for a pod of the group have come or gone since it fitted last."""
        shape = self._get_shape(self._cluster.pods[bind.uid])
        return shape is None or self._versions[id(shape)] != shape.counted.read_versions()

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
        pod, row = cluster.pods[bind.uid], cluster.nodes.find_row(bind.node)
        shape, promises = self._get_shape(pod), self._promises
        is_promised = promises is not None and bool(cluster.nominations.list_on(bind.node))
        if shape is None or self._is_short(shape, row):
            return False
        if not (is_promised or bind.slots or len(shape.counted) or shape.view.storage is not None):
            # Nothing but amounts can have changed for it.
            return True
        rows = np.array([row], np.int64)
        with cluster.trial():
            cluster.forget(bind.uid)
            if self._boards.find_refusals(shape, rows)[0, 0]:
                return False
            if promises and is_promised and not promises.leaves_room(pod, rows, but=pod.uid):
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
