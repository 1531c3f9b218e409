"""The five scenarios of the Lambda-G author's benchmark, drawn as his script draws them.

Facts of github.com/0x-auth/lambda-g-auditor, ``benchmark.py``: figures, mixes and the order of draws.
A seed gives the same pods to every strategy. Pods arrive one by one and nothing ever leaves.
"""

from __future__ import annotations

import random
from typing import NamedTuple

# Cores, GB, GPU compute (percent of a whole card), GB on the card, IOPS, and network in no unit.
Vector = tuple[float, ...]
CPU, MEMORY, GPU_COMPUTE, GPU_MEMORY, IOPS, NETWORK = range(6)

NODE_KINDS: dict[str, Vector] = {
    "cpu": (16, 32, 0, 0, 50, 10),
    "ram": (8, 128, 0, 0, 50, 10),
    "gpu-inf": (8, 32, 50, 80, 100, 25),
    "gpu-train": (32, 128, 100, 80, 200, 100),
    "bal": (8, 32, 0, 0, 50, 10),
}
_NOTHING = (0.0, 0.0)
# Least and most of each dimension; (0, 0) costs no draw.
POD_KINDS: dict[str, tuple[tuple[float, float], ...]] = {
    "llm": ((1, 3), (8, 16), (5, 15), (30, 60), (5, 15), (2, 8)),
    "batch": ((0.5, 2), (2, 8), (20, 40), (5, 15), (10, 30), (1, 5)),
    "train": ((4, 16), (16, 64), (30, 80), (20, 60), (50, 150), (10, 50)),
    "pre": ((2, 8), (4, 16), _NOTHING, _NOTHING, (20, 80), (2, 10)),
    "api": ((0.2, 1), (0.5, 2), _NOTHING, _NOTHING, (1, 5), (1, 5)),
    "etl": ((1, 4), (8, 32), _NOTHING, _NOTHING, (50, 150), (5, 20)),
}


class Scenario(NamedTuple):
    """How many nodes of each kind, what share of pods of each kind, how many pods."""

    nodes: tuple[int, ...]
    mix: tuple[float, ...]
    n_pods: int


_MIXED, _GPU, _FEW = (8, 4, 8, 4, 6), (4, 2, 8, 6, 0), (10, 6, 3, 0, 6)
_AI = (0.15, 0.15, 0.10, 0.25, 0.20, 0.15)
SCENARIOS = {
    "S1": Scenario(_MIXED, _AI, 120),
    "S2": Scenario(_GPU, (0.35, 0.25, 0.05, 0.15, 0.15, 0.05), 80),
    "S3": Scenario(_GPU, (0.10, 0.10, 0.35, 0.20, 0.10, 0.15), 60),
    "S4": Scenario(_FEW, (0.05, 0.05, 0.0, 0.40, 0.30, 0.20), 100),
    "S5": Scenario(_MIXED, _AI, 300),
}
# The last scenario has its cluster twice, one after the other.
_TWICE = {"S5"}


class Workload(NamedTuple):
    """Nodes by kind, in order, and what each arriving pod asks."""

    nodes: tuple[str, ...]
    pods: tuple[Vector, ...]

    @property
    def capacities(self) -> tuple[Vector, ...]:
        """Capacity of each node."""
        return tuple(NODE_KINDS[kind] for kind in self.nodes)


def draw(scenario: str, seed: int) -> Workload:
    """The nodes and pods of one of ``SCENARIOS``; nodes need no draw."""
    made = SCENARIOS[scenario]
    nodes = [kind for kind, n in zip(NODE_KINDS, made.nodes, strict=True) for _ in range(n)] * (
        2 if scenario in _TWICE else 1
    )
    rng = random.Random(seed)  # the module's own functions draw the same after seed()
    pods = []
    for _ in range(made.n_pods):
        kind = _kind(made.mix, rng.random())
        # Where rounding makes the shares come to less than 1, a draw above them makes no pod.
        if kind:
            pods.append(tuple(_uniform(rng, *bounds) for bounds in POD_KINDS[kind]))
    rng.shuffle(pods)
    return Workload(tuple(nodes), tuple(pods))


def _kind(mix: tuple[float, ...], drawn: float) -> str:
    reached = 0.0
    for kind, share in zip(POD_KINDS, mix, strict=True):
        reached += share
        if drawn < reached:
            return kind
    return ""


def _uniform(rng: random.Random, least: float, most: float) -> float:
    return rng.uniform(least, most) if most else 0.0
