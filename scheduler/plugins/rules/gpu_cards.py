"""GpuCards: where cards are allocated one by one, the node has cards for every container that requests any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scheduler.api.door.decisions import Detail
from scheduler.api.reasons import CARD_CODES, CardRefusal
from scheduler.devices import card_order
from scheduler.devices.table import FAMILIES, place_of
from scheduler.kernels import diagnose
from scheduler.plugins import card_figures, cards_seen
from scheduler.plugins.contract import (
    Asked,
    Change,
    Compiled,
    Held,
    Hint,
    Judged,
    Reason,
    Row,
    RowReasons,
    Rule,
    Summary,
)
from scheduler.schema import columns as c
from scheduler.schema import empty, shared
from scheduler.state.cluster import Cluster

_REFUSED = "node(s) had no fitting GPU"
_SILENT = tuple(
    text
    for family in FAMILIES
    if family.cards is not None
    for text in (family.cards.none_told, family.cards.not_told)
)


def _compile(asked: Asked, cluster: Cluster) -> Compiled:
    gpu, placement = asked.template.gpu, asked.placement
    asking = [i for i, slot in enumerate(gpu.containers) if slot.cards] if gpu else []
    numa_bind = bool(gpu and gpu.numa_bind)
    parts = {
        "pool": place_of(asked.template.family),
        "containers": cluster.ledger.get_containers(asked.template) if gpu else empty.containers(),
    }
    rules = {
        "numa_bind": numa_bind,
        "mutex": card_order.is_mutex(placement),
        "whole": dict(asked.template.requests.amounts).get(asked.template.family, 0),
        "walk": bool(placement.gpu_policy or len(asking) > 1 or numa_bind),
        "only": asking[0] if asking else -1,
        "size": asked.template.size,
        "draw": 0,
    }
    return Compiled(parts, rules)


def _prefers(asked: Asked, cluster: Cluster) -> Mapping[str, Any]:
    gpu, placement, cards = asked.template.gpu, asked.placement, cluster.cards
    numa_bind = bool(gpu and gpu.numa_bind)
    return {
        "card_weights": shared.ints(*placement.device_weights),
        "sort_keys": card_order.sort_keys(placement.gpu_policy, numa_bind=numa_bind),
        "model_ok": card_order.models_ok(gpu, cards.models.values),
        "mode_ok": card_order.modes_ok(gpu, cards.modes.values),
        "uuid_ok": card_order.uuids_ok(gpu, cards.uuids.values),
    }


def _tell(judged: Judged) -> RowReasons:
    """One text a node: how many of its cards were refused for what. Counted now, for it is expensive to keep."""
    codes, n_cards = _codes(judged), _n_cards(judged.cluster, judged.ask.pool, judged.rows)
    kinds, which = np.unique(np.column_stack((n_cards, codes)), axis=0, return_inverse=True)
    silent = _silent(judged)
    texts = tuple(
        _text(kind[1:], int(kind[0])) if kind[0] > 0 else silent[-int(kind[0])] for kind in kinds
    )
    return RowReasons(texts, which.reshape(-1, 1) == np.arange(len(kinds)), n_cards <= 0)


def _sum_up(judged: Judged) -> Summary:
    """One text for all nodes, and what is behind it over all their cards."""
    codes, n_cards = _codes(judged), _n_cards(judged.cluster, judged.ask.pool, judged.rows)
    none_told, not_told = _silent(judged)
    reasons = [(_REFUSED, n_cards > 0), (none_told, n_cards == 0), (not_told, n_cards < 0)]
    counts = tuple((text, int(which.sum())) for text, which in reasons if which.any())
    found = card_figures.figures(judged, cards_seen.see_cards(judged, codes))
    details = tuple(Detail(CARD_CODES[code], text) for code, text in found)
    return Summary(counts, int((n_cards <= 0).sum()), details)


def _lasting(judged: Judged) -> c.Flags:
    """Nodes without a card of the family."""
    lasting: c.Flags = judged.cluster.nodes.columns.card_count[judged.ask.pool, judged.rows] == 0
    return lasting


def _codes(judged: Judged) -> c.Ints:
    """[n, N_CARD_CODES] how many cards of each row are refused for what."""
    codes = np.zeros((judged.rows.size, c.N_CARD_CODES), np.int64)
    diagnose.card_codes(judged.world, judged.ask, judged.rows, codes)
    return codes


def _silent(judged: Judged) -> tuple[str, str]:
    """The texts for nodes that report no card, and for nodes that have not reported yet."""
    driver = judged.cluster.registers.families[judged.ask.pool].cards
    return (driver.none_told, driver.not_told) if driver is not None else ("", "")


def _n_cards(cluster: Cluster, pool: int, rows: c.Ints) -> c.Ints:
    """Cards of a family on such nodes: 0 where none is registered, -1 where nothing was said of cards yet."""
    counted: c.Ints = cluster.nodes.columns.card_count[pool, rows]
    for i in np.flatnonzero(counted == 0).tolist():
        facts = cluster.nodes.facts[rows[i]]
        counted[i] = 0 if facts and facts.devices[pool].is_told else -1
    return counted


def _text(codes: c.Ints, cards: int) -> str:
    """The text for one node with so many cards."""
    if codes[CardRefusal.TOO_MANY_ASKED]:
        # A word about the node, not about some of its cards.
        found = [CARD_CODES[CardRefusal.TOO_MANY_ASKED]]
    else:
        found = sorted(
            f"{int(n)}/{cards} {CARD_CODES[CardRefusal(i)]}" for i, n in enumerate(codes) if n
        )
    return f"{_REFUSED} ({', '.join(found)})"


def _hint(held: Held) -> Hint:
    """Some of a card of the family becomes free."""
    return Hint(here=((Change.NODE_DEVICES, held.template.family),))


RULE = Rule(
    name="GpuCards",
    reasons=(Reason(_REFUSED),),
    row=Row(compile=_compile, prefers=_prefers, bit=c.BIT_CARDS),
    tell=_tell,
    sum_up=_sum_up,
    lasting=_lasting,
    texts=(_REFUSED, *_SILENT),
    hint=_hint,
)
