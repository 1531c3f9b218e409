"""Spares units that need not go: they come back one by one as long as the group still fits as it was placed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from scheduler.api.door.decisions import Bind
from scheduler.disruption.group_units import Unit, is_core
from scheduler.disruption.promises import Promises
from scheduler.kernels import sparing as kernel
from scheduler.placing.rooms import suffice_cards
from scheduler.schema import columns as c
from scheduler.shapes.boards import Boards, Shape
from scheduler.shapes.keys import Keys
from scheduler.state.claims.overuse import is_overused
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from scheduler.state.trials import Trial


def put_back(trial: Trial, units: Sequence[Unit], guard: Guard) -> tuple[Unit, ...]:
    """Put units back in their order as long as the group fits as it was placed; return those that have to go."""
    gone: list[Unit] = []
    broken = set()
    find_next = guard.make_finder(units)
    within = find_next(0)
    for i, unit in enumerate(guard.pauses.go_through(units)):
        if i > within:
            within = find_next(i)
        is_lost = unit.is_extra and unit.group in broken
        if not is_lost and i == within:
            for pod in unit.pods:
                trial.put_back(pod.uid)
            if guard.still_fits(unit):
                continue
            trial.take_away(*(pod.uid for pod in unit.pods))
            guard.note_fitting()
        if is_core(unit):
            broken.add(unit.group)
        gone.append(unit)
    return tuple(gone)


# By the identity of its template the shape of a pod; None if a mistake on it must be corrected first.
Shapes = dict[int, Shape | None]


def make_shapes(boards: Boards, keys: Keys, pods: Sequence[PodRecord]) -> Shapes:
    """Make the shapes of the pods of a group before units are taken away.

    What a unit's own rules say of the group is read only while the unit is there.
    """
    found: Shapes = {}
    for pod in pods:
        if id(pod.template) not in found:
            key = keys.make_key(pod)
            found[id(pod.template)] = None if key is None else boards.make_unscored(key)
    return found


class Guard:
    """Judges whether the pods of a group still fit where they were placed.

    Attributes:
        pauses: those of the cluster.
    """

    def __init__(
        self,
        boards: Boards,
        shapes: Shapes,
        binds: Sequence[Bind],
        cluster: Cluster,
        promises: Promises | None,
    ) -> None:
        """With ``promises`` what is promised to other pods counts as if they were there."""
        self._cluster, self._boards, self._shapes = cluster, boards, shapes
        self.pauses = cluster.pauses
        self._promises = promises
        self._on: dict[str, list[Bind]] = {}
        for bind in binds:
            self._on.setdefault(bind.node, []).append(bind)
        # A pod with rules that look beyond its node is judged whichever node a unit comes back to.
        wide = {
            template
            for template, shape in shapes.items()
            if shape is not None and shape.view.is_wide
        }
        self._wide = [bind for bind in binds if id(cluster.pods[bind.uid].template) in wide]
        # By the identity of such a shape: the versions of its counts when its pods fitted last.
        self._versions: dict[int, tuple[int, ...]] = {}
        self.note_fitting()

    def make_finder(self, units: Sequence[Unit]) -> Callable[[int], int]:
        """Make a function that finds the first unit, from one on, that exceeds nothing that the group takes of nodes.

        This is for resources that are counted by nodes; what it does not see, ``still_fits`` sees. Without such a unit
        the function returns how many there are.
        """
        cluster = self._cluster
        row_of, counted = cluster.nodes.rows, self._find_counted()
        pods = [pod for unit in units for pod in unit.pods]
        begins = np.cumsum([0, *(len(unit.pods) for unit in units)], dtype=np.int64)
        rows = np.array([pod.row for pod in pods], np.int64)
        node_rows = np.array([row_of.get(pod.node, -1) for pod in pods], np.int64)
        wanted = np.zeros(counted.shape, np.int64)
        tables = cluster.ledger.tables
        return lambda first: kernel.find_unit_within(
            tables, counted, begins, rows, node_rows, first, wanted
        )

    def _find_counted(self) -> c.Flags:
        """Find [R, N] which resources the group takes of each node that are counted by nodes, and not card by card."""
        cluster = self._cluster
        nodes = cluster.nodes.columns
        counted = np.zeros(nodes.requested.shape, np.bool_)
        alike: dict[int, list[Bind]] = {}
        for binds in self._on.values():
            for bind in {id(cluster.pods[bind.uid].template): bind for bind in binds}.values():
                alike.setdefault(id(cluster.pods[bind.uid].template), []).append(bind)
        for binds in alike.values():
            pod = cluster.pods[binds[0].uid]
            rows = np.array([cluster.nodes.find_row(bind.node) for bind in binds], np.int64)
            rows = rows[rows >= 0]
            shape = self._get_shape(pod)
            family = -1 if shape is None else shape.ask.family
            managed = cluster.nodes.find_managed(family)[rows]
            for name, _ in pod.template.requests.amounts:
                resource = cluster.nodes.resources.find(name)
                if resource < 0:
                    continue
                counted[resource, rows] |= (
                    ~managed if cluster.nodes.devices.is_family(name) else True
                )
        # Where a class serves a resource, claims say whether its devices suffice.
        return counted & ~nodes.by_class

    def still_fits(self, unit: Unit) -> bool:
        """Whether the group still fits beside a unit that has come back."""
        # A claim that pods of the group share keeps its devices while one of these pods is judged anew.
        claims = self._cluster.claims
        if any(claims.has_claims(pod) and is_overused(claims, pod) for pod in unit.pods):
            return False
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

    def _get_shape(self, pod: PodRecord) -> Shape | None:
        return self._shapes[id(pod.template)]

    def _fits(self, bind: Bind) -> bool:
        """Whether a pod still fits on its node, with its cards."""
        cluster = self._cluster
        pod, row = cluster.pods[bind.uid], cluster.nodes.find_row(bind.node)
        shape, promises = self._get_shape(pod), self._promises
        is_promised = promises is not None and bool(cluster.nominations.list_on(bind.node))
        if shape is None or self._is_short(shape, row):
            return False
        if not (
            is_promised
            or bind.devices
            or len(shape.counted)
            or shape.view.storage is not None
            or shape.view.claims is not None
        ):
            # Nothing but amounts can have changed for it.
            return True
        rows = np.array([row], np.int64)
        with cluster.trial():
            cluster.forget(bind.uid)
            if self._boards.find_refusals(shape, rows)[0, 0]:
                return False
            if promises and is_promised and not promises.leaves_room(pod, rows, but=pod.uid):
                return False
            at = row, bind.devices
            return not bind.devices or suffice_cards(cluster, self._boards, pod, shape, at)

    def _is_short(self, shape: Shape, row: int) -> bool:
        """Whether more of a resource that the pod requests is in use on its node than the node has."""
        nodes, ask = self._cluster.nodes.columns, shape.ask
        over = nodes.requested[ask.resources, row] > nodes.allocatable[ask.resources, row]
        over &= ~nodes.by_class[ask.resources, row]
        find_driver = self._cluster.registers.find_driver
        counted = [find_driver(family, row) is None for family in ask.by_cards.tolist()]
        return bool((over & counted & (ask.resources >= 0)).any())
