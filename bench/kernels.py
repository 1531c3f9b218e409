"""Nanoseconds per node: a full score of six dimensions, a run of like pods, and growth with size.

Compared, in the same run, with the formula straight in NumPy (every node, vectorised). The floors are
25 ns per node for the kernel of six dimensions on one core, and 1 ns per node amortised in a run of like pods.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.floors import Floor
from scheduler.api import wire
from scheduler.api.placement import MODES, Mode, Placement
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.kernels import place
from scheduler.kernels.modes import lambda_g
from scheduler.schema import columns as c
from scheduler.schema import empty
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster

_SEED = 42
_PHI = lambda_g.PHI

FLOORS = (
    Floor("lambda_g_kernel.kernel_ns_per_node", at_most=25),
    Floor("modes_5000_nodes.*.run_ns_per_node", at_most=1),
)


def run() -> dict[str, Any]:
    growth = {str(n): _at_size(n, Mode.LAMBDA_G) for n in (100, 1_000, 5_000, 20_000)}
    return {
        "lambda_g_kernel": _kernel(),
        "growth_lambda_g": growth,
        "modes_5000_nodes": {str(mode): _at_size(5_000, mode) for mode in MODES},
    }


def _kernel() -> dict[str, float]:
    """The scoring kernel alone, and the same formula in NumPy, on the same figures."""
    rng = np.random.default_rng(_SEED)
    cap = rng.integers(1, 1000, (c.N_DIMS, 5_056)).astype(np.float64)
    used = np.floor(cap * rng.random(cap.shape) * 0.8)
    ask = np.floor((cap - used) * rng.random(cap.shape) * 0.5)
    scratch = empty.make_scratch(1, 1, 1)
    blocks = cap.shape[1] // c.BLOCK

    def kernel() -> None:
        for block in range(blocks):
            lanes = slice(block * c.BLOCK, (block + 1) * c.BLOCK)
            scratch.cap[:] = cap[:, lanes]
            scratch.used[:] = used[:, lanes]
            scratch.ask[:] = ask[:, lanes]
            lambda_g.score_lambda_g(scratch, c.BLOCK)

    def no_lanes() -> None:
        for block in range(blocks):
            lanes = slice(block * c.BLOCK, (block + 1) * c.BLOCK)
            scratch.cap[:] = cap[:, lanes]
            scratch.used[:] = used[:, lanes]
            scratch.ask[:] = ask[:, lanes]
            lambda_g.score_lambda_g(scratch, 0)

    n = cap.shape[1]
    in_numpy = _best(lambda: _numpy(cap, used, ask)) / n
    alone = (_best(kernel) - _best(no_lanes)) / n
    return {
        "kernel_ns_per_node": round(alone, 2),
        "numpy_ns_per_node": round(in_numpy, 1),
        "times_faster_than_numpy": round(in_numpy / alone, 1),
    }


def _numpy(cap: np.ndarray, used: np.ndarray, ask: np.ndarray) -> np.ndarray:
    n, p = np.maximum(0, (cap - used) / cap), np.minimum(1, ask / cap)
    a = np.maximum(0, n - p)
    n_norm, p_norm, a_norm = (np.sqrt((v * v).sum(axis=0)) for v in (n, p, a))
    flat = (n_norm < 1e-10) | (p_norm < 1e-10)
    cosine = np.clip((n * p).sum(axis=0) / np.where(flat, 1, n_norm * p_norm), -1, 1)
    raw = (
        _PHI * np.where(flat, 0, cosine)
        + _PHI * (_entropy(n) - _entropy(a))
        + np.where(n_norm > 1e-10, (n_norm - a_norm) / np.maximum(n_norm, 1e-10), 0)
        - 0.15 * ((a > 0.7) & (p < 0.1)).sum(axis=0)
        + 0.15 * (n[0] + n[1])
    )
    score = np.where((n[0] < 0.1) | (n[1] < 0.1), 0.5, np.clip(raw * 9 / 4, 0, 9))
    return np.where((n >= p).all(axis=0), score, 0)


def _entropy(v: np.ndarray) -> np.ndarray:
    q = v / np.maximum(v.sum(axis=0), 1e-10)
    kept = q > 1e-10
    terms = np.where(kept, q, 0) * np.log(np.where(kept, q, 1))
    entropy: np.ndarray = -terms.sum(axis=0)
    return entropy


def _at_size(n_nodes: int, mode: Mode) -> dict[str, float]:
    """A full pass and a run of 512 like pods through the product's own boards."""
    cluster = Cluster()
    rng = np.random.default_rng(_SEED)
    for i in range(n_nodes):
        resources: wire.Quantities = {
            "cpu": int(rng.integers(8, 129)),
            "memory": f"{int(rng.integers(32, 1025))}Gi",
            "pods": 512,
            "nvidia.com/gpu": int(rng.integers(1, 9)),
            "evenkeel.dev/iops": int(rng.integers(1_000, 100_000)),
            "evenkeel.dev/network-mbps": int(rng.integers(1_000, 100_000)),
        }
        cluster.see_node(
            wire.Node(wire.Meta(name=f"node-{i:05}", uid=str(i)), status=wire.NodeStatus(resources))
        )
    config = Config(placement=Placement(mode=mode))
    cycle = Cycle(cluster, PolicyBook(config))
    asked: wire.Quantities = {
        "cpu": "500m", "memory": "1Gi", "evenkeel.dev/iops": 10, "evenkeel.dev/network-mbps": 10
    }  # fmt: skip
    spec = wire.PodSpec(
        scheduler_name="evenkeel",
        containers=[wire.Container("c", wire.Resources(requests=asked))],
    )

    def pods(first: int, n: int) -> list[Any]:
        return [
            cluster.see_pod(wire.Pod(wire.Meta(name=f"p{i}", namespace="d", uid=f"u{i}"), spec))
            for i in range(first, first + n)
        ]

    first = pods(0, 1)
    cycle.schedule(first)
    shape = cycle.get_shape(first[0])
    assert shape is not None
    # A kind that came once has no board yet.
    cycle.boards.refresh(shape)
    everywhere = empty.make_run()
    everywhere.moved = np.arange(cluster.nodes.capacity)

    def full() -> None:
        place.place_run(cycle.boards.get_world(shape), shape.ask, shape.board, everywhere)

    full_ns = _best(full) / n_nodes
    runs = []
    for i in range(5):
        batch = pods(1 + 512 * i, 512)
        began = time.perf_counter_ns()
        cycle.schedule(batch)
        runs.append(time.perf_counter_ns() - began)
    return {
        "full_score_ns_per_node": round(full_ns, 2),
        "run_us_per_pod_all_in": round(min(runs) / 512 / 1000, 2),
        "run_ns_per_node": round(min(runs) / 512 / n_nodes, 3),
    }


def _best(function: Callable[[], object], times: int = 30) -> float:
    """Nanoseconds of the fastest of several calls, after one to warm up."""
    function()
    took = []
    for _ in range(times):
        began = time.perf_counter_ns()
        function()
        took.append(time.perf_counter_ns() - began)
    return float(min(took))
