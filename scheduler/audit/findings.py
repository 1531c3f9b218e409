"""The audit as plain values, from nodes and pods to what JSON, table and page all show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler.api import names, wire
from scheduler.api.placement import Mode
from scheduler.api.pods import gpus
from scheduler.audit import prices as price_list
from scheduler.audit import reasons, replay
from scheduler.audit.replay import Replayed
from scheduler.config import Config
from scheduler.devices import table as devices
from scheduler.measure import figures as m
from scheduler.measure import typical
from scheduler.measure.figures import Figures
from scheduler.measure.typical import Typical
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.pods import Life, PodRecord

Json = dict[str, Any]
UNITS = dict(zip(m.DIMENSIONS, ("cores", "GiB", "GPUs", "GiB"), strict=True))
DEFAULT_MODE = "default"
NOTE = (
    "One replay of the present pods in order of creation, not a promise: in life pods come and go, "
    "and no pod moves once it runs. While there is room to spare, modes that spread strand little by "
    "this measure, for one more typical pod still fits everywhere, and modes that pack leave nodes empty."
)
_ROUND = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of an audit.

    Attributes:
        modes: to place the present pods with again; None is that of the configuration.
        prices: per month and unit, see ``prices``.
        worst: how many nodes to name.
    """

    config: Config
    modes: Sequence[Mode | None]
    prices: Mapping[str, float]
    worst: int


def audit(nodes: Sequence[wire.Node], pods: Sequence[wire.Pod], question: Question) -> Json:
    """The audit of a cluster, as documented for ``evenkeel audit -o json``.

    Malformed nodes are left out and named. Pods on nodes that are not there count for the demand only.
    """
    config = question.config
    cluster = Cluster(
        config.scheduler_names, devices.families(config.hami_node_label), config.pod_limits
    )
    for node in nodes:
        cluster.see_node(node)
    for pod in pods:
        cluster.see_pod(pod)
    fixed = {pod.metadata.uid for pod in pods if replay.belongs_to_its_node(pod)}
    judges = typical.of_cluster(cluster, fixed)
    figures = m.of_cluster(cluster, judges)
    prices = np.array([question.prices[name] for name in price_list.DEFAULTS])
    present = _totals(figures, prices)
    rows = _nodes(figures, prices)
    moving = replay.movable(pods, cluster, config)
    moved = {pod.metadata.uid for pod in moving}
    staying = [pod for pod in pods if pod.metadata.uid not in moved and pod.spec.node_name]
    replayed = [replay.run(nodes, staying, moving, judges, config, mode) for mode in question.modes]
    waiting = [pod for pod in cluster.pods.values() if pod.life == Life.PENDING]
    return {
        "prices": dict(question.prices),
        "units": UNITS,
        "demand": _demand(judges),
        "total": present,
        "worst": [row["name"] for row in rows if row["money"] > 0][: question.worst],
        "nodes": rows,
        "leftOut": sorted(cluster.nodes.rows.keys() - set(figures.names)),
        "waiting": [
            _asks(pod) for pod in sorted(waiting, key=lambda pod: (pod.created, pod.order))
        ],
        "replay": {
            "note": NOTE,
            "moved": len(moving),
            "stayed": sum(bool(pod.node) for pod in cluster.pods.values()) - len(moving),
            "emptyNodes": len(cluster.nodes.rows)
            - len({cluster.pods[pod.metadata.uid].node for pod in moving}),
            "modes": [_mode(one, prices, present) for one in replayed],
        },
    }


def _totals(figures: Figures, prices: c.Floats) -> Json:
    amounts = figures.amounts.sum(axis=2)
    return _amounts(amounts) | {
        "moneyByDimension": _by_dimension(amounts[m.STRANDED] * prices),
        "money": round(float(amounts[m.STRANDED] @ prices), _ROUND),
    }


def _nodes(figures: Figures, prices: c.Floats) -> list[Json]:
    """The dearest first, then by name."""
    rows: list[Json] = [
        {
            "name": name,
            **_amounts(figures.amounts[:, :, i]),
            "money": round(float(figures.amounts[m.STRANDED, :, i] @ prices), _ROUND),
            "isClosed": bool(figures.closed[i]),
            "reason": reasons.of_node(figures, i),
        }
        for i, name in enumerate(figures.names)
    ]
    return sorted(rows, key=lambda row: -row["money"])


def _amounts(amounts: c.Floats) -> Json:
    return {figure: _by_dimension(amounts[i]) for i, figure in enumerate(m.FIGURES)}


def _by_dimension(values: c.Floats) -> Json:
    rounded = (round(float(value), _ROUND) for value in values)
    return dict(zip(m.DIMENSIONS, rounded, strict=True))


def _demand(judges: Typical) -> Json:
    return {
        "gpuPods": {"seen": judges.gpu_seen, "assumed": judges.gpu_assumed},
        "otherPods": {"seen": judges.plain_seen, "assumed": judges.plain_assumed},
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
        "gpus": gpus.total(gpu).cards if gpu is not None else 0,
    }


def _mode(one: Replayed, prices: c.Floats, present: Json) -> Json:
    totals = _totals(one.figures, prices)
    return {
        "mode": one.mode.value if one.mode is not None else DEFAULT_MODE,
        "stranded": totals["stranded"],
        "dead": totals["dead"],
        "money": totals["money"],
        "saved": round(present["money"] - totals["money"], _ROUND),
        "emptyNodes": one.empty_nodes,
        "unplaced": list(one.unplaced),
    }
