"""Count why a shape fits nowhere: reasons as codes, node by node, summed up."""

from __future__ import annotations

from collections import Counter

import numpy as np

from scheduler.api import names
from scheduler.api.decisions import Diagnosis
from scheduler.api.reasons import (
    CARD_CODES,
    NOT_REGISTERED,
    REGISTERED_NONE,
    UNRESOLVABLE,
    WORDS,
    CardRefusal,
    Refusal,
)
from scheduler.cycle.boards import Shape
from scheduler.kernels import diagnose
from scheduler.plugins import FILTERS
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster


def of_shape(cluster: Cluster, shape: Shape, scratch: c.Scratch) -> Diagnosis:
    """The reasons of all nodes. The shape's board must be up to date."""
    rows, verdict, short, codes = of_rows(cluster, shape, scratch, all_rows(cluster))
    counts: Counter[str] = Counter()
    unresolvable = 0
    for refusal, text in WORDS.items():
        n = int((verdict == refusal).sum())
        counts[text] += n
        unresolvable += n if refusal in UNRESOLVABLE else 0
    starved = verdict == Refusal.RESOURCES
    for i, resource in enumerate(shape.resources):
        counts[resource_reason(resource)] += int(short[starved, i].sum())
    unresolvable += int(beyond_capacity(cluster, shape, rows, short)[starved].sum())
    without = verdict == Refusal.CARDS
    if without.any():
        counted = n_cards(cluster, rows[without])
        unresolvable += int((counted <= 0).sum())
        refused = np.column_stack((counted, codes[without]))
        kinds, how_many = np.unique(refused, axis=0, return_counts=True)
        for kind, n in zip(kinds, how_many.tolist(), strict=True):
            counts[card_reason(kind[1:], kind[0])] += n
    return Diagnosis(rows.size, tuple(sorted((k, n) for k, n in counts.items() if n)), unresolvable)


def all_rows(cluster: Cluster) -> c.Ints:
    """Rows of all nodes, ascending."""
    return np.array(sorted(cluster.nodes.rows.values()), np.int64)


def of_rows(
    cluster: Cluster, shape: Shape, scratch: c.Scratch, rows: c.Ints
) -> tuple[c.Ints, c.Ints, c.Flags, c.Ints]:
    """Per row: the Refusal (0 fits), resources that are short [n, k], card codes [n, 13]."""
    verdict = np.zeros(rows.size, np.int64)
    short = np.zeros((rows.size, shape.ask.resources.size), np.bool_)
    codes = np.zeros((rows.size, c.N_CARD_CODES), np.int64)
    diagnose.diagnose(
        cluster.nodes.columns,
        cluster.cards.columns,
        shape.ask,
        rows,
        scratch,
        short,
        codes,
        verdict,
    )
    for refusal, refuses in reversed(FILTERS):
        verdict[refuses(shape.template, cluster.nodes, rows)] = refusal
    verdict[~cluster.nodes.columns.valid[rows]] = Refusal.LEFT_OUT
    return rows, verdict, short, codes


def resource_reason(resource: str) -> str:
    """kube-scheduler's words for a resource that is short."""
    return "Too many pods" if resource == names.PODS else f"Insufficient {resource}"


def n_cards(cluster: Cluster, rows: c.Ints) -> c.Ints:
    """Cards of nodes of HAMi's: 0 where none is registered, -1 where nothing was said of cards yet."""
    counted: c.Ints = cluster.nodes.columns.card_count[rows]
    for i in np.flatnonzero(counted == 0).tolist():
        facts = cluster.nodes.facts[rows[i]]
        counted[i] = 0 if facts and facts.register else -1
    return counted


def card_reason(codes: c.Ints, cards: int) -> str:
    """HAMi's text for one node with so many cards: how many of them were refused for what."""
    if cards <= 0:
        return NOT_REGISTERED if cards < 0 else REGISTERED_NONE
    if codes[CardRefusal.TOO_MANY_ASKED]:
        # A word about the node, not about some of its cards.
        found = [CARD_CODES[CardRefusal.TOO_MANY_ASKED]]
    else:
        found = sorted(
            f"{int(n)}/{cards} {CARD_CODES[CardRefusal(i)]}" for i, n in enumerate(codes) if n
        )
    return f"node(s) had no fitting GPU ({', '.join(found)})"


def beyond_capacity(cluster: Cluster, shape: Shape, rows: c.Ints, short: c.Flags) -> c.Flags:
    """Rows where a request alone is more than the whole node has."""
    allocatable = cluster.nodes.columns.allocatable[np.ix_(shape.ask.resources, rows)].T
    beyond: c.Flags = np.zeros(rows.size, np.bool_)
    np.logical_or.reduce(short & (shape.ask.amounts[None, :] > allocatable), axis=1, out=beyond)
    return beyond
