"""The devices of all nodes as flat columns, for figures that read every device."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler.devices import counted
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.demand import DemandShape

# A share may be less than a whole number by a rounding error; same value as in kernels/devices/free.py.
_EPSILON = 1e-6
_MIB_PER_GIB = 1024


class Cards(NamedTuple):
    """D entries: one for each card; the devices of a pool that are only counted are one entry together."""

    owner: c.Ints  # [D] place of the node among the requested rows
    row: c.Ints  # [D] the card's row in the state, -1 for counted devices
    family: c.Ints  # [D] place in ``families``
    families: tuple[str, ...]  # the resources by which pods ask for devices
    model: c.Ints  # [D] as in the state, -1 for counted devices
    kind: c.Ints  # [D] place in ``kinds``
    kinds: tuple[tuple[int, int], ...]  # core percent and MiB of a card
    whole_only: c.Flags  # [D] pods can request only whole devices
    usable: c.Flags  # [D] healthy, not cordoned, not in MIG mode with unknown parts, its pods known
    unshared: c.Flags  # [D] no pod holds a part of it
    n_all: c.Ints  # [D] cards of the entry
    sharers: c.Ints  # [D] pods on the card; allocated devices of a counted entry
    n_left: c.Ints  # [D] cards that can take a pod: a sharer, compute and memory are left
    left: (
        c.Ints
    )  # [2, D] milli of the compute and of the memory of a card that a pod can still be given
    capacity: c.Floats  # [2, D] GPUs and GiB
    used: c.Floats  # [2, D] GPUs and GiB

    def find_family(self, resource: str) -> int:
        """Find the place of a family; -1 for none."""
        return self.families.index(resource) if resource in self.families else -1

    def find_taking(self, shape: DemandShape, models: c.Flags) -> tuple[c.Flags, c.Flags]:
        """Find the cards [D] that would take a pod of the shape if they were empty, and the cards that take it now.

        ``models`` [models]: whether the shape accepts each model in the state.
        """
        needs = np.array([shape.convert_to_milli(*kind) for kind in self.kinds], np.int64)
        compute, memory = needs[self.kind].T
        whole = (compute == c.WHOLE) & (memory == c.WHOLE)
        suits = self.usable & np.append(models, np.True_)[self.model]
        suits &= (memory <= c.WHOLE) & (whole | ~self.whole_only)
        suits &= self.family == self.find_family(shape.family)
        # A pod gets the whole compute only of a card without other pods.
        now = suits & (self.n_left > 0) & (self.unshared | (compute < c.WHOLE))
        now &= (self.left[0] >= compute) & (self.left[1] >= memory)
        return suits, now


def read_cards(cluster: Cluster, rows: c.Ints) -> Cards:
    """Read the devices of some nodes."""
    nodes, table = cluster.nodes.columns, cluster.cards.columns
    own, pools = stack_pools(cluster, rows), nodes.pools
    managed, starts = pools.managed[own], pools.start[own]
    count = np.where(managed, pools.count[own], 0)
    d = list_run_rows(starts.ravel(), count.ravel())
    owner = np.repeat(np.tile(np.arange(rows.size), len(own)), count.ravel())
    whole = np.where(managed, 0, nodes.allocatable[pools.resource[own], rows])
    bare_family, bare = np.nonzero(whole > 0)
    total = whole[bare_family, bare]
    resource = pools.resource[own[bare_family, bare]]
    busy = np.minimum(nodes.requested[resource, rows[bare]], total)
    # The GPUs and GiB of each device: plugins may offer parts of cards.
    part = pools.part[: c.PART_WAY, own[bare_family, bare]]
    part = part * np.array([[1.0], [1.0 / _MIB_PER_GIB]])
    figures = [c.CORES, c.MIB]
    scale = table.milli[:, d]
    left = np.floor((table.total[figures][:, d] - table.used[figures][:, d]) * scale + _EPSILON)
    left = np.where(scale > 0, left, c.WHOLE).astype(np.int64)
    # A card that is cut can give what its free slots can still be cut into.
    room = table.carvings.room[table.carving[d], table.cut[d]]
    left = np.where(table.carving[d] > 0, room, left)
    ready = (table.used[c.SLOTS, d] < table.total[c.SLOTS, d]) & (left > 0).all(axis=0)
    shares = np.clip(table.used[figures][:, d] * scale / c.WHOLE, 0.0, 1.0)
    shares[0] = np.minimum(1.0, shares[0] + _measure_unlimited(cluster, d))
    gib = table.total[c.MIB, d] / _MIB_PER_GIB
    pairs = np.column_stack(
        [table.total[figures][:, d], np.tile(np.array([counted.CARD]).T, bare.size)]
    )
    kinds, kind = _find_distinct(pairs)
    ones = np.ones(d.size, np.int64)
    return Cards(
        owner=np.append(owner, bare),
        row=np.append(d, np.full(bare.size, -1)),
        family=np.append(pools.family[table.pool[d]], bare_family),
        families=tuple(cluster.registers.devices.families),
        model=np.append(table.model[d], np.full(bare.size, -1)),
        kind=kind,
        kinds=kinds or (counted.CARD,),
        whole_only=np.append(np.zeros(d.size, np.bool_), np.ones(bare.size, np.bool_)),
        usable=np.append(
            table.healthy[d] & ~table.cordoned[d] & (~table.mig[d] | (table.carving[d] > 0)),
            np.ones(bare.size, np.bool_),
        ),
        unshared=np.append(table.used[c.SLOTS, d] == 0, np.ones(bare.size, np.bool_)),
        n_all=np.append(ones, total),
        sharers=np.append(table.used[c.SLOTS, d], busy),
        n_left=np.append(ones * ready, total - busy),
        left=np.column_stack([left, np.full((2, bare.size), c.WHOLE)]),
        capacity=np.hstack((np.array([ones, gib]), total * part)),
        used=np.hstack((np.array([shares[0], shares[1] * gib]), busy * part)),
    )


def stack_pools(cluster: Cluster, rows: c.Ints) -> c.Ints:
    """Stack [F, n] the pools of each family on these rows; ``NO_POOL`` for none."""
    families = range(len(cluster.registers.devices.families))
    return np.stack([cluster.nodes.find_pools(family)[rows] for family in families])


def list_run_rows(starts: c.Ints, counts: c.Ints) -> c.Ints:
    """List the rows of runs of neighbouring rows, run by run; each run has a first row and a number of rows."""
    before = np.cumsum(counts) - counts
    rows: c.Ints = np.repeat(starts - before, counts) + np.arange(counts.sum())
    return rows


def _find_distinct(pairs: c.Ints) -> tuple[tuple[tuple[int, int], ...], c.Ints]:
    """Find the distinct pairs among [2, D] pairs, and [D] which distinct pair each one is."""
    # Each pair becomes one number, which sorts ten times as fast; neither part has more than 32 bits.
    distinct, which = np.unique((pairs[0] << 32) | pairs[1], return_inverse=True)
    return tuple((int(one) >> 32, int(one) & 0xFFFFFFFF) for one in distinct), which


def _measure_unlimited(cluster: Cluster, cards: c.Ints) -> c.Floats:
    """Measure [D] the share of a card's compute that is attributed to pods without a limit on compute.

    For the device plugin such pods use no compute, but they may use all of it. The figures attribute the same share as of
    the memory: the compute of a card full of such pods is not idle.
    """
    pods, table = cluster.ledger.pods.columns, cluster.cards.columns
    first, n = pods.held[:, pods.node >= 0]
    holds = pods.holds[list_run_rows(first, n)]
    unlimited = (holds[:, c.HOLD_CORES] == 0) & (holds[:, c.HOLD_PART] == c.NO_PART)
    card, mib = holds[unlimited][:, [c.HOLD_CARD, c.HOLD_MIB]].T
    taken: c.Floats = mib * table.milli[c.MIB, card] / c.WHOLE
    shares: c.Floats = np.bincount(card, taken, table.numa.size).astype(np.float64)
    return shares[cards]
