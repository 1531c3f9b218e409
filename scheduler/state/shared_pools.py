"""Pools of devices that belong to no single node: pods on every node that reaches such a pool may get its devices.

What a pod takes of such a pool, pods on all these nodes lack. So all these nodes count as changed when one of them does.
"""

from __future__ import annotations

import numpy as np

from scheduler.devices.contract import SharedPool
from scheduler.schema import columns as c
from scheduler.state.cards import CardTable
from scheduler.state.charging.roster import Roster
from scheduler.state.nodes import NodeTable
from scheduler.state.pools import PoolPlan
from scheduler.state.structures.changes import Changes


class SharedPools:
    """Writes the shared pools of one cluster."""

    def __init__(self, nodes: NodeTable, cards: CardTable, roster: Roster, moved: Changes) -> None:
        self._nodes, self._cards, self._roster, self._moved = nodes, cards, roster, moved
        self._known: dict[str, tuple[SharedPool, int]] = {}

    def see_pool(self, pool: SharedPool) -> None:
        """Take over a pool as its source has it now; an older version than the known one is left out."""
        known = self._known.get(pool.key)
        if known is not None and pool.generation < known[0].generation:
            return
        self._change(pool.key, pool)

    def drop_pool(self, key: str) -> None:
        """Drop a pool whose source is gone; its pods hold nothing of it any more."""
        if key in self._known:
            self._change(key, None)

    def note_node(self) -> None:
        """Find out anew which nodes reach the pools, because a node has come or has other labels."""
        if self._known:
            self._write_reach()

    @property
    def are_there(self) -> bool:
        """Whether there is any shared pool; most clusters have none."""
        return bool(self._known)

    def find_family(self, family: int) -> bool:
        """Whether a shared pool has devices of a family."""
        pools = self._nodes.columns.pools
        return any(int(pools.family[row]) == family for _, row in self._known.values())

    def _change(self, key: str, pool: SharedPool | None) -> None:
        """Replace a pool while no pod is charged."""
        nodes = list(self._nodes.rows.items())
        struck = [(row, self._roster.strike(name)) for name, row in nodes]
        self._clear(key)
        if pool is not None:
            self._known[key] = pool, self._write(pool)
        self._write_reach()
        for row, pods in struck:
            self._roster.charge(pods, row)
        self._moved.add_many([row for _, row in nodes])

    def _clear(self, key: str) -> None:
        if key not in self._known:
            return
        _, row = self._known.pop(key)
        pools = self._nodes.columns.pools
        self._cards.give_back(int(pools.start[row]), int(pools.count[row]))
        self._roster.registers.name_cards(row, {})
        self._nodes.pools.give_back(row, 1)

    def _write(self, pool: SharedPool) -> int:
        nodes, devices = self._nodes, self._nodes.devices
        devices.add_families((pool.family,))
        number = next(i for i, one in devices.cards.items() if one.name == pool.driver)
        family, chooser = devices.find_family(pool.family), devices.cards[number].chooser
        row = nodes.pools.place_pools([PoolPlan(family, number, True, chooser, c.UNKNOWN)], -1)
        pools = nodes.columns.pools
        start = self._cards.place_cards(pool.cards, row)
        span = slice(start, start + len(pool.cards))
        pools.start[row], pools.count[row] = start, len(pool.cards)
        pools.generation[row], pools.complete[row] = pool.generation, pool.complete
        pools.total[:, row] = self._cards.columns.total[:, span].sum(axis=1)
        self._cards.columns.cordoned[span] = not pool.complete
        rows = {card.id: d for d, card in enumerate(pool.cards, start)}
        self._roster.registers.name_cards(row, rows)
        return row

    def _write_reach(self) -> None:
        reach = np.zeros((len(self._known), self._nodes.capacity), np.bool_)
        for i, (pool, _) in enumerate(self._known.values()):
            for name, row in self._nodes.rows.items():
                facts = self._nodes.facts[row]
                reach[i, row] = facts is not None and pool.is_reached(name, facts.labels)
        self._nodes.share_pools([row for _, row in self._known.values()], reach)
        self._moved.widen = self._widen if self._known else None

    def _widen(self, rows: c.Ints) -> c.Ints:
        reach = self._nodes.columns.reach
        if rows.size and rows[-1] >= reach.shape[1]:
            return rows
        found: c.Flags = np.zeros(reach.shape[1], np.bool_)
        found[rows] = True
        found |= reach[reach[:, rows].any(axis=1)].any(axis=0)
        wide: c.Ints = np.flatnonzero(found)
        return wide
