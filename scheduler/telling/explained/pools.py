"""The devices of a node's pools as plain values: who has each, and what can still be cut out of GPUs in parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from scheduler.api.claims.amounts import write_quantity
from scheduler.api.claims.devices import Device, PoolKey
from scheduler.plugins.claims import device_reasons
from scheduler.schema import columns as c
from scheduler.schema import devices as d
from scheduler.state.claims.store import Claims
from scheduler.state.cluster import Cluster
from scheduler.telling.advice import claims as advice

Json = dict[str, Any]


class _Seen(NamedTuple):
    """The devices of a node in order, with what is read of each."""

    rows: c.Ints
    free: c.Flags
    draws: c.Flags
    pools: list[PoolKey]


def describe_pools(cluster: Cluster, row: int) -> Json:
    """Describe the devices of a node by pool, each device, and the counters on which devices draw."""
    claims = cluster.claims
    columns = claims.table.columns
    has_any = row < columns.unsure.size
    rows = device_reasons.list_devices(columns, row) if has_any else np.zeros(0, np.int64)
    keys = map(claims.table.find_key, rows.tolist())
    seen = _Seen(
        rows,
        device_reasons.is_free(columns, rows),
        device_reasons.may_draw(columns, rows),
        [PoolKey(one.driver, one.pool) for one in keys],
    )
    problems = {
        one.pool: "invalid" if one.is_invalid else "incomplete"
        for one in claims.inventory.problems.get(row, ())
    }
    sources = {pool: claims.inventory.read_pool(pool) for pool in dict.fromkeys(seen.pools)}
    return {
        "pools": [
            _sum_up(claims, seen, pool, problems.get(pool))
            for pool in dict.fromkeys([*seen.pools, *problems])
        ],
        "devices": list(_list_devices(cluster, seen)),
        "counters": _list_counters(claims, seen, sources),
    }


def _is_tainted(claims: Claims, row: int) -> bool:
    columns = claims.table.columns
    return bool(claims.table.kinds.table.values[int(columns.kind[row])].taints)


def _sum_up(claims: Claims, seen: _Seen, pool: PoolKey, problem: str | None) -> Json:
    mine = np.array([one == pool for one in seen.pools], np.bool_)
    columns, rows = claims.table.columns, seen.rows[mine]
    in_use = (columns.owners[rows] > 0) | (columns.sharers[rows] > 0)
    tainted = np.array([_is_tainted(claims, row) for row in rows.tolist()], np.bool_)
    return {
        "driver": pool.driver,
        "pool": pool.name,
        "devices": int(rows.size),
        "inUse": int(in_use.sum()),
        "free": int((seen.free & seen.draws)[mine][~tainted].sum()),
        "tainted": int(tainted.sum()),
        "problem": problem,
    }


def _list_devices(cluster: Cluster, seen: _Seen) -> Iterable[Json]:
    claims = cluster.claims
    columns, kinds = claims.table.columns, claims.table.kinds.table.values
    holders = advice.list_holders(claims)
    for i, row in enumerate(seen.rows.tolist()):
        key, kind = claims.table.find_key(row), kinds[int(columns.kind[row])]
        cell = int(columns.cell[row])
        cells = columns.cells[:, cell : cell + len(kind.capacities)].T if cell >= 0 else ()
        yield {
            **key._asdict(),
            "shared": kind.is_shareable,
            "taints": [dict(zip(("key", "value", "effect"), one, strict=True)) for one in kind.taints],
            "canBeHad": bool(seen.free[i] and seen.draws[i]),
            "capacities": [
                {"name": name, "total": write_quantity(int(total)), "free": write_quantity(max(0, int(total - used)))}
                for (name, _), (total, used) in zip(kind.capacities, cells, strict=False)
            ],
            "holders": [advice.describe_holder(cluster, one) for one in holders.get(key, ())],
        }  # fmt: skip


def _list_counters(
    claims: Claims, seen: _Seen, sources: Mapping[PoolKey, Mapping[str, Device]]
) -> list[Json]:
    """List the sets of counters, with the devices that can still be had of each, one by one."""
    columns, found = claims.table.columns, dict[int, Json]()
    for i, row in enumerate(seen.rows.tolist()):
        pool, name = seen.pools[i], claims.table.find_key(row).name
        device = sources[pool].get(name)
        for (in_set, pattern), draw in zip(d.DRAWS, device.draws if device else (), strict=False):
            number = int(columns.draws[in_set, row])
            if number < 0:
                continue
            one = found.setdefault(
                number,
                {
                    "driver": pool.driver, "pool": pool.name, "set": draw.counter_set, "counters": {}, "inUse": [], "canBeCut": [],
                },
            )  # fmt: skip
            first, n = columns.patterns[:2, columns.draws[pattern, row]].tolist()
            places = columns.pattern[first : first + n, 0].tolist()
            for (counter, _), place in zip(draw.amounts, places, strict=False):
                at = int(columns.sets[d.SET_FIRST, number]) + place
                total, used = columns.counters[:, at].tolist()
                figures = {"total": write_quantity(total), "free": write_quantity(max(0, total - used))}  # fmt: skip
                one["counters"][counter] = figures
            if columns.owners[row] > 0 or columns.sharers[row] > 0:
                one["inUse"].append(name)
            elif seen.draws[i]:
                one["canBeCut"].append(name)
    return list(found.values())
