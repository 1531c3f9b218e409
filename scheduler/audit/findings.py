"""Makes the audit from nodes and pods: the plain values that JSON, table and page show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scheduler.api import names, steering, wire
from scheduler.api.claims.objects import DeviceObject
from scheduler.api.door import events, notes
from scheduler.api.placement import Mode
from scheduler.api.pods import gpus
from scheduler.audit import barriers, comparison, devices, gangs, reasons, unread, upcoming
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
from scheduler.errors import Mistake
from scheduler.measure import figures as m
from scheduler.measure import typical
from scheduler.measure.figures import Figures
from scheduler.measure.typical import Typical
from scheduler.schema import columns as c
from scheduler.state.pods import Life, PodRecord

Json = dict[str, Any]
UNITS = dict(zip(m.DIMENSIONS, ("cores", "GiB", "GPUs", "GiB"), strict=True))
_ROUND = 6
# The most digits of a number of GPUs; a longer label is no number of GPUs.
_DIGITS_MAX = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What an audit is about, which is a part of the answer.

    Attributes:
        made: the time, as text.
        source: the name of the cluster, or of the files.
        version: Evenkeel's version.
        unread: objects with mistakes that could not be read.
        passed_over: how many objects there were of each kind that the audit does not evaluate.
    """

    made: str
    source: str
    version: str
    unread: Sequence[Unread] = ()
    passed_over: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The question to an audit.

    Attributes:
        modes: the modes to place the present pods with again; None is the mode of the configuration.
        prices: prices per month.
        worst: how many nodes to name.
        orders: in how many orders to place the pods; None chooses by the size of the cluster.
        about: what the audit is about.
        config_maps: ConfigMaps that may configure devices.
        devices: ResourceClaims, and the objects that say which devices there are for them.
        unlisted: kinds of these that could not be read, and why.
    """

    config: Config
    modes: Sequence[Mode | None]
    prices: PriceBook
    worst: int
    orders: int | None = None
    about: About
    config_maps: Sequence[steering.ConfigMap] = ()
    devices: Sequence[DeviceObject] = ()
    unlisted: Sequence[str] = ()


def _tell_nobody(_: str) -> None:
    pass


def audit_cluster(
    nodes: Sequence[wire.Node],
    pods: Sequence[wire.Pod],
    question: Question,
    tell: Callable[[str], None] = _tell_nobody,
) -> Json:
    """Audit a cluster, as documented for ``evenkeel audit -o json``.

    Malformed nodes, and malformed pods that wait, are left out and named. Pods on nodes that do not exist count only
    for the demand. ``tell`` gets the progress.
    """
    config, prices = question.config, question.prices
    engine, mistakes = take_in(nodes, pods, question, tell)
    tell("measuring what is stranded")
    parted = staying.part_pods(pods, engine)
    judges = engine.ask(TypicalPods(parted.own))
    figures = engine.ask(FiguresBy(judges))
    rates, models = rates_of.find_rates(engine, figures.names, prices)
    kept_off = barriers.find_barriers(engine, judges, figures)
    rows = _list_nodes(engine, figures, rates, prices, kept_off)
    pods_there = engine.ask(KnownPods()).values()
    waiting = [pod for pod in pods_there if pod.life == Life.PENDING]
    total = _sum_up(figures, rates)
    about = make_heading(engine, question, models, mistakes)
    # If the GPUs of a node are known, they decide whether the rest of the node is a loss.
    spare = {row["name"]: row["spare"] for row in rows}
    about["uncounted"] = [
        one | {"spare": {key: spare[one["node"]][key] for key in ("cpu", "memory")}}
        for one in about["uncounted"]
    ]
    of_claims = devices.audit_devices(engine, prices, question.unlisted)
    called = [name for one in models for name in one.names]
    about["pricesUnused"] = prices.list_unused(
        [*called, *(one["model"] or "" for one in of_claims["models"])]
    )
    compared = comparison.Compared(
        [*question.config_maps, *nodes], engine, parted, judges, figures, rates
    )
    return {
        **about,
        "units": UNITS,
        "demand": _describe_demand(judges),
        "total": total,
        "worst": [row["name"] for row in rows if row["money"] > 0][: question.worst],
        "nodes": rows,
        "waiting": [
            _describe_request(pod)
            for pod in sorted(waiting, key=lambda pod: (pod.created, pod.order))
        ],
        "next": upcoming.find_upcoming(engine, pods, parted.own),
        "gangs": gangs.find_gangs(
            engine,
            figures,
            {row["name"]: row["models"] for row in rows},
            barriers.list_shut(engine, judges, figures.names),
            parted.own,
        ),
        "devices": of_claims,
        "replay": comparison.compare_modes(compared, question.modes, question.orders, config, tell),
    }


def take_in(
    nodes: Sequence[wire.Node],
    pods: Sequence[wire.Pod],
    question: Question,
    tell: Callable[[str], None],
) -> tuple[Engine, list[Unread]]:
    """Make an engine that has seen nodes and pods, and list the objects with mistakes."""
    tell("taking in nodes and pods")
    engine = Engine(question.config, pace=PROMPT, is_shared=False)
    wrong = [
        Unread(f"ConfigMap {note.key}", Mistake("", note.problem))
        for config_map in question.config_maps
        for note in engine.handle(events.Seen(config_map), 0.0)
        if isinstance(note, notes.DeviceMapRead) and note.problem
    ]
    for node in nodes:
        engine.handle(events.Seen(node), 0.0)
    wrong += [
        Unread(f"{note.kind} {note.key}", Mistake("", note.problem))
        for one in question.devices
        for note in engine.handle(events.Seen(one), 0.0)
        if isinstance(note, notes.DevicesRead) and note.problem
    ]
    for pod in pods:
        engine.handle(events.Seen(pod), 0.0)
    return engine, [*question.about.unread, *wrong, *unread.leave_out(engine)]


def make_heading(
    engine: Engine, question: Question, models: Sequence[ModelRate], mistakes: Sequence[Unread]
) -> Json:
    """Make the beginning of every answer about a cluster: what it is about, the prices, and what is left out."""
    prices, about, names = question.prices, question.about, engine.ask(JudgedNodes())
    return {
        "about": {"made": about.made, "source": about.source, "evenkeel": about.version},
        "prices": dict(prices.units),
        "priceSources": dict(prices.sources),
        "pricesUnused": prices.list_unused(name for one in models for name in one.names),
        "gpuModels": [one._asdict() | {"names": list(one.names)} for one in models],
        "mistakes": [one.make_json() for one in mistakes],
        "passedOver": dict(about.passed_over),
        "uncounted": _list_uncounted(engine, names),
        "leftOut": sorted(engine.ask(KnownNodes()).keys() - set(names)),
    }


def _list_uncounted(engine: Engine, nodes: Sequence[str]) -> list[Json]:
    """List the nodes with an unknown number of GPUs, and what they offer."""
    there = engine.ask(DevicesOn(nodes))
    cards = np.bincount(there.cards.owner, there.cards.capacity[0], len(nodes))
    hidden = np.flatnonzero(there.has_gpu & (cards == 0)).tolist()
    return [{"node": nodes[i], **_read_offer(engine, nodes[i])} for i in hidden]


def _read_offer(engine: Engine, name: str) -> Json:
    """Read the uncounted devices that a node offers, and the number of GPUs in its labels."""
    facts, offers = engine.ask(KnownNode(name)), engine.ask(UncountedOffer(name))
    label = facts.labels.get(names.GPU_COUNT, "") if facts is not None else ""
    is_count = label.isascii() and label.isdigit() and len(label) <= _DIGITS_MAX
    return {"offers": dict(offers), "gpus": int(label) if is_count else None}


def _sum_up(figures: Figures, rates: c.Floats) -> Json:
    """Sum up amounts and money of all nodes."""
    money = np.einsum("fdn,dn->fd", figures.amounts, rates)
    by_figure = dict(zip(m.FIGURES, money.sum(axis=1).tolist(), strict=True))
    usable = money[m.FREE] - money[m.STRANDED] - money[m.SPARE]
    return _name_amounts(figures.amounts.sum(axis=2)) | {
        "value": {name: round(value, _ROUND) for name, value in by_figure.items()}
        | {"usable": round(float(usable.sum()), _ROUND)},
        "usableByDimension": _name_dimensions(usable),
        "moneyByDimension": _name_dimensions(money[m.STRANDED]),
        "money": round(by_figure["stranded"], _ROUND),
    }


def _list_nodes(
    engine: Engine,
    figures: Figures,
    rates: c.Floats,
    prices: PriceBook,
    kept_off: Mapping[str, str],
) -> list[Json]:
    """List the nodes, those with the most expensive stranded capacity first, then by name."""
    there = engine.ask(DevicesOn(figures.names))
    cards, has_gpus = there.cards, there.has_gpu
    sharers = np.bincount(cards.owner, cards.sharers, len(figures.names))
    models = rates_of.name_models(engine, figures.names, there, prices)
    amounts = figures.amounts
    stranded = (amounts[m.STRANDED] * rates).sum(axis=0)
    usable = ((amounts[m.FREE] - amounts[m.STRANDED] - amounts[m.SPARE]) * rates).sum(axis=0)
    rows: list[Json] = [
        {
            "name": name,
            **_name_amounts(amounts[:, :, i]),
            "money": round(float(stranded[i]), _ROUND),
            "usableMoney": round(float(usable[i]), _ROUND),
            "isClosed": bool(figures.closed[i]),
            "hasGpus": bool(has_gpus[i]),
            "models": models[i],
            "sharers": int(sharers[i]),
            "reason": reasons.write_reason(figures, i, barrier),
            "why": why._asdict() if (why := reasons.find_reason(figures, i, barrier)) else None,
        }
        for i, name in enumerate(figures.names)
        for barrier in (kept_off.get(name, ""),)
    ]
    return sorted(rows, key=lambda row: -row["money"])


def _name_amounts(amounts: c.Floats) -> Json:
    """Name amounts by figure and dimension; ``usable`` is what is free and neither stranded nor spare."""
    usable = amounts[m.FREE] - amounts[m.STRANDED] - amounts[m.SPARE]
    told = {figure: _name_dimensions(amounts[i]) for i, figure in enumerate(m.FIGURES)}
    # Sums of floats may be below 0 by their last bit.
    return told | {"usable": _name_dimensions(np.maximum(usable, 0.0))}


def _name_dimensions(values: c.Floats) -> Json:
    rounded = (round(value, _ROUND) for value in values.tolist())
    return dict(zip(m.DIMENSIONS, rounded, strict=True))


def _describe_demand(judges: Typical) -> Json:
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


def _describe_request(pod: PodRecord) -> Json:
    asked = dict(pod.template.requests.amounts)
    gpu = pod.template.gpu
    return {
        "pod": pod.key,
        "cpu": asked.get(names.CPU, 0) / 1000,
        "memory": round(asked.get(names.MEMORY, 0) / 2**30, _ROUND),
        "gpus": gpus.sum_up(gpu).cards if gpu is not None else 0,
    }
