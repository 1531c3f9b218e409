"""The cluster as it is, filled up by each mode: more pods like those that run come until they no longer fit.

Every order has the same pods: each kind as often as it was seen, shuffled from a seed. So many come that they ask
for more of the scarcest resource than is free of it. What the nodes hold afterwards is what a mode is judged by.
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

# The load up to which ``evenkeel replay`` fills a cluster, too.
_ASKED = 1.3
# Less is no pod, but the last bits of a sum.
_LEAST = 1e-6
# A nearly empty cluster with few pods would take their number many times.
_ARRIVALS_MAX = 100_000
# What is held is counted whatever pods come next.
_UNJUDGED = Typical(pods=(), gpu_seen=0, plain_seen=0, gpu_assumed=False, plain_assumed=False)
_SEED = 20_220_712


@dataclass(frozen=True, slots=True)
class Held:
    """What the nodes hold after one order.

    Attributes:
        used: [4] by dimension, as ``measure/figures.py`` has them.
        pods: that run, those of the start included.
    """

    used: tuple[float, ...]
    pods: int


@dataclass(frozen=True, slots=True)
class Filled:
    """What one mode made of the cluster, order by order; None is the mode of the configuration."""

    mode: Mode | None
    runs: tuple[Held, ...]


def present(parted: Parted, figures: Figures) -> Held:
    """What the nodes hold now."""
    used = figures.amounts[m.USED].sum(axis=1)
    return Held(tuple(used.tolist()), len(parted.moving) + len(parted.staying))


def count_arrivals(parted: Parted, figures: Figures) -> int:
    """How many pods come, where each asks as much as those that run do on average."""
    used = figures.amounts[m.USED].sum(axis=1)
    free = figures.amounts[m.FREE].sum(axis=1)
    asked = used > 0
    if not (parted.demand and asked.any()):
        return 0
    times = float(np.min(free[asked] / used[asked]))
    n_pods = len(parted.moving) + len(parted.staying)
    return min(_ARRIVALS_MAX, math.ceil(_ASKED * times * n_pods - _LEAST))


def run(
    nodes: Sequence[wire.Node],
    parted: Parted,
    config: Config,
    modes: Sequence[Mode | None],
    n_arrivals: int,
    n_orders: int,
    tell: Callable[[str], None],
) -> list[Filled]:
    """Every mode in the same orders; ``tell`` hears how far it has come."""
    running = (*parted.staying, *parted.moving)
    orders = _orders(replay.unbound(parted.demand, config), n_arrivals, n_orders)

    def place(arrivals: Sequence[wire.Pod], how: Config) -> Held:
        after = replay.run(nodes, running, arrivals, parted.own, _UNJUDGED, how)
        used = after.figures.amounts[m.USED].sum(axis=1)
        return Held(tuple(used.tolist()), len(running) + len(arrivals) - len(after.unplaced))

    what = f"filling up with {n_arrivals} pods"
    runs = replay.run_modes(config, modes, orders, place, what, tell)
    return [Filled(mode, some) for mode, some in zip(modes, runs, strict=True)]


def _orders(like: Sequence[wire.Pod], n_arrivals: int, n_orders: int) -> list[list[wire.Pod]]:
    """The same arrivals in several orders."""
    lots = random.Random(_SEED)  # noqa: S311 - no secret, and the same every time
    whole, rest = divmod(n_arrivals, len(like)) if like else (0, 0)
    arrivals = [_copy(pod, k) for k, pod in enumerate([*like] * whole + lots.sample([*like], rest))]
    return [lots.sample(arrivals, len(arrivals)) for _ in range(n_orders)]


def _copy(pod: wire.Pod, k: int) -> wire.Pod:
    meta = pod.metadata
    again = structs.replace(meta, uid=f"again {k}", name=f"{meta.name}-again-{k}")
    return structs.replace(pod, metadata=again)
