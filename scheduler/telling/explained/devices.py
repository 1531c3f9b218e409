"""Cards of nodes as plain values: what there is on each, what is used, and by whom."""

from __future__ import annotations

from typing import Any

from scheduler.api.reasons import CARD_CODES, CardRefusal
from scheduler.devices import models
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster

Json = dict[str, Any]
_FIGURES = (("memoryMiB", c.MIB), ("cores", c.CORES), ("sharers", c.SLOTS))


def card(cluster: Cluster, d: int) -> Json:
    """One card, by its row."""
    columns, table = cluster.cards.columns, cluster.cards
    makers = models.makers(one.resource for one in cluster.registers.families)
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


def refusal(code: CardRefusal | None) -> str | None:
    """The word for why a card will not do; None where it would."""
    return None if code is None else CARD_CODES[code]
