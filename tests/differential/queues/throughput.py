"""How many workloads Kueue admits a second, in the setting of its own performance test "baseline"."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from http import HTTPStatus
from typing import Any

import aiohttp
import msgspec

from tests.controlplane import objects
from tests.differential.queues import jobs
from tests.differential.queues.oracle import WORKLOADS
from tests.differential.queues.program import NAME, Program, start_plane
from tests.differential.queues.quotas import API, NAMESPACE, make
from tests.differential.queues.worlds import write_time

Json = dict[str, Any]

# As in Kueue's test/performance/scheduler/configs/baseline: of ten workloads so many are of each class, with the CPU
# that one asks for, and its priority.
_CLASSES = {"small": (7, 1, 50), "medium": (2, 5, 100), "large": (1, 20, 200)}
_COHORTS, _QUEUES = 5, 6
_NOMINAL, _BORROWING = 20, 100
_FLAVOR = "default"
# Of its own client; the default of its newest version.
CONNECTION = {"qps": 300, "burst": 500}
_AT_ONCE = 32


class Throughput(msgspec.Struct, frozen=True):
    """What was measured.

    Attributes:
        n_workloads: all of them were admitted and finished.
        n_evictions: how often one was evicted before it finished.
        seconds: from Kueue's start until the last was admitted.
        a_second: workloads that it admitted a second.
        cpu_seconds: that Kueue has used, user and system.
        memory_bytes: Kueue's resident memory at the end.
        connection: how many requests its client allowed itself.
    """

    n_workloads: int
    n_evictions: int
    seconds: float
    a_second: float
    cpu_seconds: float
    memory_bytes: int
    connection: Mapping[str, int]


async def measure_throughput(
    n_workloads: int, *, connection: Mapping[str, int] | None = None
) -> Throughput:
    """Let Kueue admit workloads whose jobs end at once, as its own performance test does with ``runtimeMs: 0``.

    Thirty ClusterQueues in five cohorts have 20 CPU each and borrow up to 100 more. All workloads wait in their queues
    before Kueue starts, so nothing is measured but its own pace, beside that of the API server. Whoever is evicted lets
    go at once.

    Args:
        n_workloads: seven of ten ask for 1 CPU, two for 5 and one for 20, the larger ones with more priority.
        connection: how many requests Kueue's client allows itself a second, and at once; ``CONNECTION`` by default.

    Returns:
        Seconds of the wall clock and of the CPU, and workloads a second.

    Raises:
        BuildError: a program is missing and cannot be built here.
        StartError: a program did not come up.
        CallError: the API server refused a call.
    """
    chosen = dict(connection or CONNECTION)
    with start_plane() as control:
        await objects.create_many(control, make_queues())
        await objects.create_many(control, make_workloads(n_workloads))
        async with objects.connect(control) as session, aiohttp.ClientSession() as plain:
            program = Program(control, plain)
            jobs_of = _Jobs(session, n_workloads)
            began_at = time.monotonic()
            # Its start waits for it, and the first are admitted meanwhile.
            await asyncio.gather(
                asyncio.to_thread(program.start, {"clientConnection": chosen}, has_gate=False),
                jobs_of.play(),
            )
            seconds = jobs_of.last_admitted_at - began_at
            return Throughput(
                n_workloads=n_workloads,
                n_evictions=jobs_of.n_evictions,
                seconds=round(seconds, 2),
                a_second=round(n_workloads / seconds, 1),
                cpu_seconds=control.cpu_seconds(NAME),
                memory_bytes=control.rss(NAME),
                connection=chosen,
            )


def make_queues(
    n_cohorts: int = _COHORTS,
    n_queues: int = _QUEUES,
    cores: int = _NOMINAL,
    *,
    flavor_spec: Json | None = None,
) -> Iterator[Json]:
    """A flavor, and so many ClusterQueues in each of so many cohorts, with so many cores each."""
    yield make("ResourceFlavor", _FLAVOR, spec=flavor_spec or {})
    for i in range(n_cohorts * n_queues):
        quota = {"name": "cpu", "nominalQuota": str(cores), "borrowingLimit": str(_BORROWING)}
        spec = {
            "cohortName": f"cohort-{i // n_queues}",
            "namespaceSelector": {},
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu"],
                    "flavors": [{"name": _FLAVOR, "resources": [quota]}],
                }
            ],
        }
        yield make("ClusterQueue", f"queue-{i}", spec=spec)
        local = make("LocalQueue", f"queue-{i}", spec={"clusterQueue": f"queue-{i}"})
        local["metadata"]["namespace"] = NAMESPACE
        yield local


def make_workloads(number: int, n_queues: int = _COHORTS * _QUEUES) -> Iterator[Json]:
    """Workloads that come to the queues in turn; each queue gets its share of each class."""
    ten = [(name, cpu, rank) for name, (n, cpu, rank) in _CLASSES.items() for _ in range(n)]
    for i in range(number):
        name, cpu, rank = ten[i // n_queues % len(ten)]
        container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": str(cpu)}}}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        yield {
            "apiVersion": API,
            "kind": "Workload",
            "metadata": {"name": f"{name}-{i}", "namespace": NAMESPACE},
            "spec": {
                "queueName": f"queue-{i % n_queues}",
                "priority": rank,
                "podSets": [{"name": "main", "count": 1, "template": template}],
            },
        }


class _Jobs:
    """Ends the job of each workload once it is admitted."""

    def __init__(self, session: aiohttp.ClientSession, n_jobs: int) -> None:
        self._session, self._n_jobs = session, n_jobs
        self._admitted: set[str] = set()
        self._finished: set[str] = set()
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self.n_evictions = 0
        self.last_admitted_at = 0.0

    async def play(self) -> None:
        """Return once all have ended."""
        async with asyncio.TaskGroup() as group:
            async for one in self._watch():
                name = one["metadata"]["name"]
                if jobs.is_true(one, "Finished"):
                    self._finished.add(name)
                    if len(self._finished) == self._n_jobs:
                        return
                elif jobs.must_let_go(one):
                    self.n_evictions += name in self._admitted
                    self._admitted.discard(name)
                    group.create_task(self._patch(one, jobs.let_go(one, _now())))
                elif jobs.is_true(one, "Admitted"):
                    if name not in self._admitted:
                        self._admitted.add(name)
                        self.last_admitted_at = time.monotonic()
                    group.create_task(self._patch(one, jobs.finish(one, _now())))

    async def _patch(self, one: Json, status: Json) -> None:
        """Write it unless somebody wrote before: what they wrote comes by, and is answered then."""
        meta = one["metadata"]
        change = status | {"metadata": {"resourceVersion": meta["resourceVersion"]}}
        async with self._turns:
            try:
                path = f"{WORKLOADS}/{meta['name']}/status"
                await objects.call(self._session, "PATCH", path, change)
            except objects.CallError as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise

    async def _watch(self) -> AsyncIterator[Json]:
        """Each workload as it changes, from now on."""
        found = msgspec.json.decode(
            await objects.call(self._session, "GET", f"{WORKLOADS}?limit=1")
        )
        query = {"watch": "1", "resourceVersion": found["metadata"]["resourceVersion"]}
        forever = aiohttp.ClientTimeout(total=None)
        async with self._session.get(WORKLOADS, params=query, timeout=forever) as answer:
            async for line in answer.content:
                yield msgspec.json.decode(line)["object"]


def _now() -> str:
    return write_time(int(time.time()))
