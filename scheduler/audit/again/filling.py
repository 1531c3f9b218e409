"""Fills up the present cluster with each mode: more pods like the running ones come until they no longer fit.

Every order has the same pods: each kind as often as it was seen, shuffled from a seed. So many come that they ask
for more of the scarcest resource than is free. Modes are compared by what the nodes hold afterwards.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from scheduler.api import wire
from scheduler.api.placement import Mode
from scheduler.audit.again import replay
from scheduler.audit.again.staying import Parted
from scheduler.config import Config
from scheduler.measure import figures as m
from scheduler.measure.figures import Figures
from scheduler.measure.typical import Typical

# The load; ``evenkeel replay`` fills a cluster to the same load.
_ASKED = 1.3
# Smaller figures are rounding errors of sums.
_LEAST = 1e-6
# A bound, because a nearly empty cluster with few pods would take very many more.
_ARRIVALS_MAX = 100_000
# What the nodes hold does not depend on typical pods.
_UNJUDGED = Typical(pods=(), gpu_seen=0, plain_seen=0, gpu_assumed=False, plain_assumed=False)
_SEED = 20_220_712


@dataclass(frozen=True, slots=True)
class Held:
    """What the nodes hold after one order.

    Attributes:
        used: [4] by dimension, as ``measure/figures.py`` has them.
        pods: the number of running pods, with those that ran at the start.
    """

    used: tuple[float, ...]
    pods: int


@dataclass(frozen=True, slots=True)
class Filled:
    """What one mode made of the cluster, order by order; a mode of None is that of the configuration."""

    mode: Mode | None
    runs: tuple[Held, ...]


def measure_present(parted: Parted, figures: Figures) -> Held:
    """Measure what the nodes hold now."""
    used = figures.amounts[m.USED].sum(axis=1)
    return Held(tuple(used.tolist()), len(parted.moving) + len(parted.staying))


def count_arrivals(parted: Parted, figures: Figures) -> int:
    """Count how many pods come, if each asks as much as the running pods do on average."""
    used = figures.amounts[m.USED].sum(axis=1)
    free = figures.amounts[m.FREE].sum(axis=1)
    asked = used > 0
    if not (parted.demand and asked.any()):
        return 0
    times = float(np.min(free[asked] / used[asked]))
    n_pods = len(parted.moving) + len(parted.staying)
    return min(_ARRIVALS_MAX, math.ceil(_ASKED * times * n_pods - _LEAST))


def fill_up(
    nodes: Sequence[replay.Given],
    parted: Parted,
    config: Config,
    modes: Sequence[Mode | None],
    n_arrivals: int,
    n_orders: int,
    tell: Callable[[str], None],
) -> list[Filled]:
    """Fill up the cluster with every mode, in the same orders; ``tell`` gets the progress."""
    running = (*parted.staying, *parted.moving)
    orders = _draw_orders(replay.unbind_pods(parted.demand, config), n_arrivals, n_orders)

    def place(arrivals: Sequence[wire.Pod], how: Config) -> Held:
        after = replay.replay_pods(nodes, running, arrivals, parted.own, _UNJUDGED, how)
        used = after.figures.amounts[m.USED].sum(axis=1)
        return Held(tuple(used.tolist()), len(running) + len(arrivals) - len(after.unplaced))

    what = f"filling up with {n_arrivals} pods"
    runs = replay.run_modes(config, modes, orders, place, what, tell)
    return [Filled(mode, some) for mode, some in zip(modes, runs, strict=True)]


def _draw_orders(like: Sequence[wire.Pod], n_arrivals: int, n_orders: int) -> list[list[wire.Pod]]:
    """Draw several orders of the same arrivals."""
    lots = random.Random(_SEED)  # noqa: S311 - no secret, and the same every time
    whole, rest = divmod(n_arrivals, len(like)) if like else (0, 0)
    arrivals = [
        _copy_pod(pod, k) for k, pod in enumerate([*like] * whole + lots.sample([*like], rest))
    ]
    return [lots.sample(arrivals, len(arrivals)) for _ in range(n_orders)]


def _copy_pod(pod: wire.Pod, k: int) -> wire.Pod:
    meta = pod.metadata
    again = structs.replace(meta, uid=f"again {k}", name=f"{meta.name}-again-{k}")
    return structs.replace(pod, metadata=again)
