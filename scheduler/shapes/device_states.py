"""Which nodes have devices of ResourceSlices that are alike, brought up to date before nodes are judged for claims."""

from __future__ import annotations

import numpy as np

from scheduler.kernels.devices import device_states as kernel
from scheduler.schema import cold as schema
from scheduler.state.cluster import Cluster


class DeviceStates:
    """Keeps ``Devices.states`` of one cluster. Several may take turns: each begins anew after another one."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._classes = schema.make_classes(0)
        self._lists = np.zeros((4, 1), np.int64)
        self._states = np.zeros(0, np.int64)
        # The position in the state's log of moved rows up to which the states are known.
        self._moved = -1

    def refresh(self) -> None:
        """Bring the states of the rows that moved up to date. Until there is any device, no node has a state."""
        cluster, table = self._cluster, self._cluster.claims.table
        columns, capacity = table.columns, cluster.nodes.capacity
        rows = cluster.moved.list_since(self._moved) if self._moved >= 0 else None
        if columns.states.size != capacity or columns.states is not self._states:
            columns.states = self._states = np.full(capacity, -1, np.int64)
            rows = None
        if not table.written:
            return
        if rows is None:
            table.fit_nodes(capacity)
            self._classes = schema.make_classes(capacity)
            rows = np.arange(capacity)
        if self._lists.shape[1] < table.most:
            self._lists = np.zeros((4, 2 * table.most), np.int64)
        if rows.size:
            kernel.update_states(
                columns, cluster.nodes.columns.valid, self._classes, rows, self._lists
            )
        self._moved = cluster.moved.position
