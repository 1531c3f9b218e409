"""GpuCards: on a node whose cards are allocated one by one, every container that requests cards can get them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scheduler.api.door.decisions import Detail
from scheduler.api.reasons import CardRefusal
from scheduler.devices import card_order
from scheduler.devices.table import CARD_DRIVERS
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
    text for driver in CARD_DRIVERS.values() for text in (driver.none_told, driver.not_told)
)


def _compile_request(asked: Asked, cluster: Cluster) -> Compiled:
    gpu, placement = asked.template.gpu, asked.placement
    asking = [i for i, slot in enumerate(gpu.containers) if slot.cards] if gpu else []
    numa_bind = bool(gpu and gpu.numa_bind)
    parts = {
        "family": cluster.registers.devices.find_family(asked.template.family),
        "containers": card_order.add_parts(
            cluster.ledger.get_containers(asked.template), gpu, cluster.cards.models.values
        )
        if gpu
        else empty.make_containers(),
    }
    rules = {
        "numa_bind": numa_bind,
        "mutex": card_order.is_mutex(placement),
        "linked": card_order.is_linked(placement),
        "any_idle": bool(gpu and gpu.any_idle),
        "closing": gpu.sharing.closing if gpu else 0,
        "opening": gpu.sharing.opening if gpu else 0,
        "keeping": gpu.sharing.keeping if gpu else 0,
        "coreless": bool(gpu and gpu.sharing.coreless),
        "whole": dict(asked.template.requests.amounts).get(asked.template.family, 0),
        "joint": bool(gpu and gpu.joint),
        "walk": bool(placement.gpu_policy or len(asking) > 1 or numa_bind),
        "only": asking[0] if asking else -1,
        "size": asked.template.size,
        "draw": 0,
    }
    return Compiled(parts, rules)


def _compile_preferences(asked: Asked, cluster: Cluster) -> Mapping[str, Any]:
    gpu, placement, cards = asked.template.gpu, asked.placement, cluster.cards
    numa_bind = bool(gpu and gpu.numa_bind)
    return {
        "card_weights": shared.make_ints(*placement.device_weights),
        "sort_keys": card_order.make_sort_keys(placement.gpu_policy, numa_bind=numa_bind),
        "model_ok": card_order.accept_parts(gpu, cards.models.values),
        "mode_ok": card_order.accept_modes(gpu, cards.modes.values),
        "uuid_ok": card_order.accept_uuids(gpu, cards.uuids.values),
    }


def _tell_reasons(judged: Judged) -> RowReasons:
    """Make one text for each node: how many of its cards are refused for which reason.

    The cards are counted when the texts are needed, because it costs too much to keep the counts up to date.
    """
    codes, n_cards = (
        _count_refusals(judged),
        _count_cards(judged.cluster, judged.ask.family, judged.rows),
    )
    names = cards_seen.name_codes(judged)
    kinds, which = np.unique(np.column_stack((n_cards, codes)), axis=0, return_inverse=True)
    silent = _get_silent_texts(judged)
    texts = tuple(
        _make_text(kind[1:], int(kind[0]), names) if kind[0] > 0 else silent[-int(kind[0])]
        for kind in kinds
    )
    return RowReasons(texts, which.reshape(-1, 1) == np.arange(len(kinds)), n_cards <= 0)


def _sum_up_reasons(judged: Judged) -> Summary:
    """Make one text for all nodes, and the figures over all their cards."""
    codes, n_cards = (
        _count_refusals(judged),
        _count_cards(judged.cluster, judged.ask.family, judged.rows),
    )
    none_told, not_told = _get_silent_texts(judged)
    reasons = [(_REFUSED, n_cards > 0), (none_told, n_cards == 0), (not_told, n_cards < 0)]
    counts = tuple((text, int(which.sum())) for text, which in reasons if which.any())
    found = card_figures.describe_refusals(judged, cards_seen.see_cards(judged, codes))
    names = cards_seen.name_codes(judged)
    details = tuple(Detail(names[code], text) for code, text in found)
    return Summary(counts, int((n_cards <= 0).sum()), details)


def _find_lasting(judged: Judged) -> c.Flags:
    """Find the nodes without a card of the family."""
    cluster = judged.cluster
    pools = cluster.nodes.find_pools(judged.ask.family)[judged.rows]
    lasting: c.Flags = cluster.nodes.columns.pools.count[pools] == 0
    return lasting


def _count_refusals(judged: Judged) -> c.Ints:
    """Count [n, N_CARD_CODES] how many cards of each row are refused for which reason."""
    codes = np.zeros((judged.rows.size, c.N_CARD_CODES), np.int64)
    diagnose.count_card_codes(judged.world, judged.ask, judged.rows, codes)
    return codes


def _get_silent_texts(judged: Judged) -> tuple[str, str]:
    """Return the text for nodes that report no card, and the text for nodes that have not reported yet."""
    drivers = judged.cluster.nodes.devices.list_card_drivers(judged.asked.template.family)
    return (drivers[0].none_told, drivers[0].not_told) if drivers else ("", "")


def _count_cards(cluster: Cluster, family: int, rows: c.Ints) -> c.Ints:
    """Count the cards [n] of a family on each row: 0 if the node reports none, -1 if it has not reported yet."""
    nodes, registers = cluster.nodes, cluster.registers
    counted: c.Ints = nodes.columns.pools.count[nodes.find_pools(family)[rows]]
    for i in np.flatnonzero(counted == 0).tolist():
        counted[i] = 0 if registers.is_told(family, int(rows[i])) else -1
    return counted


def _make_text(codes: c.Ints, cards: int, names: Mapping[CardRefusal, str]) -> str:
    """Make the text for one node with so many ``cards``."""
    if codes[CardRefusal.TOO_MANY_ASKED]:
        # This reason is about the whole node, not about some of its cards.
        found = [names[CardRefusal.TOO_MANY_ASKED]]
    else:
        found = sorted(
            f"{int(n)}/{cards} {names[CardRefusal(i)]}" for i, n in enumerate(codes) if n
        )
    return f"{_REFUSED} ({', '.join(found)})"


def _make_hint(held: Held) -> Hint:
    """A card of the family changes, or a part of it becomes free."""
    return Hint(here=((Change.NODE_DEVICES, held.template.family),))


RULE = Rule(
    name="GpuCards",
    reasons=(Reason(_REFUSED),),
    row=Row(compile=_compile_request, prefers=_compile_preferences, bit=c.BIT_CARDS),
    tell=_tell_reasons,
    sum_up=_sum_up_reasons,
    lasting=_find_lasting,
    texts=(_REFUSED, *_SILENT),
    hint=_make_hint,
)
