"""Which nodes are alike for the pods of a group: what is placed on one of them later fits as on any other of them.

Nodes are alike if the same is free, the same static rules refuse them, they are in the same domains as far as rules of
the group look at domains, and their cards are alike.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from scheduler.schema import columns as c
from scheduler.shapes.boards import Boards, Shape
from scheduler.shapes.views import ALONE
from scheduler.state.cluster import Cluster


class AlikeRows:
    """The rows on which a search for a group may place pods; of alike rows without a pod of the search one stands for all.

    Attributes:
        by_uuid: whether a pod of the group names cards, so that no two cards are alike.
    """

    def __init__(
        self,
        cluster: Cluster,
        boards: Boards,
        shapes: Sequence[Shape],
        rows: c.Ints,
        domains: Sequence[c.Ints] = (),
    ) -> None:
        """Take the pods and the rows.

        Args:
            cluster: the cluster.
            boards: its boards.
            shapes: those of the pods.
            rows: [n] the rows among which they go.
            domains: each [N]; rows in different ones of these domains are not alike.
        """
        self._cluster = cluster
        # What fits beside pods with rules about others depends on which pods they are.
        self._tells_pods = any(shape.view is not ALONE for shape in shapes)
        self._rows = rows
        self.by_uuid = any(map(_names_cards, shapes))
        # Volumes and devices of claims differ from node to node.
        views = [shape.view for shape in shapes]
        alone = any(one.storage is not None or one.claims is not None for one in views)
        # [n] by the place in ``rows``: the number of its class.
        self._class = np.arange(rows.size) if alone else self._classify(boards, shapes, domains)
        # The kinds of the pods of the search on each row.
        self._taken: dict[int, list[int]] = {}

    def take(self, row: int, kind: int) -> None:
        """Note that the search has placed a pod of a kind on a row."""
        self._taken.setdefault(row, []).append(kind)

    def release(self, row: int) -> None:
        """Note that the search has taken back from a row the pod that it placed there last."""
        self._taken[row].pop()
        if not self._taken[row]:
            del self._taken[row]

    def list_rows(self) -> c.Ints:
        """List the rows with pods of the search, and the first row of each class among the others."""
        taken = np.array(sorted(self._taken), np.int64)
        free = ~np.isin(self._rows, taken)
        _, first = np.unique(self._class[free], return_index=True)
        return np.sort(np.concatenate((taken, self._rows[free][first])))

    def describe_taken(self) -> Hashable:
        """Describe the rows with pods of the search: equal descriptions leave room for the same pods."""
        rows = sorted(self._taken)
        kinds = [tuple(sorted(self._taken[row])) for row in rows] if self._tells_pods else []
        return (
            tuple(rows),
            *kinds,
            self._cluster.nodes.columns.requested[:, rows].tobytes(),
            self._read_cards(self._list_cards(rows)).tobytes(),
        )

    def describe_card(self, d: int) -> tuple[int, ...]:
        """Describe a card: a pod may get any of the cards of a node with the same description."""
        return tuple(self._read_cards(np.array([d], np.int64))[:, 0].tolist())

    def _list_cards(self, rows: list[int]) -> c.Ints:
        """List the cards of rows."""
        found = [d for row in rows for d in self._cluster.registers.list_card_rows(row)]
        return np.array(found, np.int64)

    def _classify(
        self, boards: Boards, shapes: Sequence[Shape], domains: Sequence[c.Ints]
    ) -> c.Ints:
        """Number [n] the classes of the rows."""
        nodes, rows = self._cluster.nodes.columns, self._rows
        facts = [nodes.allocatable[:, rows] - nodes.requested[:, rows]]
        facts += [domain[rows][None] for domain in domains]
        for shape in shapes:
            boards.refresh_counts(shape)
            facts.append(boards.statics.find_refusals(shape.asked, rows)[None])
            facts.append(shape.counted.describe_rows(rows))
        families = range(len(self._cluster.registers.devices.families))
        facts += [self._classify_cards(family)[None] for family in families]
        _, numbers = np.unique(np.concatenate(facts), axis=1, return_inverse=True)
        return numbers.ravel()

    def _classify_cards(self, family: int) -> c.Ints:
        """Number [n] the rows by their cards of a family, in whatever order these are."""
        pools, rows = self._cluster.nodes.columns.pools, self._rows
        own = self._cluster.nodes.find_pools(family)[rows]
        counts = np.where(pools.managed[own], pools.count[own], -1)
        numbers, n_known = np.zeros(rows.size, np.int64), 0
        for n in np.unique(counts).tolist():
            mine = np.flatnonzero(counts == n)
            if n > 0:
                cards = pools.start[own[mine]][:, None] + np.arange(n)
                figures = np.moveaxis(self._read_cards(cards), 0, -1)
                each = np.unique(
                    figures.reshape(-1, figures.shape[-1]), axis=0, return_inverse=True
                )
                kinds = np.sort(each[1].reshape(cards.shape), axis=1)
                numbers[mine] = np.unique(kinds, axis=0, return_inverse=True)[1].ravel() + n_known
                n_known += mine.size
            else:
                numbers[mine] = n_known
                n_known += 1
        return numbers

    def _read_cards(self, cards: c.Ints) -> c.Ints:
        """Read [figures, *cards.shape] all that may matter of cards."""
        table = self._cluster.cards.columns
        more = (table.healthy, table.cordoned, table.mig, table.numa, table.model, table.mode)
        found = [*table.total[:, cards], *table.used[:, cards], *(one[cards] for one in more)]
        if self.by_uuid:
            found.append(cards)
        return np.stack(found).astype(np.int64)


def _names_cards(shape: Shape) -> bool:
    gpu = shape.asked.template.gpu
    return gpu is not None and bool(gpu.use_uuids or gpu.nouse_uuids)
