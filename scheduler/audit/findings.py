"""The audit as plain values, from nodes and pods to what JSON, table and page all show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.placement import Mode
from scheduler.api.pods import gpus
from scheduler.audit import barriers, comparison, reasons, unread, upcoming
from scheduler.audit.again import staying
from scheduler.audit.prices import rates as rates_of
from scheduler.audit.prices.book import PriceBook
from scheduler.audit.prices.rates import ModelRate
from scheduler.audit.unread import Unread
from scheduler.config import Config
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.engine.questions.auditing import (
    DevicesOn,
    FiguresBy,
    JudgedNodes,
    TypicalPods,
    UncountedOffer,
)
from scheduler.engine.questions.nodes import KnownNode, KnownNodes
from scheduler.engine.questions.pods import KnownPods
from scheduler.measure import figures as m
from scheduler.measure import typical
from scheduler.measure.figures import Figures
from scheduler.measure.typical import Typical
from scheduler.schema import columns as c
from scheduler.state.pods import Life, PodRecord

Json = dict[str, Any]
UNITS = dict(zip(m.DIMENSIONS, ("cores", "GiB", "GPUs", "GiB"), strict=True))
_ROUND = 6
# How GPUs are shared under a resource that nobody counts, by a part of its name.
_SHARING = (("/mig-", "MIG"), (".shared", "shared"))
# No node has more GPUs than a number of so many digits says; a longer label is no count.
_DIGITS_MAX = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What an audit is of, told with it.

    Attributes:
        made: when, as text.
        source: the cluster, or the files.
        version: Evenkeel's.
        unread: what was there and is neither a node nor a pod that could be taken in.
        passed_over: how many objects there were of each kind that is not judged.
    """

    made: str
    source: str
    version: str
    unread: Sequence[Unread] = ()
    passed_over: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of an audit.

    Attributes:
        modes: to place the present pods with again; None is that of the configuration.
        prices: per month.
        worst: how many nodes to name.
        orders: in how many orders to place them; None chooses by the size of the cluster.
        about: what it is of.
    """

    config: Config
    modes: Sequence[Mode | None]
    prices: PriceBook
    worst: int
    orders: int | None = None
    about: About


def _silent(_: str) -> None:
    pass


def audit(
    nodes: Sequence[wire.Node],
    pods: Sequence[wire.Pod],
    question: Question,
    tell: Callable[[str], None] = _silent,
) -> Json:
    """The audit of a cluster, as documented for ``evenkeel audit -o json``.

    Malformed nodes, and malformed pods that wait, are left out and named. Pods on nodes that are not there
    count for the demand only.
    ``tell`` hears how far it has come.
    """
    config, prices = question.config, question.prices
    engine, mistakes = take_in(nodes, pods, question, tell)
    tell("measuring what is stranded")
    parted = staying.part(pods, engine)
    judges = engine.ask(TypicalPods(parted.own))
    figures = engine.ask(FiguresBy(judges))
    rates, models = rates_of.of_nodes(engine, figures.names, prices)
    kept_off = barriers.find_barriers(engine, judges, figures)
    rows = _nodes(engine, figures, rates, prices, kept_off)
    pods_there = engine.ask(KnownPods()).values()
    waiting = [pod for pod in pods_there if pod.life == Life.PENDING]
    total = _totals(figures, rates)
    about = heading(engine, question, models, mistakes)
    # Whether the rest of a node is a loss is judged by its GPUs, where these are known.
    spare = {row["name"]: row["spare"] for row in rows}
    about["uncounted"] = [
        one | {"spare": {key: spare[one["node"]][key] for key in ("cpu", "memory")}}
        for one in about["uncounted"]
    ]
    compared = comparison.Compared(nodes, engine, parted, judges, figures, rates)
    return {
        **about,
        "units": UNITS,
        "demand": _demand(judges),
        "total": total,
        "worst": [row["name"] for row in rows if row["money"] > 0][: question.worst],
        "nodes": rows,
        "waiting": [
            _asks(pod) for pod in sorted(waiting, key=lambda pod: (pod.created, pod.order))
        ],
        "next": upcoming.find_upcoming(engine, pods, parted.own),
        "replay": comparison.compare_modes(compared, question.modes, question.orders, config, tell),
    }


def take_in(
    nodes: Sequence[wire.Node],
    pods: Sequence[wire.Pod],
    question: Question,
    tell: Callable[[str], None],
) -> tuple[Engine, list[Unread]]:
    """An engine that has seen nodes and pods, and what of them has mistakes."""
    tell("taking in nodes and pods")
    engine = Engine(question.config, pace=PROMPT, is_shared=False)
    for node in nodes:
        engine.handle(events.Seen(node), 0.0)
    for pod in pods:
        engine.handle(events.Seen(pod), 0.0)
    return engine, [*question.about.unread, *unread.leave_out(engine)]


def heading(
    engine: Engine, question: Question, models: Sequence[ModelRate], mistakes: Sequence[Unread]
) -> Json:
    """What any answer about a cluster begins with: of what it is, at which prices, and what it leaves out."""
    prices, about, names = question.prices, question.about, engine.ask(JudgedNodes())
    return {
        "about": {"made": about.made, "source": about.source, "evenkeel": about.version},
        "prices": dict(prices.units),
        "priceSources": dict(prices.sources),
        "pricesUnused": prices.unused(name for one in models for name in one.names),
        "gpuModels": [one._asdict() | {"names": list(one.names)} for one in models],
        "mistakes": [one.as_json() for one in mistakes],
        "passedOver": dict(about.passed_over),
        "uncounted": _uncounted(engine, names),
        "leftOut": sorted(engine.ask(KnownNodes()).keys() - set(names)),
    }


def _uncounted(engine: Engine, nodes: Sequence[str]) -> list[Json]:
    """Nodes that have GPUs of which nobody knows how many, and what they offer."""
    devices = engine.ask(DevicesOn(nodes))
    cards = np.bincount(devices.cards.owner, minlength=len(nodes))
    hidden = np.flatnonzero(devices.has_gpu & (cards == 0)).tolist()
    return [{"node": nodes[i], **_read_offer(engine, nodes[i])} for i in hidden]


def _read_offer(engine: Engine, name: str) -> Json:
    """What a node offers of devices that nobody counts, how it shares its GPUs, and how many its labels say it has."""
    facts, offers = engine.ask(KnownNode(name)), engine.ask(UncountedOffer(name))
    label = facts.labels.get(names.GPU_COUNT, "") if facts is not None else ""
    is_count = label.isascii() and label.isdigit() and len(label) <= _DIGITS_MAX
    sharing = next((how for one in offers for end, how in _SHARING if end in one), "")
    return {"offers": dict(offers), "sharing": sharing, "gpus": int(label) if is_count else None}


def _totals(figures: Figures, rates: c.Floats) -> Json:
    """Amounts and money of all nodes together."""
    money = np.einsum("fdn,dn->fd", figures.amounts, rates)
    by_figure = dict(zip(m.FIGURES, money.sum(axis=1).tolist(), strict=True))
    usable = money[m.FREE] - money[m.STRANDED] - money[m.SPARE]
    return _amounts(figures.amounts.sum(axis=2)) | {
        "value": {name: round(value, _ROUND) for name, value in by_figure.items()}
        | {"usable": round(float(usable.sum()), _ROUND)},
        "usableByDimension": _by_dimension(usable),
        "moneyByDimension": _by_dimension(money[m.STRANDED]),
        "money": round(by_figure["stranded"], _ROUND),
    }


def _nodes(
    engine: Engine,
    figures: Figures,
    rates: c.Floats,
    prices: PriceBook,
    kept_off: Mapping[str, str],
) -> list[Json]:
    """The most expensive first, then by name."""
    devices = engine.ask(DevicesOn(figures.names))
    cards, has_gpus = devices.cards, devices.has_gpu
    sharers = np.bincount(cards.owner, cards.sharers, len(figures.names))
    models = rates_of.name_models(engine, figures.names, devices, prices)
    amounts = figures.amounts
    stranded = (amounts[m.STRANDED] * rates).sum(axis=0)
    usable = ((amounts[m.FREE] - amounts[m.STRANDED] - amounts[m.SPARE]) * rates).sum(axis=0)
    rows: list[Json] = [
        {
            "name": name,
            **_amounts(amounts[:, :, i]),
            "money": round(float(stranded[i]), _ROUND),
            "usableMoney": round(float(usable[i]), _ROUND),
            "isClosed": bool(figures.closed[i]),
            "hasGpus": bool(has_gpus[i]),
            "models": models[i],
            "sharers": int(sharers[i]),
            "reason": reasons.of_node(figures, i, barrier),
            "why": why._asdict() if (why := reasons.why_of(figures, i, barrier)) else None,
        }
        for i, name in enumerate(figures.names)
        for barrier in (kept_off.get(name, ""),)
    ]
    return sorted(rows, key=lambda row: -row["money"])


def _amounts(amounts: c.Floats) -> Json:
    """By figure and dimension; ``usable`` is what is free and neither stranded nor spare."""
    usable = amounts[m.FREE] - amounts[m.STRANDED] - amounts[m.SPARE]
    told = {figure: _by_dimension(amounts[i]) for i, figure in enumerate(m.FIGURES)}
    # Sums of floats may fall short of 0 by their last bit.
    return told | {"usable": _by_dimension(np.maximum(usable, 0.0))}


def _by_dimension(values: c.Floats) -> Json:
    rounded = (round(value, _ROUND) for value in values.tolist())
    return dict(zip(m.DIMENSIONS, rounded, strict=True))


def _demand(judges: Typical) -> Json:
    return {
        "gpuPods": {"seen": judges.gpu_seen, "assumed": judges.gpu_assumed},
        "otherPods": {"seen": judges.plain_seen, "assumed": judges.plain_assumed},
        "askingNothing": judges.asking_nothing,
        "enough": typical.ENOUGH,
        "typical": [
            {
                "pods": round(count, 3),
                "cpu": shape.cpu / 1000,
                "memory": round(shape.memory / 2**30, _ROUND),
                "gpus": shape.cards,
                "gpuMemoryMiB": shape.mib,
                "gpuMemoryPercent": shape.percent,
                "gpuCores": shape.cores,
            }
            for shape, count in judges.pods
        ],
    }


def _asks(pod: PodRecord) -> Json:
    asked = dict(pod.template.requests.amounts)
    gpu = pod.template.gpu
    return {
        "pod": pod.key,
        "cpu": asked.get(names.CPU, 0) / 1000,
        "memory": round(asked.get(names.MEMORY, 0) / 2**30, _ROUND),
        "gpus": gpus.sum_up(gpu).cards if gpu is not None else 0,
    }
