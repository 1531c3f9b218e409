"""Cards of nodes as plain values: the total, used and free amounts of each card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.api.reasons import CardRefusal
from scheduler.devices import models
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster

Json = dict[str, Any]
_FIGURES = (("memoryMiB", c.MIB), ("cores", c.CORES), ("sharers", c.SLOTS))


def describe_card(cluster: Cluster, d: int) -> Json:
    """Describe the card of a row."""
    columns, table = cluster.cards.columns, cluster.cards
    makers = models.list_makers(cluster.registers.devices.families)
    figures = {
        name: {
            "total": int(columns.total[figure, d]),
            "used": int(columns.used[figure, d]),
            "free": max(0, int(columns.total[figure, d]) - int(columns.used[figure, d])),
        }
        for name, figure in _FIGURES
    }
    return {
        "index": int(columns.position[d]),
        "id": table.find_uuid(d),
        "model": models.print_name(table.models.values[int(columns.model[d])], makers),
        "mode": table.modes.values[int(columns.mode[d])],
        "numa": int(columns.numa[d]),
        "healthy": bool(columns.healthy[d]),
        "closed": bool(columns.cordoned[d]),
        **figures,
    }


def name_refusal(code: CardRefusal | None, names: Mapping[CardRefusal, str]) -> str | None:
    """Name the reason why a card does not suit; None if it suits."""
    return None if code is None else names[code]
