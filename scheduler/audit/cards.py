"""The GPUs of all nodes as flat columns, for figures that look at every one of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler.devices import whole as whole_gpus
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.demand import DemandShape

# As in kernels/free.py: a share may fall short of a whole number by its last bit.
_EPSILON = 1e-6
_MIB_PER_GIB = 1024


class Cards(NamedTuple):
    """One entry per card; the whole GPUs of a node are one entry together. D entries."""

    owner: c.Ints  # [D] place of the node among the rows asked for
    model: c.Ints  # [D] as in the state, -1 of whole GPUs
    kind: c.Ints  # [D] place in ``kinds``
    kinds: tuple[tuple[int, int], ...]  # core percent and MiB of a card
    whole_only: c.Flags  # [D] only whole GPUs can be asked
    usable: c.Flags  # [D] healthy, not cordoned, not MIG, its pods known
    unshared: c.Flags  # [D] nobody is on it
    n_all: c.Ints  # [D] cards of the entry
    n_left: c.Ints  # [D] those that can take a pod: a sharer is left, and some of both figures
    left: (
        c.Ints
    )  # [2, D] milli of the compute and of the memory of a card that a pod can still be given
    capacity: c.Floats  # [2, D] GPUs and GiB
    used: c.Floats  # [2, D] likewise

    def takes(self, shape: DemandShape, models: c.Flags) -> tuple[c.Flags, c.Flags]:
        """[D] whether a card would take a share of the shape when empty, and whether it does now.

        ``models`` says of each model in the state whether the shape accepts it.
        """
        needs = np.array([shape.milli(*kind) for kind in self.kinds], np.int64)
        compute, memory = needs[self.kind].T
        whole = (compute == c.WHOLE) & (memory == c.WHOLE)
        suits = self.usable & np.append(models, np.True_)[self.model]
        suits &= (memory <= c.WHOLE) & (whole | ~self.whole_only)
        # All of the compute is given only of a card that nobody is on.
        now = suits & (self.n_left > 0) & (self.unshared | (compute < c.WHOLE))
        now &= (self.left[0] >= compute) & (self.left[1] >= memory)
        return suits, now


def of_rows(cluster: Cluster, rows: c.Ints) -> Cards:
    """The cards of some nodes."""
    nodes, table = cluster.nodes.columns, cluster.cards.columns
    managed = nodes.managed[rows]
    count = np.where(managed, nodes.card_count[rows], 0)
    d = np.concatenate(
        [np.arange(s, s + n) for s, n in zip(nodes.card_start[rows], count, strict=True)]
        or [np.zeros(0)]
    ).astype(np.int64)
    whole = np.where(managed, 0, nodes.allocatable[c.GPU, rows])
    bare = np.flatnonzero(whole > 0)
    total, busy = whole[bare], np.minimum(nodes.requested[c.GPU, rows], whole)[bare]
    figures = [c.CORES, c.MIB]
    scale = table.milli[:, d]
    left = np.floor((table.total[figures][:, d] - table.used[figures][:, d]) * scale + _EPSILON)
    left = np.where(scale > 0, left, c.WHOLE).astype(np.int64)
    ready = (table.used[c.SLOTS, d] < table.total[c.SLOTS, d]) & (left > 0).all(axis=0)
    shares = np.clip(table.used[figures][:, d] * scale / c.WHOLE, 0.0, 1.0)
    shares[0] = np.minimum(1.0, shares[0] + _unlimited(cluster, np.repeat(rows, count), d))
    gib = table.total[c.MIB, d] / _MIB_PER_GIB
    pairs = [
        *zip(*table.total[figures][:, d].tolist(), strict=True),
        *(whole_gpus.CARD for _ in bare),
    ]
    kinds = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
    ones, none = np.ones(d.size, np.int64), np.zeros(bare.size)
    return Cards(
        owner=np.append(np.repeat(np.arange(rows.size), count), bare),
        model=np.append(table.model[d], np.full(bare.size, -1)),
        kind=np.array([kinds[pair] for pair in pairs], np.int64),
        kinds=tuple(kinds) or (whole_gpus.CARD,),
        whole_only=np.append(np.zeros(d.size, np.bool_), np.ones(bare.size, np.bool_)),
        usable=np.append(
            table.healthy[d] & ~table.cordoned[d] & ~table.mig[d], np.ones(bare.size, np.bool_)
        ),
        unshared=np.append(table.used[c.SLOTS, d] == 0, np.ones(bare.size, np.bool_)),
        n_all=np.append(ones, total),
        n_left=np.append(ones * ready, total - busy),
        left=np.column_stack([left, np.full((2, bare.size), c.WHOLE)]),
        capacity=np.array([np.append(ones, total), np.append(gib, none)]),
        used=np.array([np.append(shares[0], busy), np.append(shares[1] * gib, none)]),
    )


def _unlimited(cluster: Cluster, holders: c.Ints, cards: c.Ints) -> c.Floats:
    """[D] the share of a card that pods without a limit on compute are taken to use.

    To the device plugin they use none and may use all. As much as they hold of the memory is the middle way: a card
    full of such pods is not one whose compute lies idle. ``holders`` [D] are the rows of the cards' nodes.
    """
    place = {d: i for i, d in enumerate(cards.tolist())}
    out = np.zeros(cards.size)
    for row in dict.fromkeys(holders.tolist()):
        for pod in cluster.pods_on.get(cluster.nodes.name_of(row), {}).values():
            for d, (cores, mib, _) in cluster.held(pod).items():
                if d in place and not cores:
                    out[place[d]] += mib * cluster.cards.columns.milli[c.MIB, d] / c.WHOLE
    return out
