"""Specs shared out among clusters: each runs one spec at a time, so that none meets another's pods."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue

from tests.conformance import cluster, suite
from tests.conformance.suite import Result

Results = dict[str, dict[str, Result]]


def run(
    specs: Sequence[str], folder: Path, *, n_clusters: int, tell: Callable[[str, str, Result], None]
) -> Results:
    """Run every spec with every scheduler.

    Args:
        specs: their full texts.
        folder: takes what the suite and the schedulers say.
        n_clusters: how many there are of each scheduler.
        tell: told of each result: scheduler, spec, result.

    Returns:
        By spec and scheduler.
    """
    results: Results = {spec: {} for spec in specs}
    lock = threading.Lock()

    def work(scheduler: str, waiting: SimpleQueue[str], lane: int) -> None:
        with cluster.start(scheduler) as cp:
            while spec := _next(waiting):
                place = folder / scheduler / f"{specs.index(spec):02}"
                result = suite.run(spec, cp.kubeconfig(), place)
                with lock:
                    results[spec][scheduler] = result
                    tell(scheduler, spec, result)
            (folder / scheduler / f"cluster-{lane}.log").write_text(cp.logs(scheduler))

    with ThreadPoolExecutor(n_clusters * len(cluster.SCHEDULERS)) as pool:
        running = []
        for scheduler in cluster.SCHEDULERS:
            waiting: SimpleQueue[str] = SimpleQueue()
            for spec in specs:
                waiting.put(spec)
            running += [pool.submit(work, scheduler, waiting, lane) for lane in range(n_clusters)]
    for one in running:
        one.result()
    return results


def _next(waiting: SimpleQueue[str]) -> str:
    """Empty when none is left."""
    try:
        return waiting.get_nowait()
    except Empty:
        return ""
