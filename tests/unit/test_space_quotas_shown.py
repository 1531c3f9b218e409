"""Namespace quotas in the webhook, in metrics, in logs, and for groups."""

from __future__ import annotations

from typing import Any
from unittest.mock import create_autospec

import msgspec

from scheduler.api import wire
from scheduler.api.admission.settings import AdmissionSettings
from scheduler.api.door import events
from scheduler.api.metrics_settings import HamiMetrics, MetricsConfig
from scheduler.devices.admission import steps
from scheduler.engine import rerun
from scheduler.engine.questions.space_quotas import SpaceQuotaStates
from scheduler.engine.recorded import Recorded
from scheduler.kube.device_maps import DeviceMapHands
from scheduler.kube.lookups import Lookups
from scheduler.kube.report.metrics.hami import HamiLines
from scheduler.kube.report.reporter import Reporter
from tests import make
from tests.unit.test_device_maps import ask
from tests.unit.test_space_quotas import GPU, Spaces, node, quota, share


def _review(world: Spaces, pod: wire.Pod, settings: AdmissionSettings | None = None) -> Any:
    lookups = Lookups(world.engine, world.engine.config)
    raw = msgspec.json.encode(pod)
    given = settings or AdmissionSettings()
    facts = steps.ClusterFacts(lookups.find_quota_excess)
    return steps.review_pod(raw, "default", given, facts)


def test_the_webhook_refuses_what_exceeds_a_quota_also_by_what_it_fills_in() -> None:
    world = Spaces()
    world.see(node(), quota(mem=3000, gpu=1), share("a", 1000))
    world.decide()
    said = _review(world, share("b", 2500))
    assert isinstance(said, steps.Denied)
    assert said.message == (
        f"exceeding resource quota: exceeded quota: q, requested: {GPU}=1, used: {GPU}=1, limited: {GPU}=1"
    )
    # It asks for no number of cards itself.
    part = share("c", 100)
    part.spec.containers[0].resources = wire.Resources(limits={"nvidia.com/gpumem": 100})
    assert isinstance(_review(world, part), steps.Denied)
    assert isinstance(_review(world, make.pod(name="plain", cpu=1)), steps.Allowed)
    world.gone("a")
    assert isinstance(_review(world, part), steps.Allowed)
    assert isinstance(_review(world, share("d", 3001)), steps.Denied)
    world.see(quota(mem=0))
    percent = ask("e", nvidia_gpu=1, nvidia_gpumem_percentage=1)
    assert isinstance(_review(world, percent), steps.Denied)


def test_metrics_have_hamis_names_and_show_the_tightest_limit() -> None:
    world = Spaces()
    world.see(node(), quota("wide", mem=9000), quota("narrow", mem=3000, gpu=5), share("a", 1000))
    world.decide()
    lines = HamiLines(MetricsConfig(hami=HamiMetrics.BOTH))
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for metric in lines.collect_quotas(world.engine.ask(SpaceQuotaStates()))
        for sample in metric.samples
    }
    of_memory = {"namespace": "default", "quota_name": "nvidia.com/gpumem", "zone": "vGPU"}
    old = {"quotanamespace": "default", "quotaName": "nvidia.com/gpumem", "zone": "vGPU"}
    assert found["hami_resource_quota_limit", *sorted(of_memory.items())] == 3000
    assert (
        found["hami_resource_quota_used", *sorted({**of_memory, "limit": "3000"}.items())] == 1000
    )
    assert found["QuotaUsed", *sorted({**old, "limit": "3000"}.items())] == 1000
    assert len(found) == 6


def test_a_log_with_quotas_runs_again() -> None:
    lines: list[bytes] = []
    world = Spaces()
    world.engine = recorded = Recorded(world.engine.config, "test", lines.append)
    world.see(node(), quota(mem=2500), *(share(f"p{i}") for i in range(4)))
    world.decide()
    recorded.start_anew(world.now)
    world.check()
    assert world.used() == {"nvidia.com/gpumem": 2000}
    world.gone("p0")
    assert len(world.decide()) == 1
    assert rerun.rerun(lines).difference is None


def test_a_gang_waits_as_a_whole_for_room_in_its_namespace() -> None:
    world = Spaces()
    gang = [make.member(share(f"g{i}")) for i in range(3)]
    world.see(node(), quota(mem=2500), make.pod_group(minimum=3), *gang)
    assert world.decide() == {}
    assert world.why("g0")
    world.see(quota(mem=3000))
    assert len(world.decide()) == 3


def test_a_group_that_grows_gets_what_there_is_room_for() -> None:
    world = Spaces()
    gang = [make.member(share(f"g{i}")) for i in range(5)]
    world.see(node(), quota(mem=3500), make.pod_group(minimum=2), *gang)
    assert len(world.decide()) == 3
    assert world.decide() == {}
    world.see(quota(mem=4500))
    assert len(world.decide()) == 1


def test_figures_beyond_all_bounds_stop_nothing() -> None:
    """Whoever may create pods writes them, and reviews come from another thread."""
    world = Spaces()
    huge = 10**30
    asked = {"nvidia_gpu": huge, "nvidia_gpumem_percentage": 50}
    world.see(node(), quota(mem=100, gpu=3))
    large = {**asked, "nvidia_gpu": 10**12}
    assert isinstance(_review(world, ask("a", **large)), steps.Denied)
    # What is no amount at all is a mistake, for which the pod is held.
    assert isinstance(_review(world, ask("a", **asked)), steps.Allowed)
    assert isinstance(_review(world, ask("b", nvidia_gpu=huge, nvidia_gpumem=huge)), steps.Allowed)
    first = ask("x", **asked).spec.containers[0]
    for name, pod in {
        "c": ask("c", **asked),
        "d": ask("d", **large),
        "f": ask("f", nvidia_gpu=100_000),
        "e": ask("e", amd_gpu=huge),
    }.items():
        pod.spec.init_containers = [first] if name == "d" else None
        world.see(pod)
    world.see(share("fine", 50))
    assert [*world.decide()] == ["fine"]
    # A mistake is what keeps it waiting, and not the quota.
    assert world.why("f") == ""


def test_a_mistake_in_a_quota_that_is_gone_is_not_reported_again() -> None:
    reporter = create_autospec(Reporter, instance=True)
    world = Spaces()
    hands = DeviceMapHands(reporter, [], lambda _: None, lambda: True)
    hands.hear(world.see(quota("kept", gpu="many"), quota("gone", gpu="many")))
    hands.hear(world.engine.handle(events.Gone("ResourceQuota", "default/gone"), world.now))
    reporter.report_on_object.reset_mock()
    hands.report_all()
    assert [call.args[1].name for call in reporter.report_on_object.call_args_list] == ["kept"]
