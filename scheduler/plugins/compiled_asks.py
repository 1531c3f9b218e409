"""What kernels read about a shape: the rules that evaluate what is charged to a node compile it together."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from scheduler.plugins import table
from scheduler.plugins.contract import Asked
from scheduler.schema import columns as c
from scheduler.schema.handles import share
from scheduler.state.cluster import Cluster
from scheduler.state.structures.recent import Recent

# Handles that shapes share.
_PREFERENCES_MAX = 1024


def compile_ask(asked: Asked, cluster: Cluster) -> c.Ask:
    """The handle that kernels take for the shape."""
    parts: dict[str, Any] = {}
    preferences: dict[str, Any] = {"bits": _BITS}
    rules: dict[str, Any] = {}
    for row in table.ROWS:
        one = row.compile(asked, cluster)
        parts |= one.parts
        preferences |= one.preferences
        rules |= one.rules
    return c.Ask(**parts, rules=_card_rules(**rules), prefers=_share_preferences(preferences))


def _share_preferences(values: dict[str, Any]) -> c.Preferences:
    """The handle of these objects: as long as it is kept, no other objects have their identities."""
    key = tuple(map(id, values.values()))
    return _shared.get(key) or _shared.put(key, c.Preferences(**values))


_shared: Recent[tuple[int, ...], c.Preferences] = Recent(_PREFERENCES_MAX)


@lru_cache(maxsize=1024)
def _card_rules(**figures: Any) -> c.CardRules:
    return c.CardRules(**figures)


def _number_bits() -> c.Ints:
    bits = share(np.zeros(c.N_BITS, np.int64))
    bits[c.BIT_FIRST_RESOURCE] = len(table.REASONS)
    for rule in table.RULES:
        if rule.row and rule.row.bit >= 0:
            bits[rule.row.bit] = table.FIRST_BIT[rule]
    return bits


_BITS = _number_bits()
