"""Synthetic mixes of pods without devices, each on its own cluster, from a seed.

``churn`` is a Poisson stream at a load of the resource that binds, whose first half only fills the cluster;
``fill`` comes and stays, until 1.1 times what there is of it is asked for. Resources are cores, GiB and, in
some mixes, network, which no mode has a dimension for.
"""

from __future__ import annotations

import csv
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scheduler.replay.experiment import Floats, Trace, TraceNode, TracePod, Workload
from scheduler.replay.workloads import TAIL_SIGMA

NODES = 150
NETWORK = "example.com/network"
FILL_LOAD = 1.1
_OPENB = Path(__file__).parents[1] / "data" / "openb"
_SAMPLE, _SAMPLE_SEED, _OPENB_SEED = 200_000, 99, 7
_ARRIVALS_LEAST, _ARRIVALS_MOST, _LIFETIMES = 1500, 40_000, 12

Amounts = tuple[Floats, ...]
Draw = Callable[[np.random.Generator, int], Amounts]
Seed = int | tuple[int, int]


class Mix(NamedTuple):
    """Nodes as (cores, GiB) or (cores, GiB, network), and n pods, of each resource an array, drawn."""

    nodes: tuple[tuple[float, ...], ...]
    draw: Draw


def _sizes(sizes: tuple[float, ...], odds: tuple[float, ...], ratios: tuple[float, ...]) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> Amounts:
        cores = rng.choice(np.array(sizes, float), n, p=np.array(odds))
        ratio = rng.choice(np.array(ratios, float), n)
        return cores, cores * ratio

    return draw


def _pareto(rng: np.random.Generator, n: int) -> Amounts:
    cores = np.minimum(1 + rng.pareto(1.2, n), 32)
    return cores, cores * np.exp(rng.normal(np.log(4), 0.5, n))


def _continuous(low: float, high: float, least: float, most: float) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> Amounts:
        cores = rng.uniform(low, high, n)
        return cores, cores * rng.uniform(least, most, n)

    return draw


def _alone(rng: np.random.Generator, n: int) -> Amounts:
    return rng.uniform(10, 30, n), np.zeros(n)


def _network(quiet: tuple[float, ...]) -> Draw:
    """Pods of which one half asks a core and much network, the other half more cores, and little network."""

    def draw(rng: np.random.Generator, n: int) -> Amounts:
        is_loud = rng.random(n) < 0.5
        cores = np.where(is_loud, 1.0, rng.choice(np.array(quiet), n))
        network = np.where(is_loud, rng.choice(np.array((100.0, 200.0, 400.0)), n), 5.0)
        return cores, cores * rng.choice(np.array((2.0, 4.0)), n), network

    return draw


def _csv(name: str) -> list[dict[str, str]]:
    with lzma.open(_OPENB / name, "rt") as lines:
        return list(csv.DictReader(lines))


def _openb() -> Mix:
    """Openb's nodes without GPUs, and the pods that ask none."""
    nodes = [one for one in _csv("openb_node_list_all_node.csv.xz") if int(one["gpu"]) == 0]
    picked = np.random.default_rng(_OPENB_SEED).permutation(len(nodes))[:NODES]
    there = tuple(
        (int(nodes[i]["cpu_milli"]) / 1000, int(nodes[i]["memory_mib"]) / 1024) for i in picked
    )
    pods = [one for one in _csv("openb_pod_list_default.csv.xz") if int(one["num_gpu"]) == 0]
    asked = np.array([(int(p["cpu_milli"]) / 1000, int(p["memory_mib"]) / 1024) for p in pods])

    def draw(rng: np.random.Generator, n: int) -> Amounts:
        at = rng.integers(len(asked), size=n)
        return asked[at, 0], asked[at, 1]

    return Mix(there, draw)


_CLASSES = (
    *((16.0, 128.0),) * 39,
    *((32.0, 128.0),) * 37,
    *((64.0, 256.0),) * 37,
    *((96.0, 768.0),) * 37,
)
_POWERS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


def mixes() -> dict[str, Mix]:
    """By name."""
    big = (48.0, 64.0, 96.0, 192.0), (0.4, 0.3, 0.2, 0.1)
    return {
        "48..192, 5 GiB/core": Mix(((192, 960),) * NODES, _sizes(*big, (5,))),
        "48..192, 2/5/6": Mix(((192, 960),) * NODES, _sizes(*big, (2, 5, 6))),
        "1..16, 2/4/8": Mix(
            ((48, 192),) * NODES,
            _sizes(_POWERS[:5], (0.3, 0.25, 0.2, 0.15, 0.1), (2, 4, 8)),
        ),
        "3,5,7,11": Mix(((32, 128),) * NODES, _sizes((3, 5, 7, 11), (0.4, 0.3, 0.2, 0.1), (4,))),
        "1..64, 1:1..1:16": Mix(
            ((96, 768),) * NODES, _sizes((*_POWERS, 64), (1 / 7,) * 7, (1, 2, 4, 8, 16))
        ),
        "pareto": Mix(((48, 192),) * NODES, _pareto),
        "2..20 continuous": Mix(((32, 128),) * NODES, _continuous(2, 20, 2, 6)),
        "10..30 continuous, 1-D": Mix(((68, 272),) * NODES, _alone),
        "4 node classes": Mix(
            _CLASSES, _sizes(_POWERS, (0.3, 0.2, 0.2, 0.15, 0.1, 0.05), (2, 4, 8))
        ),
        "openb CPU": _openb(),
    }


def two_resources() -> dict[str, Mix]:
    """Cores and memory in ratios that the nodes have not."""
    powers = _POWERS[:5], (0.3, 0.25, 0.2, 0.15, 0.1)
    # The largest of those ask for more memory than a lean node has.
    small = _POWERS[:4], (0.3, 0.3, 0.25, 0.15)
    lean, rich = (48.0, 192.0), (48.0, 384.0)
    # In turn, so that every part of a list of them has both.
    both = (lean, rich) * (NODES // 2)
    return {
        "1:2 1:4 1:8 1:16 on 1:4": Mix((lean,) * NODES, _sizes(*small, (2, 4, 8, 16))),
        "1:2 1:4 1:8 1:16 on 1:8": Mix((rich,) * NODES, _sizes(*powers, (2, 4, 8, 16))),
        "1:2 1:4 1:8 1:16 on 1:4 and 1:8": Mix(both, _sizes(*powers, (2, 4, 8, 16))),
        "1:2 1:16 on 1:4 and 1:8": Mix(both, _sizes(*powers, (2, 16))),
    }


def networks() -> dict[str, Mix]:
    """Network that binds: with twice the CPU that is asked for, and with CPU that binds as well."""
    nodes = ((48.0, 192.0, 1000.0),) * NODES
    return {
        "network binds": Mix(nodes, _network((1, 2, 4, 8))),
        "network and CPU bind": Mix(nodes, _network((4, 8, 16))),
    }


def churn(
    name: str, mix: Mix, load: float, seed: Seed, *, heavy_tail: bool = False
) -> tuple[Trace, Workload]:
    """A stream at a load; times in mean lifetimes.

    Lifetimes are exponential. With a heavy tail they are lognormal, and the stream starts, as that of
    ``workloads.draw_heavy_tail``, with those who would be running.
    """
    rng = np.random.default_rng(seed)
    alive = load / _share(mix)
    n = min(max(int(_LIFETIMES * alive), _ARRIVALS_LEAST), _ARRIVALS_MOST)
    there = int(rng.poisson(alive)) if heavy_tail else 0
    asked = mix.draw(rng, there + n)
    at = np.concatenate([np.zeros(there), np.cumsum(rng.exponential(1 / alive, n))])
    if not heavy_tail:
        return _made(name, mix, asked, at, rng.exponential(1.0, n), seed)
    mu = -(TAIL_SIGMA**2) / 2
    left = rng.lognormal(mu + TAIL_SIGMA**2, TAIL_SIGMA, there) * rng.random(there)
    lifetime = np.concatenate([left, rng.lognormal(mu, TAIL_SIGMA, n)])
    return _made(name, mix, asked, at, lifetime, seed)


def fill(name: str, mix: Mix, seed: Seed) -> tuple[Trace, Workload]:
    """Pods that stay, until ``FILL_LOAD`` of what binds is asked for."""
    rng = np.random.default_rng(seed)
    n = int(2 * FILL_LOAD / _share(mix)) + 100
    drawn = mix.draw(rng, n)
    there = np.array(mix.nodes).sum(axis=0)
    asked = np.cumsum(np.stack(drawn), axis=1) / there[:, None]
    end = int(np.searchsorted(asked[int(np.argmax(asked[:, -1]))], FILL_LOAD)) + 1
    cut = tuple(amounts[:end] for amounts in drawn)
    return _made(name, mix, cut, np.arange(float(end)), np.full(end, np.inf), seed)


def _share(mix: Mix) -> float:
    """Of what there is of the scarcest resource, what a pod asks in the mean."""
    asked = mix.draw(np.random.default_rng(_SAMPLE_SEED), _SAMPLE)
    there = np.array(mix.nodes).sum(axis=0)
    return max(float(one.mean() / all_of_it) for one, all_of_it in zip(asked, there, strict=True))


def _made(
    name: str, mix: Mix, asked: Amounts, at: Floats, lifetime: Floats, seed: Seed
) -> tuple[Trace, Workload]:
    nodes = tuple(
        TraceNode(
            f"node-{i}",
            round(there[0] * 1000),
            round(there[1] * 1024),
            0,
            "",
            tuple((NETWORK, round(amount)) for amount in there[2:]),
        )
        for i, there in enumerate(mix.nodes)
    )
    milli = np.maximum(1, np.rint(asked[0] * 1000)).astype(int).tolist()
    mib = np.rint(asked[1] * 1024).astype(int).tolist()
    others = [np.rint(amounts).astype(int).tolist() for amounts in asked[2:]]
    pods = tuple(
        TracePod(
            f"pod-{i}",
            milli[i],
            mib[i],
            0,
            0,
            (),
            extended=tuple((NETWORK, other[i]) for other in others),
        )
        for i in range(len(milli))
    )
    order = np.random.default_rng(seed).permutation(len(nodes))
    return Trace(name, nodes, pods), Workload(order, np.arange(len(pods)), at, lifetime)
