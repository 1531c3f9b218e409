"""Metrics under HAMi's names: the text that HAMi's code gives for the same cluster, and what its dashboards query."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.metrics_settings import HamiMetrics, MetricsConfig
from scheduler.engine.questions.measures import Devices, Holds
from scheduler.kube.report.metrics import hami_catalogue as catalogue
from scheduler.kube.report.metrics.hami import HamiLines
from tests import make
from tests.model import mig
from tests.model.engine_stories import Story
from tests.unit.metrics_replica import Replica, of, pod

DATA = Path(__file__).parents[1] / "data" / "hami"
CLUSTER: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    (DATA / "metrics" / "cluster.yaml").read_text(encoding="utf-8")
)
NAMES = {one.name for one in catalogue.ALL}


def see_cluster(replica: Replica) -> None:
    """Show the replica the nodes and pods of the file."""
    for node in CLUSTER["nodes"]:
        replica.see(make.hami_node(name=node["name"], cards=node["cards"], cpu=64))
    replica.see(*map(make_pod, CLUSTER["pods"]))


def make_pod(told: dict[str, Any]) -> wire.Pod:
    asks, first = (
        [make.container(name=f"{kind}{i}", **one) for i, one in enumerate(told.get(kind, ()))]
        for kind in ("containers", "initContainers")
    )
    return make.pod(
        name=told["name"],
        namespace=told["namespace"],
        node=told["node"],
        containers=asks,
        init_containers=first,
        annotations={names.HAMI_ALLOCATED: told["devices"]},
    )


def read_lines(text: str) -> list[tuple[str, float]]:
    """Lines without comments, of HAMi's names, with their figures read: Go and Python write large ones differently."""
    lines = [one.rpartition(" ") for one in text.splitlines() if not one.startswith("#")]
    return sorted((what, float(figure)) for what, _, figure in lines if what.partition("{")[0] in NAMES)  # fmt: skip


def read_wanted(*files: str) -> list[tuple[str, float]]:
    return read_lines("".join((DATA / "metrics" / f"{one}.prom").read_text() for one in files))


def is_build(what: str) -> bool:
    return what.startswith(catalogue.BUILD.name)


@pytest.mark.parametrize(
    ("hami", "files"),
    [
        (HamiMetrics.NONE, []),
        (HamiMetrics.CURRENT, ["current"]),
        (HamiMetrics.LEGACY, ["legacy"]),
        (HamiMetrics.BOTH, ["current", "legacy"]),
    ],
)
async def test_the_text_is_the_one_that_hami_writes(hami: HamiMetrics, files: list[str]) -> None:
    replica = Replica(per_node=False, per_card=False, hami=hami)
    see_cluster(replica)
    found = read_lines(await replica.text())
    assert [one for one in found if not is_build(one[0])] == read_wanted(*files)
    assert len([one for one in found if is_build(one[0])]) == bool(files)


def test_dashboards_find_what_they_query_of_the_scheduler() -> None:
    dashboards = yaml.safe_load((DATA / "metrics" / "dashboards.yaml").read_text(encoding="utf-8"))
    told = {family.name: set(family.labels) for family in catalogue.ALL}
    wanted = {
        name: set(labels)
        for dashboard in dashboards.values()
        for name, labels in dashboard["scheduler"].items()
    }
    assert len(wanted) == 5
    assert [name for name, labels in wanted.items() if not labels <= told.get(name, set())] == []
    # What the monitor on each node writes stays with HAMi's device plugin, and nothing here has its names.
    theirs = {name for dashboard in dashboards.values() for name in dashboard["monitor"]}
    assert len(theirs) == 9
    assert not theirs & told.keys()
    page = (DATA.parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert [name for name in theirs if f"`{name}`" not in page] == []


async def test_devices_of_other_vendors_stand_as_hami_writes_them() -> None:
    """Of partitions, of cores that are bits and of dies: types, cores and memory are not as they are allocated."""
    parts = '{"devices":[{"index":"0","minor":"0","capacity":6}],"profiles":{"1g.8gb":"1","6g.48gb":"4"}}'
    dies = '[{"id":"va-0","count":4,"devmem":32768,"type":"Vastai","health":true}]'
    replica = Replica(hami=HamiMetrics.CURRENT)
    replica.see(
        make.node(
            name="e",
            annotations={"enflame.com/gcu-drs-capacity": parts},
            allocatable={"enflame.com/drs-gcu": 6},
        ),
        make.node(
            name="n", allocatable={"aws.amazon.com/neuron": 1, "aws.amazon.com/neuroncore": 2}
        ),
        make.node(
            name="v",
            annotations={"hami.io/node-va-register": dies},
            allocatable={"vastaitech.com/va": 4},
        ),
    )
    for node, resource, key, held in (
        ("e", "enflame.com/drs-gcu", "enflame-vgpu", "e-enflame-drs-0,Enflame,8192,17:;"),
        ("n", "aws.amazon.com/neuroncore", "aws-neuron", "n-AWSNeuron-0,AWSNeuron,0,1:;"),
        ("v", "vastaitech.com/va", "Vastai", "va-0,Vastai,0,0:;"),
    ):
        notes = {names.HAMI_NODE: node, f"hami.io/{key}-devices-allocated": held}
        replica.see(
            make.pod(name=f"on-{node}", node=node, requests={resource: 1}, annotations=notes)
        )
    found = dict(read_lines(await replica.text()))
    for uuid, at, kind, cores, mib, held_cores, held_mib in (
        ("e-enflame-drs-0", "e", "Enflame", 100, 49152, 17, 8192),
        ("n-AWSNeuron-0", "n", "AWSNeuron", 3, 0, 1, 0),
        ("va-0", "v", "Vastai", 100, 0, 0, 0),
    ):
        card = (
            f'device_index="0",device_type="{kind}",device_uuid="{uuid}",node="{at}",zone="vGPU"}}'
        )
        sized = f'device_cores="{cores}",{card}'
        assert found[f"hami_gpu_core_limit_ratio{{{card}"] == cores
        assert found[f"hami_gpu_memory_limit_bytes{{{card}"] == mib << 20
        assert found[f"hami_gpu_core_allocated_ratio{{{card}"] == held_cores
        assert found[f"hami_gpu_memory_allocated_bytes{{{sized}"] == held_mib << 20
        assert found[f"hami_gpu_shared_count{{{card}"] == 1
        pod_of = f'container_index="0",device_uuid="{uuid}",namespace="default",node="{at}",pod="on-{at}",zone="vGPU"}}'
        assert found[f"hami_vgpu_memory_allocated_bytes{{{pod_of}"] == held_mib << 20
        ratio = f"hami_node_gpu_memory_allocated_ratio{{{card}"
        assert found.get(ratio) == (held_mib / mib if mib else None)


async def test_figures_are_those_of_the_moment() -> None:
    """HAMi's lag by up to 15 s."""
    replica = Replica(hami=HamiMetrics.CURRENT)
    see_cluster(replica)
    replica.see(pod("late", 1024))
    before, text = await replica.scrape(), read_lines(await replica.text())
    replica.decide()
    after = await replica.scrape()
    name = "hami_gpu_memory_allocated_bytes"
    assert of(after, name) - of(before, name) == 1024 << 20
    name = "hami_vgpu_memory_allocated_bytes"
    assert of(after, name, pod="late", namespace="default") == 1024 << 20
    replica.engine.handle(events.Gone("Pod", "default/late"), replica.now)
    assert read_lines(await replica.text()) == text


async def test_pods_can_be_left_out() -> None:
    replica = Replica(hami=HamiMetrics.BOTH, hami_per_pod=False)
    see_cluster(replica)
    text = await replica.text()
    assert "hami_vgpu_" not in text
    assert "vGPUMemoryAllocated" not in text
    assert "hami_gpu_memory_limit_bytes{" in text


async def test_a_replica_that_stands_by_tells_only_its_build() -> None:
    replica = Replica(hami=HamiMetrics.BOTH, deciding=False)
    see_cluster(replica)
    assert [*map(is_build, dict(read_lines(await replica.text())))] == [True]


async def test_pods_of_a_card_that_is_gone_have_no_series() -> None:
    replica = Replica(hami=HamiMetrics.CURRENT)
    see_cluster(replica)
    (first, *_) = CLUSTER["nodes"]
    replica.see(make.hami_node(name=first["name"], cards=first["cards"][1:], cpu=64))
    text = await replica.text()
    assert "GPU-a0" not in text
    assert 'device_uuid="GPU-b0",namespace="team-b"' in text


@pytest.mark.parametrize("seed", range(3))
def test_what_pods_hold_adds_up_to_what_cards_have_allocated(seed: int) -> None:
    """However pods, nodes and cards come and go."""
    story, lines = Story(seed), HamiLines(MetricsConfig(hami=HamiMetrics.BOTH))
    n_held = 0
    for _ in range(40):
        story.happen()
        devices, holds = story.engine.ask(Devices()), story.engine.ask(Holds())
        told: dict[str, float] = {}
        for what, figure in read_lines(b"".join(lines.write_parts(devices, holds)).decode()):
            name = what.partition("{")[0]
            told[name] = told.get(name, 0) + figure
        for what in ("memory_allocated_bytes", "core_allocated_ratio"):
            assert told.get(f"hami_vgpu_{what}", 0) == told.get(f"hami_gpu_{what}", 0)
        n_held += len(holds.rows)
    assert n_held > 20


# The profile, the place and what the plugin has added; of the last one it has not said all yet.
MIG = [
    ("2g.10gb", 0, 2, {"migUUID": "MIG-runtime", "gpuInstanceID": 4, "computeInstanceID": 0}),
    ("1g.5gb", 6, 1, {"migUUID": 'MIG-"x', "gpuInstanceID": 9, "computeInstanceID": 0}),
    ("1g.5gb", 5, 1, {"migUUID": "MIG-half", "gpuInstanceID": 10}),
]


async def test_instances_of_mig_have_the_lines_that_hami_writes_once_they_are_made() -> None:
    """Neither one that the plugin has not made, nor one that the card cannot have, nor one of another card."""
    replica = Replica(per_node=False, per_card=False, hami=HamiMetrics.BOTH)
    card = mig.make_card("GPU-parent", 3)
    replica.see(make.hami_node(name="node-1", cards=[card], cpu=64))
    strange = ("3g.20gb", 1, 4, {"migUUID": "MIG-no", "gpuInstanceID": 1, "computeInstanceID": 0})
    for i, (profile, start, size, known) in enumerate([*MIG, strange]):
        notes = mig.tell_instance("GPU-parent", profile, (start, size), known)
        replica.see(make.pod(name=f"p{i}", node="node-1", gpu=1, gpumem=4000, annotations=notes))
    lines = [
        one for one in (await replica.text()).splitlines() if "mig" in one.lower() and one[0] != "#"
    ]
    assert lines == [
        'hami_node_gpu_mig_instance_info{compute_instance_id="0",device_index="3",device_uuid="GPU-parent",gpu_instance_id="9",mig_uuid="MIG-\\"x",node="node-1",placement_size="1",placement_start="6",profile="1g.5gb",zone="vGPU"} 1',
        'hami_node_gpu_mig_instance_info{compute_instance_id="0",device_index="3",device_uuid="GPU-parent",gpu_instance_id="4",mig_uuid="MIG-runtime",node="node-1",placement_size="2",placement_start="0",profile="2g.10gb",zone="vGPU"} 1',
        'nodeGPUMigInstance{deviceidx="3",deviceuuid="GPU-parent",migname="1g.5gb-9",nodeid="node-1",zone="vGPU"} 1',
        'nodeGPUMigInstance{deviceidx="3",deviceuuid="GPU-parent",migname="2g.10gb-4",nodeid="node-1",zone="vGPU"} 1',
    ]
    replica.engine.handle(events.Gone("Pod", "default/p0"), replica.now)
    assert "MIG-runtime" not in await replica.text()
