"""Alert rules and the dashboard, asked by Prometheus's own engine of scrapes of running operators."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.embedded.agents import nodes
from scheduler.kube.report.metrics import catalogue
from tests.operator import installed, prometheus, servers, tenants
from tests.operator.manifests import vgpu
from tests.operator.process import Operator
from tests.operator.prometheus import Scrape
from tests.operator.world import World, enter

Json = dict[str, Any]
_OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
_EVERY = 15.0
_N_SCRAPES = 9
_STARVES = """
kueue_pending_workloads{cluster_queue="q",status="inadmissible"} 2
kueue_quota_reserved_workloads_total{cluster_queue="q"} 5
kueue_quota_reserved_workloads_total{cluster_queue="other"} 5
"""
_CHURNS = """
kueue_evicted_workloads_total{{cluster_queue="q",reason="Preempted",underlying_cause=""}} {evicted}
kueue_quota_reserved_workloads_total{{cluster_queue="q"}} {reserved}
"""

pytestmark = pytest.mark.usefixtures("helm", "promql")


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.embedded() as running:
        yield running


async def _series(world: World) -> list[Scrape]:
    """Scrapes of a leader and a standby while pods come, as if they were a quarter of a minute apart."""
    leader, standby = [await world.start_operator(name=name) for name in ("a", "b")]
    await world.leads(leader)
    await world.create(*(nodes.make_gpu_node(f"g{i}") for i in range(3)))
    await world.measured(leader, lambda m: m.get("evenkeel_nodes") == 3)
    async with world.agents():
        return [one async for one in _scraped(world, leader, standby)]


async def _scraped(world: World, *replicas: Operator) -> AsyncIterator[Scrape]:
    accept = itertools.cycle(("", _OPENMETRICS))
    for i in range(_N_SCRAPES):
        await world.create(vgpu(f"p{i}", mem=1000), vgpu(f"huge{i}", mem=999_999))
        await world.bound(f"p{i}")
        await world.refused(f"huge{i}")
        if not i:
            await world.measured(
                replicas[0], lambda m: m.get('evenkeel_gpus{part="capacity"}') == 12
            )
        for one in replicas:
            name, kind = f"replica-{one.port}", next(accept)
            yield await asyncio.to_thread(prometheus.scrape, one.port, name, i * _EVERY, kind)
        next(accept)


async def test_every_query_is_understood_and_reads_what_is_told(
    server: servers.Server, tmp_path: Path
) -> None:
    """An alert on a name that nobody exports never fires, and says nothing of it."""
    async with enter(server) as world:
        scrapes = await _series(world)
    # Sums over both replicas would count every card twice.
    tell = {one.labels["instance"] for one in scrapes if "evenkeel_card_memory_bytes{" in one.text}
    assert len(tell) == 1
    [rules] = [one for one in _rendered(tmp_path) if one["kind"] == "PrometheusRule"]
    alerts = [one for group in rules["spec"]["groups"] for one in group["rules"]]
    panels = prometheus.panels()
    asked = [one["expr"] for one in alerts] + [q for one in panels for q, _ in one.queries]
    last = (_N_SCRAPES - 1) * _EVERY
    told = prometheus.ask(
        scrapes,
        asked,
        span=(last, last, 1.0),
        rules=yaml.safe_dump({"groups": rules["spec"]["groups"]}),
    )
    assert told["rules"] == []
    families = {one.full_name: set(one.labels) for one in catalogue.ALL}
    for query, answer in zip(asked, told["answers"], strict=True):
        assert (answer["error"], answer["warnings"]) == ("", []), query
        for one in answer["selected"]:
            name = one["name"].removesuffix("_bucket")
            if name.startswith("process_"):
                continue
            assert name in families, query
            assert set(one["labels"]) - {"job"} <= families[name], query
    drawn = {query: answer["series"] for query, answer in zip(asked, told["answers"], strict=True)}
    # Whatever is well fires nothing, and every panel has something to draw.
    firing = [one["alert"] for one in alerts if drawn[one["expr"]]]
    assert firing in ([], ["EvenkeelGpusStranded"])
    empty = [one.title for one in panels if not any(drawn[query] for query, _ in one.queries)]
    assert empty == []


async def test_every_panel_of_queues_has_something_to_draw(server: servers.Server) -> None:
    assert server.embedded is not None
    server.embedded.run(lambda inside: inside.add(*servers.queue_crds()))
    async with enter(server) as world:
        scrapes = await _scrape_queues(world)
    panels = prometheus.panels(dashboard=prometheus.QUEUES)
    asked = [query for one in panels for query, _ in one.queries]
    answers = prometheus.ask(scrapes, asked, span=(30.0, 30.0, 1.0))["answers"]
    drawn = {}
    for query, answer in zip(asked, answers, strict=True):
        assert (answer["error"], answer["warnings"]) == ("", []), query
        drawn[query] = answer["series"]
    empty = [query for query, series in drawn.items() if not series]
    assert empty == []
    figures = {one.title: drawn[one.queries[0][0]] for one in panels}
    [waiting], [admitted] = figures["Waiting workloads"], figures["Admitted workloads"]
    assert (_read_last(waiting), _read_last(admitted)) == (2, 2)
    shares = {one["labels"]["cluster_queue"]: _read_last(one) for one in figures["Quota in use, of what is owed"]}  # fmt: skip
    assert shares == {"left": 1.0, "right": 1.0}


async def _scrape_queues(world: World) -> list[Scrape]:
    """Scrapes of a leader while one queue borrows, and the other takes back what it is owed."""
    await tenants.prepare(world)
    back = {"preemption": {"reclaimWithinCohort": "Any"}}
    await tenants.make_queue(world, "left", "all", **back)
    await tenants.make_queue(world, "right", "all")
    operator = await world.start_operator(args=("--config", f"{installed.QUEUES}/config.yaml"))
    await world.leads(operator)
    found = [await asyncio.to_thread(prometheus.scrape, operator.port, "a", 0.0)]
    for i in range(2):
        await tenants.submit(world, f"r{i}", "right", 4)
        await tenants.becomes(world, f"r{i}", "Admitted", "True")
        # Who got quota in the same second goes by another order.
        await asyncio.sleep(1.1)
    await tenants.submit(world, "r2", "right", 4)
    await tenants.submit(world, "l", "left", 4)
    await tenants.becomes(world, "r1", "Evicted", "True")
    await tenants.end_as_a_job_would(world, "r1")
    await tenants.becomes(world, "l", "Admitted", "True")
    await world.measured(
        operator,
        lambda m: (
            m.get('kueue_pending_workloads{cluster_queue="right",status="inadmissible"}') == 2
        ),
    )
    last = [
        await asyncio.to_thread(prometheus.scrape, operator.port, "a", seconds)
        for seconds in (15.0, 30.0)
    ]
    return found + last


def _read_last(series: Json) -> float:
    return float(series["points"][-1][1])


def test_each_alert_fires_on_a_scrape_of_what_it_is_for(tmp_path: Path) -> None:
    [rules] = [one for one in _rendered(tmp_path) if one["kind"] == "PrometheusRule"]
    alerts = {one["alert"]: one["expr"] for g in rules["spec"]["groups"] for one in g["rules"]}
    bad: dict[str, tuple[str, str]] = {
        "EvenkeelNobodyLeads": ("evenkeel_leader 0", "evenkeel_leader 0"),
        "EvenkeelStreamStale": ('evenkeel_stream_age_seconds{stream="nodes"} 500',) * 2,
        "EvenkeelBindsFail": (
            'scheduler_schedule_attempts_total{result="error",profile="evenkeel"} 0',
            'scheduler_schedule_attempts_total{result="error",profile="evenkeel"} 500',
        ),
        "EvenkeelBindsSlow": _slow("evenkeel_bind_duration_seconds"),
        "EvenkeelQueueSlow": _slow("evenkeel_queue_wait_seconds"),
        "EvenkeelDevicePluginSilent": ('evenkeel_nodes_closed{reason="plugin-silent"} 2',) * 2,
        "EvenkeelNodeMalformed": ('evenkeel_nodes_closed{reason="malformed"} 1',) * 2,
        "EvenkeelForeignAllocation": (
            'evenkeel_foreign_writes_total{kind="allocation"} 0',
            'evenkeel_foreign_writes_total{kind="allocation"} 1',
        ),
        "EvenkeelRightMissing": ('evenkeel_missing_right{right="watch nodes"} 1',) * 2,
        "EvenkeelLeaseErrors": ("evenkeel_lease_errors_total 0", "evenkeel_lease_errors_total 50"),
        "EvenkeelGpusStranded": (
            'evenkeel_gpus{part="stranded"} 3\nevenkeel_gpus{part="capacity"} 8',
        )
        * 2,
        "EvenkeelReportsDropped": (
            "evenkeel_reports_dropped_total 0",
            "evenkeel_reports_dropped_total 1",
        ),
        "EvenkeelClusterQueueStarves": (_STARVES,) * 2,
        "EvenkeelClusterQueueChurns": (
            _CHURNS.format(evicted=0, reserved=0),
            _CHURNS.format(evicted=40, reserved=45),
        ),
        "EvenkeelQuotaWithoutPlace": (
            'evenkeel_cluster_queue_placeless_workloads{cluster_queue="q"} 1',
        )
        * 2,
        "EvenkeelClusterQueueInactive": (
            'kueue_cluster_queue_status{cluster_queue="q",status="pending"} 1',
        )
        * 2,
    }
    assert bad.keys() == alerts.keys()
    for name, (before, after) in bad.items():
        scrapes = [
            Scrape(
                seconds=seconds,
                labels={"job": prometheus.JOB, "instance": "a"},
                contentType="text/plain; version=0.0.4",
                text=text + "\n",
            )
            for seconds, text in ((0.0, before), (250.0, before), (400.0, after), (500.0, after))
        ]
        told = prometheus.ask(scrapes, [alerts[name]], span=(500.0, 500.0, 1.0))
        [answer] = told["answers"]
        assert answer["error"] == ""
        assert answer["series"], name


def _slow(name: str) -> tuple[str, str]:
    """A histogram all of whose observations were beyond its last bucket but one."""
    return tuple(  # type: ignore[return-value]
        f'{name}_bucket{{le="60.0"}} 0\n{name}_bucket{{le="300.0"}} {n}\n{name}_bucket{{le="+Inf"}} {n}'
        for n in (0, 100)
    )


def test_alerts_read_the_job_that_the_values_name(tmp_path: Path) -> None:
    """Who scrapes without the ServiceMonitor has a job of another name; by the wrong one no alert is right."""
    [rules] = [
        one
        for one in _rendered(tmp_path, "--set=alerts.job=kubernetes-pods")
        if one["kind"] == "PrometheusRule"
    ]
    for alert in (one for group in rules["spec"]["groups"] for one in group["rules"]):
        selectors = re.findall(r"\{([^}]*)\}", alert["expr"])
        assert selectors
        assert all('job="kubernetes-pods"' in one for one in selectors), alert["expr"]


def _rendered(folder: Path, *more: str) -> list[Json]:
    options = [f"--set={option}.enabled=true" for option in ("alerts", "dashboard")]
    return installed.objects(installed.rendered_chart(folder, *options, *more))
