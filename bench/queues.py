"""How fast queues of tenants decide, and how many workloads they admit a second beside the real Kueue.

``large``: 1,000 ClusterQueues in 100 cohorts, and 50,000 workloads that wait. ``all_fit``: there is quota for all;
``bound``: there is quota for some, and the larger workloads are more urgent. An event is the end of an admitted
workload, until all have got quota who can have it then.

``slices``: ``all_fit`` in slices, as the operator decides. ``first_ms`` is the time until the first decisions are handed
out, and ``longest_ms`` the longest time between two times that decisions are.

``baseline``: Kueue's own performance test without its sleep: 30 ClusterQueues in 5 cohorts, and a job ends as soon as it
is admitted. Kueue runs with its controllers and its API server; of Evenkeel the engine alone is measured.
"""

from __future__ import annotations

import asyncio
import resource
import time
from typing import Any

import msgspec
import numpy as np

from bench.floors import Floor
from bench.queue_cluster import NOW, QueueCluster, make_slice
from scheduler.api.door import events
from scheduler.api.door.workload_decisions import Admit, Preempt
from scheduler.engine.allowance import Unlimited
from scheduler.kube import heap
from tests.controlplane import build
from tests.differential.queues import throughput

Json = dict[str, Any]

_COHORTS, _QUEUES, _WORKLOADS = 100, 10, 50
_QUICK_COHORTS = 5
# Cores: what there is for all, and for some of them.
_ENOUGH, _SCARCE = 500, 20
_N_EVENTS = 500
_N_BASELINE, _N_KUEUE = 15_000, 3_000

FLOORS = (
    Floor("large.all_fit.admitted_a_second", at_least=5000),
    Floor("large.*.event_ms.p99", at_most=20),
    Floor("large.*.rss_mib", at_most=600),
    Floor("slices.longest_ms", at_most=200),
    Floor("baseline.ratio", at_least=20),
)


def run(quick: bool) -> Json:
    n_cohorts = _QUICK_COHORTS if quick else _COHORTS
    found: Json = {
        "large": {
            "all_fit": _measure_large(n_cohorts, _ENOUGH),
            "bound": _measure_large(n_cohorts, _SCARCE),
        },
        "baseline": {"evenkeel": _measure_baseline(300 if quick else _N_BASELINE)},
        # The last one of the engine: it changes how the garbage collector works.
        "slices": _measure_slices(n_cohorts),
    }
    if not quick:
        build.ensure("etcd", "kube-apiserver", "kueue")
        theirs = asyncio.run(throughput.measure_throughput(_N_KUEUE))
        ours = found["baseline"]["evenkeel"]["admitted_a_second"]
        found["baseline"]["kueue"] = msgspec.to_builtins(theirs)
        found["baseline"]["ratio"] = round(ours / theirs.a_second, 1)
    return found


def _make_large(n_cohorts: int, cores: int) -> QueueCluster:
    n_queues = n_cohorts * _QUEUES
    workloads = throughput.make_workloads(n_queues * _WORKLOADS, n_queues)
    return QueueCluster([*throughput.make_queues(n_cohorts, _QUEUES, cores), *workloads])


def _measure_large(n_cohorts: int, cores: int) -> Json:
    n_queues = n_cohorts * _QUEUES
    cluster = _make_large(n_cohorts, cores)
    began = time.perf_counter()
    quotas = list(cluster.engine.decide(NOW, Unlimited()).quotas)
    seconds = time.perf_counter() - began
    admitted = [one.key for one in quotas if isinstance(one, Admit)]
    spent = []
    for key in admitted[:_N_EVENTS]:
        began = time.perf_counter()
        cluster.engine.handle(events.Gone("Workload", key), NOW)
        cluster.engine.decide(NOW, Unlimited())
        spent.append((time.perf_counter() - began) * 1e3)
    p50, p99 = np.percentile(spent, [50, 99]).tolist()
    return {
        "queues": n_queues,
        "waiting": n_queues * _WORKLOADS,
        "admitted": len(admitted),
        "seconds": round(seconds, 3),
        "admitted_a_second": round(len(admitted) / seconds),
        "tried_a_second": round(len(quotas) / seconds),
        "event_ms": {"p50": round(p50, 2), "p99": round(p99, 2), "max": round(max(spent), 2)},
        "rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def _measure_slices(n_cohorts: int) -> Json:
    """Measure how long decisions are kept back if they are made in slices, as by the operator."""
    cluster, spent, n_admitted = _make_large(n_cohorts, _ENOUGH), [], 0
    heap.freeze()
    while cluster.engine.find_due(NOW) <= NOW:
        began = time.perf_counter()
        quotas = cluster.decide_piece(NOW, make_slice)
        spent.append(time.perf_counter() - began)
        n_admitted += sum(isinstance(one, Admit) for one in quotas)
    return {
        "admitted": n_admitted,
        "seconds": round(sum(spent), 3),
        "pieces": len(spent),
        "first_ms": round(spent[0] * 1e3, 1),
        "longest_ms": round(max(spent) * 1e3, 1),
    }


def _measure_baseline(n_workloads: int) -> Json:
    bodies = [*throughput.make_queues(), *throughput.make_workloads(n_workloads)]
    cluster = QueueCluster(bodies)
    n_evicted, n_ended = 0, 0
    began = time.perf_counter()
    while n_ended < n_workloads:
        quotas = cluster.decide()
        n_evicted += sum(isinstance(one, Preempt) for one in quotas)
        if not cluster.running:
            raise AssertionError("nobody runs, and somebody waits")
        n_ended += len(cluster.running)
        for key in list(cluster.running):
            cluster.end(key)
    seconds = time.perf_counter() - began
    return {
        "workloads": n_workloads,
        "evictions": n_evicted,
        "seconds": round(seconds, 2),
        "admitted_a_second": round(n_workloads / seconds),
    }
