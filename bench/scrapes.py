"""What a scrape costs with our own series of nodes and cards, and with HAMi's names beside them.

The main loop hands columns over, and decides nothing meanwhile; another thread makes the text. A pod on each card, half
of it, 8 cards a node. Every scrape sees another placement, so figures change and labels do not.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from bench.floors import Floor
from scheduler.api import hami, names
from scheduler.api.cards import CardUse
from scheduler.api.door import events
from scheduler.api.metrics_settings import HamiMetrics, MetricsConfig
from scheduler.config import Config
from scheduler.engine.engine import Engine
from scheduler.engine.questions.measures import Devices, Holds
from scheduler.kube.report.metrics.devices import Lines
from scheduler.kube.report.metrics.hami import HamiLines
from tests import make

_SIZES = (1_000, 5_000)
_CARDS, _ROUNDS = 8, 7
_MIB, _CORES = 8000, 50

FLOORS = (
    Floor("*.times_our_own.hand_over_ms", at_most=2),
    Floor("*.times_our_own.text_seconds", at_most=2),
)


def run(quick: bool) -> dict[str, Any]:
    return {str(n): _measure(n) for n in (_SIZES if not quick else _SIZES[:1])}


def _measure(n_nodes: int) -> dict[str, Any]:
    """Medians of a scrape's parts: our own series, and HAMi's present names for the same cards."""
    engine = _fill(n_nodes)
    own = Lines(per_node=True, per_card=True)
    others = HamiLines(MetricsConfig(hami=HamiMetrics.CURRENT))
    found: dict[str, list[tuple[float, float, float]]] = {"own": [], "hami": [], "hami_cards": []}
    for _ in range(_ROUNDS):
        began_at = time.perf_counter()
        copies = engine.ask(Devices())
        copied_at = time.perf_counter()
        n_own = sum(map(len, own.write_parts(copies)))
        written_at = time.perf_counter()
        found["own"].append((copied_at - began_at, written_at - copied_at, n_own))
        began_at = time.perf_counter()
        holds = engine.ask(Holds())
        held_at = time.perf_counter()
        n_cards = sum(map(len, others.write_parts(copies, None)))
        cards_at = time.perf_counter()
        n_all = sum(map(len, others.write_parts(copies, holds)))
        all_at = time.perf_counter()
        found["hami_cards"].append((0.0, cards_at - held_at, n_cards))
        found["hami"].append((held_at - began_at, all_at - cards_at, n_all))
    figures = {
        kind: {
            "hand_over_ms": round(statistics.median(one[0] for one in rounds) * 1000, 2),
            "text_seconds": round(statistics.median(one[1] for one in rounds), 3),
            "mib": round(rounds[-1][2] / 2**20, 1),
        }
        for kind, rounds in found.items()
    }
    ratios = {
        figure: round(figures["hami"][figure] / figures["own"][figure], 2)
        for figure in ("hand_over_ms", "text_seconds")
    }
    return {**figures, "times_our_own": ratios}


def _fill(n_nodes: int) -> Engine:
    engine = Engine(Config())
    ask = make.container(gpu=1, gpumem=_MIB, gpucores=_CORES, cpu="1")
    for i in range(n_nodes):
        node = make.hami_node(name=f"node-{i:05}", cards=_CARDS, cpu=64)
        engine.handle(events.Seen(node), 0.0)
        for card in range(_CARDS):
            use = CardUse(f"node-{i:05}-GPU-{card}", _MIB, _CORES)
            pod = make.pod(
                name=f"train-{i:05}-{card}",
                namespace=f"team-{i % 40}",
                node=f"node-{i:05}",
                containers=[ask],
                annotations={names.HAMI_ALLOCATED: hami.encode_devices([[use]])},
            )
            engine.handle(events.Seen(pod), 0.0)
    return engine
