"""HAMi's ConfigMaps, taken up while pods wait and run: who reads what, and that no card is allocated twice."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
import yaml

from scheduler.api import names, steering, wire
from scheduler.api.door import events, notes
from scheduler.api.door.notes import DeviceMapRead
from scheduler.config import Config
from scheduler.devices import answers
from scheduler.engine import log, rerun
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.questions.nodes import CardDrivers, DriverNotices
from scheduler.engine.questions.pods import NamedPod
from scheduler.engine.recorded import Recorded
from scheduler.state import checks
from tests import make
from tests.unit import test_hami_config

DEVICES, PLUGIN = "kube-system/hami-scheduler-device", "kube-system/hami-device-plugin"
CONFIG = Config(hami_config_map=DEVICES, hami_plugin_config_map=PLUGIN)
NVIDIA = {
    "resourceCountName": "nvidia.com/gpu",
    "resourceMemoryName": "nvidia.com/gpumem",
    "resourceMemoryPercentageName": "nvidia.com/gpumem-percentage",
    "resourceCoreName": "nvidia.com/gpucores",
    "resourcePriorityName": "nvidia.com/priority",
    "memoryFactor": 1,
    "defaultGPUNum": 1,
}
OTHER = {
    "resourceCountName": "example.com/vgpu",
    "resourceMemoryName": "example.com/vgpumem",
    "resourceMemoryPercentageName": "example.com/vgpumem-percentage",
    "resourceCoreName": "example.com/vgpucores",
}


def make_map(key: str = DEVICES, **data: Any) -> steering.ConfigMap:
    namespace, _, name = key.partition("/")
    texts = {
        "device-config.yaml" if one == "devices" else "config.json": text
        for one, text in data.items()
    }
    return steering.ConfigMap(wire.Meta(name=name, namespace=namespace, uid=f"uid-{name}"), texts)


def of_nvidia(**changes: Any) -> steering.ConfigMap:
    return make_map(devices=yaml.safe_dump({"nvidia": {**NVIDIA, **changes}}))


class World:
    """An engine, and a plugin that says what binds say."""

    def __init__(self, config: Config = CONFIG) -> None:
        self.engine, self.now = Engine(config), 0.0
        self.pods: dict[str, wire.Pod] = {}

    def see(self, *found: Any) -> list[notes.Note]:
        self.now += 1
        for one in found:
            if isinstance(one, wire.Pod):
                self.pods[one.metadata.uid] = one
        return [note for one in found for note in self.engine.handle(events.Seen(one), self.now)]

    def configure(self, found: steering.ConfigMap) -> DeviceMapRead:
        (note,) = self.see(found)
        assert isinstance(note, DeviceMapRead)
        checks.verify(self.engine._cluster)
        return note

    def relist(self, *nodes: wire.Node) -> None:
        """What the operator does after a change: all is seen again."""
        self.see(*nodes, *self.pods.values())
        checks.verify(self.engine._cluster)

    def decide(self) -> dict[str, str]:
        """Decide, and bind; return the nodes of pods."""
        self.now += 60
        outcome = self.engine.decide(self.now, Unlimited())
        for bind in outcome.binds:
            pod = self.pods[bind.uid]
            written = answers.write_answers(
                self.engine.ask(CardDrivers()), bind.node, bind.devices, int(self.now)
            )
            meta = pod.metadata
            meta.annotations = {**(meta.annotations or {}), **written.annotations}
            pod.spec.node_name = bind.node
            self.engine.handle(events.BindDone(bind.uid), self.now)
            self.see(pod)
        checks.verify(self.engine._cluster)
        assert checks.list_overcommitted(self.engine._cluster) == []
        return {bind.uid.partition("/")[2]: bind.node for bind in outcome.binds}

    def used(self, node: str = "n") -> list[tuple[int, int, int]]:
        """Cores, MiB and sharers in use on each card of a node."""
        cluster = self.engine._cluster
        row = cluster.nodes.find_row(node)
        return [
            tuple(cluster.cards.columns.used[:, d].tolist())
            for d in cluster.registers.list_card_rows(row)
        ]


def ask(name: str, **resources: int) -> wire.Pod:
    """A pod whose container asks by resources, whose domains are given by the first part of their names."""
    pod = make.pod(name=name)
    asked: wire.Quantities = {
        f"{domain}.com/{what.replace('_', '-')}": n
        for (domain, _, what), n in ((key.partition("_"), n) for key, n in resources.items())
    }
    pod.spec.containers[0].resources = wire.Resources(requests=dict(asked), limits=dict(asked))
    return pod


def other_node(cards: int = 1) -> wire.Node:
    """A node whose plugin offers shares by the other name."""
    return make.hami_node(
        name="n", cards=cards, allocatable={"example.com/vgpu": 10 * cards, names.GPU: 0}
    )


def test_a_factor_and_defaults_hold_for_the_next_pods_and_those_that_run_keep_what_they_hold() -> (
    None
):
    world = World()
    world.see(make.hami_node(name="n", cards=1), ask("a", nvidia_gpu=1, nvidia_gpumem=3000))
    assert world.decide() == {"a": "n"}
    note = world.configure(of_nvidia(memoryFactor=1000, defaultMemory=5000, defaultCores=7))
    assert note.problem == ""
    assert note.taken is not None
    # What waited is read again.
    world.see(ask("b", nvidia_gpu=1, nvidia_gpumem=2), ask("c", nvidia_gpu=1, nvidia_gpumem=0))
    world.relist(make.hami_node(name="n", cards=1))
    assert world.decide() == {"b": "n", "c": "n"}
    assert world.used() == [(14, 3000 + 2000 + 5000, 3)]
    # And back: those that run keep what they hold, also when they are seen again.
    world.configure(of_nvidia())
    world.relist(make.hami_node(name="n", cards=1))
    assert world.used() == [(14, 10000, 3)]


def test_a_pod_that_waits_is_read_by_the_new_names() -> None:
    world = World()
    world.see(other_node(), ask("a", example_vgpu=1, example_vgpumem=1000))
    # Without the register of this resource it is one that no card has.
    assert world.decide() == {}
    world.configure(of_nvidia(**OTHER))
    world.relist(other_node())
    assert world.decide() == {"a": "n"}
    assert world.used() == [(0, 1000, 1)]
    placed = world.engine.ask(NamedPod(world.pods["default/a"].metadata.uid))
    assert [grant.driver for grant in placed.claim] == ["HAMi"]


@pytest.mark.parametrize("back", [False, True])
def test_no_card_is_allocated_twice_while_names_change(back: bool) -> None:
    """The pod of the old name goes on holding its card, whose pool has another name now."""
    world = World()
    world.see(make.hami_node(name="n", cards=2), ask("a", nvidia_gpu=1))
    assert world.decide() == {"a": "n"}
    held = world.used()
    assert sorted(held) == [(0, 0, 0), (100, make.T4_MIB, 1)]
    world.configure(of_nvidia(**OTHER))
    assert world.used() == held
    # The plugin has not started anew yet: the node still offers the old name, which stands for no card any more.
    world.see(ask("old", nvidia_gpu=1), *(ask(f"new{i}", example_vgpu=1) for i in range(3)))
    world.relist(make.hami_node(name="n", cards=2))
    assert world.used() == held
    assert world.decide() == {}
    world.relist(other_node(2))
    assert list(world.decide().values()) == ["n"]
    assert [used[2] for used in world.used()] == [1, 1]
    if back:
        world.configure(of_nvidia())
        world.relist(make.hami_node(name="n", cards=2))
        assert [used[2] for used in world.used()] == [1, 1]
        assert world.decide() == {}
    gone = world.pods.pop("default/a")
    world.engine.handle(events.Gone("Pod", gone.metadata.uid), world.now)
    assert sum(used[2] for used in world.used()) == 1
    assert len(world.decide()) == 1


def test_after_a_restart_pods_are_read_by_the_configuration_that_they_were_placed_by() -> None:
    world = World()
    world.see(make.hami_node(name="n", cards=1), ask("a", nvidia_gpu=1, nvidia_gpumem=3000))
    world.decide()
    again = World()
    again.configure(of_nvidia(**OTHER))
    again.see(other_node(), *world.pods.values())
    checks.verify(again.engine._cluster)
    assert again.used() == [(0, 3000, 1)]
    # A claim of a pod that asks nothing counts for nothing, whatever it says.
    forged = ask("forged")
    forged.metadata.annotations = dict(world.pods["default/a"].metadata.annotations or {})
    forged.spec.node_name = "n"
    again.see(forged)
    assert again.used() == [(0, 3000, 1)]


def test_a_section_that_is_gone_closes_its_cards_and_frees_nothing() -> None:
    world = World()
    world.see(make.hami_node(name="n", cards=2), ask("a", nvidia_gpu=1))
    world.decide()
    world.configure(make_map(devices="hygon: {resourceCountName: hygon.com/dcunum}"))
    world.see(ask("b", nvidia_gpu=1))
    world.relist(make.hami_node(name="n", cards=2))
    assert world.decide() == {}
    world.configure(of_nvidia())
    world.relist(make.hami_node(name="n", cards=2))
    assert sorted(used[2] for used in world.used()) == [0, 1]
    assert world.decide() == {"b": "n"}


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (make_map(devices="nvidia: {memoryFactor: -1}"), "data[device-config.yaml].nvidia.memoryFactor: -1 is not an integer within 0..2147483647"),
        (make_map(devices="nvidia: [}"), "data[device-config.yaml]"),
        (make_map(plugin="{}"), "data[device-config.yaml]: is missing"),
        (steering.ConfigMap(wire.Meta(name="hami-scheduler-device", namespace="kube-system"), [1]), "data: must be an object"),
        (steering.ConfigMap(wire.Meta(name="hami-scheduler-device", namespace="kube-system"), {"device-config.yaml": 5}), "data[device-config.yaml]: 5 is not a text"),
        (make_map(PLUGIN, plugin='{"nodeconfig":[{"name":"n","devicesplitcount":-4}]}'), "data[config.json].nodeconfig[0].devicesplitcount: -4 is not"),
        (make_map(devices=yaml.safe_dump({"iluvatars": [{"commonWord": f"w{i}"} for i in range(65)]})), "at most 64"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_and_changes_nothing(found: steering.ConfigMap, problem: str) -> None:
    world = World()
    at_start = world.configure(found)
    assert problem in at_start.problem
    assert at_start.taken is None
    world.see(make.hami_node(name="n", cards=1), ask("a", nvidia_gpu=1, nvidia_gpumem=3))
    world.decide()
    assert world.used() == [(0, 3, 1)]
    world.configure(of_nvidia(memoryFactor=1000))
    assert problem in world.configure(found).problem
    world.see(ask("b", nvidia_gpu=1, nvidia_gpumem=3))
    world.relist(make.hami_node(name="n", cards=1))
    world.decide()
    assert world.used() == [(0, 3003, 2)]


def test_what_is_as_before_is_not_taken_up_again_and_what_is_gone_stays() -> None:
    world = World()
    assert world.configure(of_nvidia(memoryFactor=2)).taken is not None
    assert world.configure(of_nvidia(memoryFactor=2)).taken is None
    key = "kube-system/hami-scheduler-device"
    assert world.engine.handle(events.Gone("ConfigMap", key), 9.0) == (notes.DeviceMapLeft(key),)
    assert world.engine._cluster.nodes.devices.is_configured
    # Others' ConfigMaps mean nothing.
    assert world.see(make_map("default/other", devices="nvidia: {}")) == []


def test_cards_that_the_plugin_leaves_out_on_a_node_get_no_pod() -> None:
    world = World()
    text = '{"nodeconfig":[{"name":"n","filterdevices":{"uuid":["n-GPU-0"],"index":[2]}}]}'
    world.configure(make_map(PLUGIN, plugin=text))
    world.see(make.hami_node(name="n", cards=3), *(ask(f"p{i}", nvidia_gpu=1) for i in range(3)))
    assert len(world.decide()) == 1
    assert [used[2] for used in world.used()] == [0, 1, 0]


def test_a_vendors_word_that_is_new_is_read_and_one_that_is_gone_stays_readable() -> None:
    """Words make the names of annotations, so a driver comes and goes with its word."""
    chip = {"commonWord": "NEW", "chipName": "x", "resourceCountName": "iluvatar.ai/NEW-vgpu"}
    register = "NEW-0,10,16384,100,x,0,true:"
    node = make.node(
        name="n",
        allocatable={"iluvatar.ai/NEW-vgpu": 10},
        annotations={"hami.io/node-NEW-register": register},
    )
    world = World()
    world.see(node)
    world.configure(make_map(devices=yaml.safe_dump({"iluvatars": [chip]})))
    pod = make.pod(name="a")
    asked: wire.Quantities = {"iluvatar.ai/NEW-vgpu": 1}
    pod.spec.containers[0].resources = wire.Resources(requests=dict(asked), limits=dict(asked))
    world.see(pod)
    world.relist(node)
    assert world.decide() == {"a": "n"}
    assert "hami.io/NEW-devices-allocated" in (pod.metadata.annotations or {})
    assert [used[2] for used in world.used()] == [1]
    world.configure(of_nvidia())
    assert world.used() == []
    world.configure(make_map(devices=yaml.safe_dump({"iluvatars": [chip]})))
    assert [used[2] for used in world.used()] == [1]


def test_the_log_no_longer_says_that_the_configuration_is_not_read() -> None:
    world = World()
    world.see(make.hami_node(name="n", cards=1))
    assert world.engine.ask(DriverNotices("n"))
    world.configure(of_nvidia(memoryFactor=2))
    assert world.engine.ask(DriverNotices("n")) == ()


def test_words_without_end_are_refused() -> None:
    """Each word is a driver for good, and every node has a reading of each."""
    world = World()
    said = ""
    for i in range(10):
        chips = [
            {"commonWord": f"w{i}-{k}"} | {"resourceCountName": f"a.com/w{i}-{k}"}
            for k in range(60)
        ]
        said = world.configure(make_map(devices=yaml.safe_dump({"iluvatars": chips}))).problem
    assert "start it anew" in said
    assert len(world.engine._cluster.nodes.devices.drivers) <= 256


def test_the_charts_own_text_changes_nothing() -> None:
    note = World().configure(make_map(devices=test_hami_config.CHART))
    assert (note.problem, note.taken) == ("", None)


def list_told(world: World) -> list[int]:
    """The MiB that the claims of the pods on nodes name, in all."""
    return [
        int(use.split(",")[2])
        for pod in world.pods.values()
        if pod.spec.node_name
        for use in re.split("[:;]", (pod.metadata.annotations or {})[names.HAMI_ALLOCATED])
        if use
    ]


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_edited_what_is_in_use_is_what_pods_were_given(seed: int) -> None:
    """Edits, arrivals, departures, lists and restarts in any order; each pod goes on holding what its claim says."""
    rng = random.Random(seed)
    world, domain, factor = World(), "nvidia", 1
    edits: list[steering.ConfigMap] = []
    for i in range(40):
        match rng.choice(["edit", "add", "add", "go", "list", "garble", "restart"]):
            case "edit":
                domain, factor = rng.choice(["nvidia", "example"]), rng.choice([1, 10, 1000])
                other = OTHER if domain == "example" else {}
                edits.append(of_nvidia(**other, memoryFactor=factor))
                world.configure(edits[-1])
            case "garble":
                assert world.configure(of_nvidia(memoryFactor="x")).problem
            case "add":
                what = "gpu" if domain == "nvidia" else "vgpu"
                mib = max(1, rng.choice([10, 1000, 3000]) // factor)
                asked = {f"{domain}_{what}": 1, f"{domain}_{what}mem": mib}
                world.see(ask(f"p{i}", **asked))
            case "go" if world.pods:
                uid = rng.choice([*world.pods])
                del world.pods[uid]
                world.engine.handle(events.Gone("Pod", uid), world.now)
            case "restart":
                # A restart is told the edits again only where an engine's log has them: see below.
                pods, world = world.pods, World()
                for edit in edits:
                    world.see(edit)
                world.pods = pods
        offers = {"example.com/vgpu": 20} if domain == "example" else {names.GPU: 20}
        node = make.hami_node(name="n", cards=2, allocatable={names.GPU: 0} | offers)
        world.relist(node)
        world.decide()
        assert sum(used[1] for used in world.used()) == sum(list_told(world)), i
        assert sum(used[2] for used in world.used()) == len(list_told(world)), i


def test_a_log_that_begins_anew_knows_what_pods_hold_by_earlier_configurations() -> None:
    world, lines = World(), list[bytes]()
    world.engine = recorded = Recorded(CONFIG, "test", lines.append)
    world.see(make.hami_node(name="n", cards=2), ask("a", nvidia_gpu=1, nvidia_gpumem=3))
    world.decide()
    world.configure(of_nvidia(memoryFactor=1000))
    world.see(ask("b", nvidia_gpu=1, nvidia_gpumem=3))
    world.relist(make.hami_node(name="n", cards=2))
    world.decide()
    world.configure(of_nvidia(**OTHER))
    world.relist(other_node(2))
    held = world.used()
    assert sum(used[1] for used in held) == 3003
    recorded.start_anew(world.now)
    checks.verify(recorded._cluster)
    assert sorted(world.used()) == sorted(held)
    start = max(i for i, line in enumerate(lines) if isinstance(log.decode(line), log.Head))
    assert start > 0
    assert rerun.rerun(lines).difference is None
    assert rerun.rerun(lines[start:]).difference is None
