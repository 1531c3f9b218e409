"""What kernels read about a shape. All rules that evaluate what is charged to a node compile it together."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from scheduler.api.placement import Placement
from scheduler.plugins import table
from scheduler.plugins.contract import Asked
from scheduler.schema import columns as c
from scheduler.schema.handles import share_array
from scheduler.state.cluster import Cluster
from scheduler.state.structures.recent import Recent

_PREFERENCES_MAX = 256


class _Shared(NamedTuple):
    """The preferences of shapes with one placement. The placement is kept so that no other object gets its ``id``."""

    placement: Placement
    handle: c.Preferences


class AskCompiler:
    """Compiles the shapes of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._shared: Recent[Hashable, _Shared] = Recent(_PREFERENCES_MAX)

    def compile_ask(self, asked: Asked) -> c.Ask:
        """Compile the handle that kernels take for a shape, for the nodes and cards that are there now."""
        nodes = self._cluster.nodes
        by_card = nodes.pools.list_managed_families()
        more = tuple(
            self._compile_family(asked._replace(template=part))
            for part in asked.template.more
            # Devices that are counted on every node are amounts like any other.
            if nodes.devices.find_family(part.family) in by_card
        )
        ask = self._compile_family(asked)
        return ask.replace(more=more) if more else ask

    def _compile_family(self, asked: Asked) -> c.Ask:
        """Compile the request of a shape for the first family of its template."""
        parts: dict[str, Any] = {}
        rules: dict[str, Any] = {}
        for row in table.ROWS:
            one = row.compile(asked, self._cluster)
            parts |= one.parts
            rules |= one.rules
        return c.Ask(
            **parts, more=(), rules=_make_card_rules(**rules), prefers=self._get_preferences(asked)
        )

    def _get_preferences(self, asked: Asked) -> c.Preferences:
        """Return the preferences that most shapes of a placement share: a lookup takes a tenth of the compile time."""
        gpu, cluster = asked.template.gpu, self._cluster
        accepted = gpu.accepted if gpu is not None else None
        by = id(asked.placement), accepted, cluster.nodes.resources.generation, *cluster.cards.words
        found = self._shared.get(by)
        if found is None:
            made = compile_preferences(asked, cluster)
            found = self._shared.put(by, _Shared(asked.placement, made))
        return found.handle


def compile_preferences(asked: Asked, cluster: Cluster) -> c.Preferences:
    """Compile the preferences of a shape without a lookup."""
    parts: dict[str, Any] = {}
    for row in table.ROWS:
        if row.prefers is not None:
            parts |= row.prefers(asked, cluster)
    return c.Preferences(**parts, bits=_BITS)


@lru_cache(maxsize=1024)
def _make_card_rules(**figures: Any) -> c.CardRules:
    return c.CardRules(**figures)


def _number_bits() -> c.Ints:
    bits = share_array(np.zeros(c.N_BITS, np.int64))
    bits[c.BIT_FIRST_RESOURCE] = len(table.REASONS)
    for rule in table.RULES:
        if rule.row and rule.row.bit >= 0:
            bits[rule.row.bit] = table.FIRST_BIT[rule]
    return bits


_BITS = _number_bits()
