"""Finds the dollars a month per unit of every node: of a core, a GiB, a GPU, a GiB of its memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.audit.prices import book as books
from scheduler.audit.prices.book import PriceBook
from scheduler.devices import models
from scheduler.engine.engine import Engine
from scheduler.engine.questions.auditing import DevicesOn, NodeDevices
from scheduler.engine.questions.nodes import KnownNode
from scheduler.measure import figures as m
from scheduler.schema import columns as c

UNKNOWN = "model unknown"
_ROUND = 2
_LEAST = 1e-9


class ModelRate(NamedTuple):
    """The price at which the GPUs of one known or unknown model were counted.

    Attributes:
        model: the printed name of the model.
        gpus: how many there are.
        parts: how many devices the nodes offer; more than ``gpus`` if plugins offer parts of GPUs.
        price: the price of each GPU a month.
        source: where the price is from.
        names: all names that nodes write for the model.
    """

    model: str
    gpus: float
    parts: int
    price: float
    source: str
    names: tuple[str, ...]

    def merge(self, other: ModelRate) -> ModelRate:
        """Merge two entries of the same model at the same price."""
        gpus = round(self.gpus + other.gpus, _ROUND)
        names = tuple(dict.fromkeys((*self.names, *other.names)))
        return self._replace(gpus=gpus, parts=self.parts + other.parts, names=names)


def find_rates(
    engine: Engine, names: Sequence[str], prices: PriceBook
) -> tuple[c.Floats, list[ModelRate]]:
    """Find [4, N] the dollars per unit, by ``measure.figures.DIMENSIONS``, and the models that there are.

    Half of the price of a GPU is for its compute and half for its memory; if its memory is unknown, all of it is for
    its compute. A node with several models has the mean of their prices.
    """
    there = engine.ask(DevicesOn(names))
    cards, words, makers = there.cards, there.models, models.list_makers(there.resources)
    labelled = [_find_label(engine, name, prices) for name in names]
    # Of a whole GPU, also where parts are offered.
    gib = np.round(cards.capacity[1] / np.maximum(cards.capacity[0], _LEAST), 3)
    seen: dict[tuple[str, float], list[int]] = {}
    for i, (owner, model, size) in enumerate(
        zip(cards.owner.tolist(), cards.model.tolist(), gib.tolist(), strict=True)
    ):
        seen.setdefault((words[model] if model >= 0 else labelled[owner], size), []).append(i)
    price = np.zeros(cards.owner.size)
    found: dict[tuple[str, float, str], ModelRate] = {}
    for (model, size), entries in seen.items():
        known = prices.find_model(model)
        price[entries] = known.price if known else prices.find_memory_price(size)
        source = known.source if known else _name_by_memory(size, prices)
        parts = int(cards.n_all[entries].sum())
        gpus = round(float(cards.capacity[0][entries].sum()), _ROUND)
        if gpus:
            rate = float(price[entries[0]])
            name = models.print_name(model, makers)
            one = ModelRate(name or UNKNOWN, gpus, parts, rate, source, (model,) if model else ())
            key = (name.lower(), rate, source)
            found[key] = found[key].merge(one) if key in found else one
    has_memory = cards.capacity[1] > 0
    worth = price * cards.capacity[0]
    n = len(names)
    rates = np.zeros((len(m.DIMENSIONS), n))
    rates[m.CPU], rates[m.MEMORY] = (
        prices.units[books.CPU_CORE],
        prices.units[books.MEMORY_GIB],
    )
    for dimension, part, per in (
        (m.GPU, np.where(has_memory, 0.5, 1.0), cards.capacity[0]),
        (m.GPU_MEMORY, np.where(has_memory, 0.5, 0.0), cards.capacity[1]),
    ):
        total = np.bincount(cards.owner, worth * part, n)
        amount = np.bincount(cards.owner, per, n)
        rates[dimension] = np.divide(total, amount, where=amount > 0, out=np.zeros(n))
    return rates, sorted(found.values(), key=lambda one: (-one.gpus * one.price, one.model))


def name_models(
    engine: Engine, names: Sequence[str], there: NodeDevices, prices: PriceBook
) -> list[list[str]]:
    """List the printed names of the models of each node; none if no model is known."""
    cards, words, makers = there.cards, there.models, models.list_makers(there.resources)
    found: list[dict[str, None]] = [{} for _ in names]
    for owner, model in zip(cards.owner.tolist(), cards.model.tolist(), strict=True):
        text = words[model] if model >= 0 else _find_label(engine, names[owner], prices)
        if text:
            found[owner][models.print_name(text, makers)] = None
    counted = set(cards.owner.tolist())
    for i, name in enumerate(names):
        if i in counted or not there.has_gpu[i]:
            continue
        # Even if GPUs cannot be counted, the label names their model.
        if text := _find_label(engine, name, prices):
            found[i][models.print_name(text, makers)] = None
    return [list(one) for one in found]


def _find_label(engine: Engine, name: str, prices: PriceBook) -> str:
    """Find the model of the GPUs in a node's labels; empty for none."""
    facts = engine.ask(KnownNode(name))
    labels = facts.labels if facts is not None else {}
    return next((labels[label] for label in prices.labels if labels.get(label)), "")


def _name_by_memory(gib: float, prices: PriceBook) -> str:
    if gib:
        return f"model not in the list; priced by its {gib:.0f} GiB of memory"
    return (
        f"model not in the list, memory not reported; priced as a GPU of {prices.unknown_gib:g} GiB"
    )
