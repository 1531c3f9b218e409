"""A scrape: both formats, two of them, many cards, who tells them, and who may put words into labels."""

import asyncio
import re
from pathlib import Path

import msgspec
import pytest
from prometheus_client.openmetrics import parser as openmetrics

from scheduler.api import names, steering, wire
from scheduler.api.claims import objects
from scheduler.api.door import events
from scheduler.api.kinds import BY_KIND
from scheduler.api.metrics_settings import HamiMetrics
from scheduler.kube.report.metrics import catalogue
from tests import make
from tests.model import mig
from tests.operator import devices
from tests.oracles.kueue import cases
from tests.unit.metrics_replica import Replica, Samples, node, of, pod, samples

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


async def test_a_scrape_is_read_in_both_formats_and_says_the_same() -> None:
    replica = Replica(hami=HamiMetrics.BOTH)
    replica.see(node(), pod("p"))
    replica.decide()
    replica.bound("default/p")
    await replica.measure()
    plain = await replica.scrape()
    text = await replica.text(OPENMETRICS)
    families = openmetrics.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    other = {
        (one.name, tuple(sorted(one.labels.items())))
        for family in families
        for one in family.samples
    }
    assert plain.keys() == other
    assert not [name for name, _ in plain if name.endswith("_created")]


def see_queues(replica: Replica) -> None:
    """Have queues, and something of each kind happen to their workloads."""
    plain = {"quotas": [{"plain": {"cpu": 4}}], "cohort": "all"}
    objects = cases.make_objects({"queues": {"q": plain}, "cohorts": {"all": {}}})
    for body in (*objects, cases.make_local_queue("team/q", "q")):
        for kind in (one for one in BY_KIND[body["kind"]] if one.is_of_queues):
            found = msgspec.convert({**body, "kind": kind.name}, kind.shape)
            replica.engine.handle(events.Seen(found), replica.now)
    counts = replica.queue_counts
    counts.count_reserved("q", 1.0)
    counts.count_admitted("q", 2.0)
    counts.count_checked("q", 1.0)
    counts.count_evicted("q", "Preempted")
    counts.count_preempted("q", "InClusterQueue")
    counts.count_replaced("q")


async def test_only_what_is_catalogued_is_told_and_all_of_it() -> None:
    replica = Replica(hami=HamiMetrics.BOTH)
    whole = make.node(name="whole", labels={}, allocatable={names.GPU: 4})
    cut = make.hami_node(name="cut", cards=[mig.make_card("GPU-m")], cpu=8)
    known = {"migUUID": "MIG-1", "gpuInstanceID": 9, "computeInstanceID": 0}
    notes = mig.tell_instance("GPU-m", "1g.5gb", (6, 1), known)
    instance = make.pod(name="i", node="cut", gpu=1, gpumem=4000, annotations=notes)
    replica.see(node(), whole, cut, instance, pod("p"), pod("huge", 99_999))
    made = devices.device_slice("whole", [devices.device("gpu-0")])
    offered = msgspec.convert(made, objects.ResourceSlice)
    of_class = msgspec.convert(devices.device_class(), objects.DeviceClass)
    replica.engine.handle(events.Seen(offered), replica.now)
    replica.engine.handle(events.Seen(of_class), replica.now)
    replica.decide()
    replica.bound("default/p")
    see_queues(replica)
    limits = steering.ResourceQuota(
        wire.Meta(name="q", namespace="default"), {"hard": {f"limits.{names.GPU}": 9}}
    )
    replica.engine.handle(events.Seen(limits), replica.now)
    await replica.measure()
    told: dict[str, set[str]] = {}
    for name, labels in await replica.scrape():
        told.setdefault(name, set()).update(label for label, _ in labels)
    process = {name for name in told if name.startswith(("process_", "python_"))}
    wanted = {}
    for family in catalogue.ALL:
        ends = ("_bucket", "_sum", "_count") if family.buckets else ("",)
        for end in ends:
            more = {"le"} if end == "_bucket" else set()
            wanted[family.full_name + end] = set(family.labels) | more
    assert {name: labels for name, labels in told.items() if name not in process} == wanted
    assert {"process_cpu_seconds_total", "process_resident_memory_bytes"} <= process


async def test_every_pod_of_a_batch_is_observed() -> None:
    replica = Replica()
    replica.see(node(), *(pod(f"p{i}") for i in range(4)), pod("huge", 99_999))
    replica.decide()
    found = await replica.scrape()
    name = "scheduler_scheduling_attempt_duration_seconds"
    assert of(found, f"{name}_count", result="scheduled", profile="evenkeel") == 4
    assert of(found, f"{name}_count", result="unschedulable", profile="evenkeel") == 1
    # Of a quarter of a second together, each pod has its part.
    assert of(found, f"{name}_sum") == pytest.approx(0.25)
    assert of(found, f"{name}_bucket", result="scheduled", le="0.05") == 4
    assert of(found, f"{name}_bucket", result="scheduled", le="0.01") == 0
    assert of(found, "scheduler_schedule_attempts_total", result="scheduled") == 4


async def test_the_times_of_a_pod_begin_with_its_first_try_and_leave_out_its_gates() -> None:
    replica = Replica()
    gated = pod("p", spec={"schedulingGates": [{"name": "g"}]})
    replica.see(gated)
    replica.now = 150.0
    replica.see(pod("p"))
    replica.now = 153.0
    assert replica.decide().holds
    replica.see(node())
    replica.now = 155.0
    replica.decide()
    replica.now = 158.0
    replica.decide()
    replica.now = 159.0
    replica.bound("default/p")
    found = await replica.scrape()
    sli = "scheduler_pod_scheduling_sli_duration_seconds"
    assert of(found, f"{sli}_sum", attempts="2") == 9.0
    assert of(found, f"{sli}_count") == 1
    assert of(found, "scheduler_pod_scheduling_attempts_sum") == 2
    assert of(found, "evenkeel_queue_wait_seconds_count") == 2
    came = "scheduler_queue_incoming_pods_total"
    assert of(found, came, queue="gated", event="UnschedulablePodAdd") == 1
    assert of(found, came, queue="active", event="UnschedulablePodUpdate") == 1
    assert of(found, came, queue="unschedulable", event="ScheduleAttemptFailure") == 1


async def test_placements_are_told_by_mode_and_policy_and_failures_by_profile() -> None:
    replica = Replica()
    spec = {"podSelector": {"matchLabels": {"team": "a"}}, "nodePolicy": "spread"}
    body = {"metadata": {"name": "team-a", "generation": 1}, "spec": spec}
    replica.engine.handle(events.Seen(make.policy(body)), replica.now)
    replica.see(node(), pod("a", labels={"team": "a"}), pod("b"), pod("c"))
    replica.decide()
    replica.bound("default/a")
    replica.bound("default/b")
    replica.tally.note_report(events.BindFailed("default/c", "no"))
    found = await replica.scrape()
    placed = "evenkeel_placements_total"
    assert of(found, placed, mode="spread", policy="team-a") == 1
    assert of(found, placed, mode="keel", policy="") == 1
    assert of(found, placed) == 2
    attempts = "scheduler_schedule_attempts_total"
    assert of(found, attempts, result="error", profile="evenkeel") == 1


async def test_why_pods_wait_is_told_by_rule_until_they_wait_no_more() -> None:
    replica = Replica()
    replica.see(node(), pod("huge", 99_999), pod("both", 99_999, node_selector={"a": "b"}))
    replica.decide()
    found, name = await replica.scrape(), "scheduler_unschedulable_pods"
    assert of(found, name, plugin="GpuCards", profile="evenkeel") == 1
    assert of(found, name, plugin="NodeAffinity", profile="evenkeel") == 1
    for uid in ("default/huge", "default/both"):
        for note in replica.engine.handle(events.Gone("Pod", uid), replica.now):
            replica.tally.note_left(note.uid)  # type: ignore[union-attr]
    assert not [key for key in await replica.scrape() if key[0] == name]


async def test_cards_and_nodes_are_told_with_what_is_given_away() -> None:
    replica = Replica()
    replica.see(node(), pod("p", 250))
    replica.decide()
    found = await replica.scrape()
    cards = {
        dict(its)["uuid"] for (n, its), _ in found.items() if n == "evenkeel_card_memory_bytes"
    }
    assert len(cards) == 2
    assert of(found, "evenkeel_card_memory_bytes", node="g", card="0") == 1000 << 20
    assert of(found, "evenkeel_card_memory_allocated_bytes", node="g") == 250 << 20
    assert of(found, "evenkeel_card_cores_allocated", node="g") == 50
    assert of(found, "evenkeel_node_gpus", node="g", resource=names.GPU) == 2
    assert of(found, "evenkeel_node_gpus_allocated", node="g") == 1
    assert of(found, "evenkeel_node_gpu_memory_allocated_bytes", node="g") == 250 << 20
    assert of(found, "evenkeel_node_gpu_sharers_allocated", node="g") == 1


async def test_replicas_of_time_slicing_are_parts_of_a_nodes_gpus() -> None:
    replica = Replica()
    labels = {names.GPU_PRODUCT: "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "12"}
    replica.see(
        make.node(name="sliced", gpus=24, labels=labels), make.pod(name="p", node="sliced", gpu=3)
    )
    replica.see(make.node(name="whole", gpus=2))
    found = await replica.scrape()
    assert of(found, "evenkeel_node_gpus", node="sliced", resource=names.GPU) == 2
    assert of(found, "evenkeel_node_gpus_allocated", node="sliced") == 0.25
    assert of(found, "evenkeel_node_gpus", node="whole") == 2


async def test_labels_are_made_anew_when_nodes_change() -> None:
    replica = Replica()
    replica.see(node("a"), node("b"))
    before = await replica.scrape()
    replica.engine.handle(events.Gone("Node", "a"), replica.now)
    replica.see(node("c"))
    after = await replica.scrape()
    nodes = [
        {dict(its)["node"] for (n, its) in found if n == "evenkeel_card_cores"}
        for found in (before, after)
    ]
    assert nodes == [{"a", "b"}, {"b", "c"}]


@pytest.mark.parametrize(("per_node", "per_card"), [(True, False), (False, True), (False, False)])
async def test_nodes_and_cards_can_be_left_out(*, per_node: bool, per_card: bool) -> None:
    replica = Replica(per_node=per_node, per_card=per_card)
    replica.see(node(), pod("p"))
    replica.decide()
    await replica.measure()
    found = await replica.scrape()
    has = {
        what: any(n.startswith(f"evenkeel_{what}_") for n, _ in found) for what in ("node", "card")
    }
    assert has == {"node": per_node, "card": per_card}
    # What is true of the whole cluster stays.
    assert of(found, "evenkeel_gpus", part="capacity") == 2


async def test_a_replica_that_stands_by_tells_of_itself_and_not_of_the_cluster() -> None:
    """Sums over both replicas would be twice what there is."""
    replica = Replica(deciding=False)
    replica.see(node(), pod("p"))
    measuring = asyncio.create_task(replica.stranded.run())
    await asyncio.sleep(0)
    found = await replica.scrape()
    measuring.cancel()
    assert of(found, "evenkeel_leader") == 0
    assert of(found, "evenkeel_nodes") == 1
    assert of(found, "scheduler_pending_pods", queue="active") == 1
    assert not [
        n for n, _ in found if n.startswith(("evenkeel_card_", "evenkeel_node_", "evenkeel_gpu"))
    ]


async def test_the_page_lists_every_kind_of_holder_of_the_lease() -> None:
    found = await Replica().scrape()
    kinds = {dict(its)["holder"] for name, its in found if name == "evenkeel_lease_holder"}
    assert kinds == {"self", "replica", "peer", "other", "nobody"}
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    (row,) = re.findall(r"^\| `evenkeel_lease_holder` .*$", page, re.MULTILINE)
    assert kinds <= set(re.findall(r"`(\w+)`", row))
    assert all(kind in catalogue.LEASE_HOLDER.help for kind in kinds)


async def test_counters_never_go_down() -> None:
    replica = Replica()
    replica.see(node())
    before: Samples = {}
    for i in range(4):
        replica.see(pod(f"p{i}"), pod(f"huge{i}", 99_999))
        for bind in replica.decide().binds:
            replica.bound(bind.uid)
        found = await replica.scrape()
        rising = {k: v for k, v in found.items() if k[0].endswith(("_total", "_count", "_bucket"))}
        assert before.keys() <= rising.keys()
        assert all(rising[key] >= figure for key, figure in before.items())
        before = rising
    assert of(before, "scheduler_schedule_attempts_total", result="scheduled") == 4


async def test_no_word_of_a_pod_becomes_a_label() -> None:
    """Whoever may only create pods could otherwise fill the memory of Prometheus."""
    replica = Replica()
    replica.see(node(), pod("quiet"))
    replica.decide()
    replica.bound("default/quiet")
    before = (await replica.scrape()).keys()
    word = "hostile"
    for i in range(50):
        loud = {f"{word}{i}": f"{word}{i}"}
        replica.see(
            pod(f"{word}{i}", labels=loud, annotations={names.MODE: f"{word}{i}"}),
            pod(f"{word}-s{i}", node_selector=loud),
            make.pod(
                name=f"{word}-r{i}", containers=[make.container(requests={f"{word}.io/r{i}": 1})]
            ),
            pod(f"{word}-u{i}", annotations={names.USE_UUID: f"{word}{i}"}),
        )
        replica.now += 400.0
        replica.decide()
    text = await replica.text()
    assert word not in text
    # What is new is known from the start: results, rules, parts of the queue.
    assert len(samples(text).keys() - before) < 40


async def test_words_of_a_driver_are_written_as_the_format_wants_them() -> None:
    replica = Replica()
    cards = make.cards(count=1, mib=1000)
    odd = make.hami_node(
        name="g", cards=[{**cards[0], "id": 'G"1\\0\n0', "type": 'A"1\\0'}], cpu=16
    )
    replica.see(odd)
    found = await replica.scrape()
    assert of(found, "evenkeel_card_sharers", model='A"1\\0', uuid='G"1\\0\n0') > 0
