"""Places the present pods again with several modes, in several orders: by creation, then shuffled.

If pods came and went, the real order was none of these. A figure is as reliable as it is equal in all orders.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scheduler.api import wire
from scheduler.api.placement import Mode
from scheduler.audit.again import replay
from scheduler.audit.again.replay import Replayed
from scheduler.audit.again.staying import Parted
from scheduler.config import Config
from scheduler.measure.typical import Typical

DEFAULT = 5
# The time of a replay grows with its pods and nodes. So many in all modes and orders together take about 25 seconds.
# The limit is not one of time, so that the same cluster gives the same answer on every machine.
_WORK_MAX = 250_000
_LEAST = 2
_SEED = 20_220_711


@dataclass(frozen=True, slots=True)
class InOrders:
    """The results of one mode, in each order.

    Attributes:
        mode: None is the mode of the configuration.
        runs: the first is in the order of creation.
    """

    mode: Mode | None
    runs: tuple[Replayed, ...]

    @property
    def empty(self) -> tuple[int, ...]:
        """The number of empty nodes, by order."""
        return tuple(run.empty_nodes for run in self.runs)

    @property
    def unplaced(self) -> tuple[int, ...]:
        """The number of pods that found no place, by order."""
        return tuple(len(run.unplaced) for run in self.runs)


def count_orders(asked: int | None, n_pods: int, n_nodes: int, n_modes: int) -> int:
    """Count the orders to try: as many as requested, else the default, or fewer on a large cluster; one without pods."""
    if not n_pods:
        return 1
    if asked is not None:
        return asked
    each = n_modes * (n_pods + n_nodes)
    return min(DEFAULT, max(_LEAST, _WORK_MAX // max(each, 1)))


def replay_orders(
    nodes: Sequence[replay.Given],
    parted: Parted,
    typical: Typical,
    config: Config,
    modes: Sequence[Mode | None],
    n_orders: int,
    tell: Callable[[str], None],
) -> list[InOrders]:
    """Replay every mode in the same orders; ``tell`` gets the progress."""
    orders = [replay.unbind_pods(parted.moving, config)]
    lots = random.Random(_SEED)  # noqa: S311 - no secret, and the same every time
    for _ in range(n_orders - 1):
        shuffled = list(orders[0])
        lots.shuffle(shuffled)
        orders.append(shuffled)

    def place(moving: Sequence[wire.Pod], how: Config) -> Replayed:
        return replay.replay_pods(nodes, parted.staying, moving, parted.own, typical, how)

    what = f"placing {len(orders[0])} pods again"
    runs = replay.run_modes(config, modes, orders, place, what, tell)
    return [InOrders(mode, some) for mode, some in zip(modes, runs, strict=True)]
