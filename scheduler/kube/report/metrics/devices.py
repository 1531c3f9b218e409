"""Devices of every node and every card, as lines of the exposition format.

Forty thousand cards have so many lines that the main loop does not make them: it copies the columns, and another thread
makes the text. The labels of a card are made once, and again when nodes or their cards change.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from scheduler.devices import models as model_names
from scheduler.engine.questions.measures import DeviceColumns
from scheduler.kube.report.metrics import catalogue, text
from scheduler.measure.cards import list_run_rows
from scheduler.schema import columns as c

_BYTES_A_MIB = 1 << 20
# The first index of the columns for each metric of a node and of a card, and the factor to the metric's unit.
_FIGURES = ((c.CORES, 1), (c.MIB, _BYTES_A_MIB), (c.SLOTS, 1))
_OF_NODE = (catalogue.NODE_CORES, catalogue.NODE_MEMORY, catalogue.NODE_SHARERS)
_OF_CARD = (catalogue.CARD_CORES, catalogue.CARD_MEMORY, catalogue.CARD_SHARERS)


class _Labels(NamedTuple):
    """Labels, and the places of their figures.

    Attributes:
        made_from: the input of the labels.
        pools: [p] labels of a node's pool that has devices; ``family`` and ``node`` are its place.
        shared: which of the pools have cards.
        models: [q] labels of a pool and a model; ``of_model`` is how many GPUs of the model the pool has.
        cards: [d] labels of a card; ``rows`` is its place, ``owner`` the index of its pool among ``pools``.
    """

    made_from: tuple[object, ...]
    pools: list[str]
    family: c.Ints
    node: c.Ints
    shared: c.Ints
    models: list[str]
    of_model: c.Ints
    cards: list[str]
    rows: c.Ints
    owner: c.Ints


class Lines:
    """Makes the text, in any thread.

    Args:
        per_node, per_card: whether there are lines for each node, and for each card.
    """

    def __init__(self, *, per_node: bool, per_card: bool) -> None:
        self.is_asked = per_node or per_card
        self._per_node, self._per_card = per_node, per_card
        self._labels: _Labels | None = None
        self._lock = threading.Lock()

    def write_parts(self, copies: DeviceColumns) -> Iterator[bytes]:
        """Yield all lines, one metric at a time: together they may be fifty megabytes."""
        with self._lock:
            labels = self._get_labels(copies)
        if self._per_node:
            yield from self._write_nodes(copies, labels)
        if self._per_card:
            yield from self._write_cards(copies, labels)

    def _write_nodes(self, copies: DeviceColumns, labels: _Labels) -> Iterator[bytes]:
        used = (copies.cards[1, c.SLOTS, labels.rows] > 0).astype(np.int64)
        held = np.bincount(labels.owner, used, len(labels.pools)).astype(np.int64)
        offered = copies.offered[:, labels.family, labels.node]
        there = offered[0] + copies.runs[1, labels.family, labels.node]
        yield text.write_gauge(catalogue.NODE_DEVICES[0], labels.pools, there)
        yield text.write_gauge(catalogue.NODE_DEVICES[1], labels.pools, offered[1] + held)
        yield text.write_gauge(catalogue.NODE_MODELS, labels.models, labels.of_model)
        shared = [labels.pools[i] for i in labels.shared.tolist()]
        family, node = labels.family[labels.shared], labels.node[labels.shared]
        for both, (figure, unit) in zip(_OF_NODE, _FIGURES, strict=True):
            for metric, figures in zip(both, copies.figures, strict=True):
                yield text.write_gauge(metric, shared, figures[family, figure, node] * unit)

    @staticmethod
    def _write_cards(copies: DeviceColumns, labels: _Labels) -> Iterator[bytes]:
        for both, (figure, unit) in zip(_OF_CARD, _FIGURES, strict=True):
            for metric, figures in zip(both, copies.cards, strict=True):
                yield text.write_gauge(metric, labels.cards, figures[figure, labels.rows] * unit)

    def _get_labels(self, copies: DeviceColumns) -> _Labels:
        runs, there = copies.runs, copies.offered[0]
        rows = list_run_rows(runs[0].ravel(), runs[1].ravel())
        words = copies.words[:, rows]
        # Numbers mean the same as long as the list to which they refer is the same.
        names = (copies.nodes, id(copies.uuids), id(copies.models))
        made_from = (names, runs.tobytes(), there.tobytes(), words.tobytes())
        if self._labels is None or self._labels.made_from != made_from:
            self._labels = self._make_labels(made_from, copies, rows, words)
        return self._labels

    def _make_labels(
        self, made_from: tuple[object, ...], copies: DeviceColumns, rows: c.Ints, words: c.Ints
    ) -> _Labels:
        n_cards = copies.runs[1]
        family, node = np.nonzero((n_cards > 0) | (copies.offered[0] > 0))
        pools = [
            f'node="{text.escape_label(copies.nodes[j])}",resource="{text.escape_label(copies.resources[i])}"'
            for i, j in zip(family.tolist(), node.tolist(), strict=True)
        ]
        # Rows of cards are in the order of the pools.
        owner = np.repeat(np.arange(len(pools)), n_cards[family, node])
        makers = model_names.list_makers(copies.resources)
        names = [text.escape_label(model_names.print_name(one, makers)) for one in copies.models]
        cards: list[str] = []
        if self._per_card:
            cards = [
                f'{{{pools[p]},card="{index}",uuid="{text.escape_label(copies.uuids[uuid])}",model="{names[model]}"}}'
                for p, index, uuid, model in zip(owner.tolist(), *words.tolist(), strict=True)
            ]
        models, of_model = _make_model_labels(
            pools, copies.offered[0][family, node], owner, words[2], names
        )
        return _Labels(
            made_from,
            [f"{{{pool}}}" for pool in pools],
            family,
            node,
            np.flatnonzero(n_cards[family, node] > 0),
            models,
            of_model,
            cards,
            rows,
            owner,
        )


def _make_model_labels(
    pools: list[str], counted: c.Floats, owner: c.Ints, model: c.Ints, names: list[str]
) -> tuple[list[str], c.Ints]:
    """Return labels of every pool and each model of its cards, and how many it has; counted GPUs have no model."""
    # Nodes may write one model in several ways.
    printed = {name: i for i, name in enumerate(dict.fromkeys(names))}
    which = np.array([printed[name] for name in names], np.int64)
    n_models, words = max(len(printed), 1), list(printed)
    pairs, n_cards = np.unique(owner * n_models + which[model], return_counts=True)
    labels = [
        f'{{{pools[pair // n_models]},model="{words[pair % n_models]}"}}' for pair in pairs.tolist()
    ]
    plain = np.flatnonzero(counted > 0)
    labels += [f'{{{pools[i]},model=""}}' for i in plain.tolist()]
    return labels, np.concatenate([n_cards, counted[plain]])
