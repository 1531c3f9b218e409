"""Pods of a running group that come again join the domain of their slice, or wait for room there."""

import json
import tracemalloc
from collections import defaultdict
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.door.decisions import Evict, Outcome
from scheduler.api.groups.objects import KueueTopology
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.telling import groups
from tests import make, slices

Notes = dict[str, str]
LEVELS = ("block", "rack", names.HOSTNAME)
# Name, block, rack, CPUs.
RACKS = [
    ("a1", "b0", "r0", 1),
    ("a2", "b0", "r1", 2),
    ("a3", "b0", "r1", 2),
    ("a4", "b0", "r2", 2),
    ("a5", "b0", "r2", 2),
    ("a6", "b0", "r2", 1),
]
WITHIN_BLOCK = {names.KUEUE_REQUIRED: "block"}


def cut(*layers: tuple[str, int]) -> Notes:
    written = [{"topology": level, "size": size} for level, size in layers]
    return {names.KUEUE_SLICES: json.dumps(written)}


BY_RACK = cut(("rack", 4))
BY_RACK_AND_HOST = cut(("rack", 4), (names.HOSTNAME, 2))


class Scene:
    """A group of Kueue's plain pods, one CPU each, and time; binds are made at once."""

    def __init__(self, nodes: Iterable[tuple[str, str, str, int]], n: int, notes: Notes) -> None:
        self.engine = Engine(Config())
        self.now = 1000.0
        self.notes = {names.KUEUE_TOTAL: str(n)} | notes
        self.pods: dict[str, wire.Pod] = {}
        self.racks: dict[str, str] = {}
        self.said = ""
        levels = [{"nodeLabel": label} for label in LEVELS]
        topology = {"metadata": {"name": "t"}, "spec": {"levels": levels}}
        self.see(msgspec.convert(topology, KueueTopology))
        for name, block, rack, cpu in nodes:
            self.racks[name] = rack
            self.see(make.node(name=name, cpu=cpu, labels={"block": block, "rack": rack}))

    def see(self, *found: Any) -> None:
        for one in found:
            self.engine.handle(events.Seen(one), self.now)

    def come(self, *ranks: int, node: str = "", ranked: bool = True, **more: Any) -> None:
        for rank in ranks:
            labels = {names.KUEUE_GROUP: "g"} | ({names.KUEUE_INDEX: str(rank)} if ranked else {})
            pod = make.pod(
                name=f"p{rank}", node=node, cpu=1, labels=labels, annotations=self.notes, **more
            )
            self.pods[pod.metadata.uid] = pod
            self.see(pod)

    def run(self, by_node: Mapping[str, Iterable[int]], *, ranked: bool = True) -> None:
        for node, ranks in by_node.items():
            self.come(*ranks, node=node, ranked=ranked)

    def fill(self, node: str, cpu: int, name: str = "") -> None:
        self.see(make.pod(name=name or f"fills-{node}", node=node, cpu=cpu))

    def gone(self, *named: str) -> None:
        for name in named:
            self.pods.pop(f"default/{name}", None)
            self.engine.handle(events.Gone("Pod", f"default/{name}"), self.now)

    def decide(self, after: float = 400.0) -> dict[int, str]:
        """Return where the pods of the group that were placed now went, by rank."""
        placed: dict[int, str] = {}
        outcome = self.work(after)
        for plan in outcome.plans:
            if plan.group is not None:
                self.said = groups.say_group(plan.group, plan.hold).message
        for bind in outcome.binds:
            pod = self.pods[bind.uid]
            pod.spec.node_name = bind.node
            self.engine.handle(events.BindDone(bind.uid), self.now)
            self.see(pod)
            placed[int(pod.metadata.name.removeprefix("p"))] = bind.node
        return dict(sorted(placed.items()))

    def work(self, after: float) -> Outcome:
        self.now += after
        return self.engine.decide(self.now, Unlimited())

    def evicts(self, after: float) -> list[Evict]:
        return self.work(after).evicts


def test_a_pod_goes_to_the_domain_of_its_slice_though_another_would_suit_it() -> None:
    scene = Scene(RACKS, 8, WITHIN_BLOCK | BY_RACK)
    scene.run({"a2": [0, 1], "a3": [2, 3], "a4": [4, 5], "a5": [6]})
    scene.fill("a6", 1)
    scene.come(7)
    assert scene.decide() == {7: "a5"}


def test_a_pod_whose_slice_has_no_room_in_its_domain_waits_and_is_told_where() -> None:
    scene = Scene(RACKS, 8, WITHIN_BLOCK | BY_RACK)
    scene.run({"a2": [0, 1], "a3": [2, 3], "a4": [4, 5], "a5": [6]})
    scene.fill("a5", 1)
    scene.fill("a6", 1)
    scene.come(7)
    assert scene.decide() == {}
    assert scene.said == (
        "PodGroup default/g: 0 of 1 pods fit in block b0; it runs 1 pod below its minimum. "
        "0/3 nodes are available: 3 Insufficient cpu. The others of its slice are in rack b0/r2. "
        "Insufficient cpu: requested 1, none is free on these nodes."
    )
    scene.gone("fills-a1")
    assert scene.decide() == {}
    scene.gone("fills-a6")
    assert scene.decide() == {7: "a6"}


def test_a_group_that_wants_to_start_anew_goes_whole_if_a_slice_has_no_room() -> None:
    scene = Scene(
        [*RACKS, ("c1", "b1", "r3", 8)], 8, WITHIN_BLOCK | BY_RACK | {names.ON_FAILURE: "restart"}
    )
    scene.run({"a2": [0, 1], "a3": [2, 3], "a4": [4, 5], "a5": [6]})
    scene.fill("a5", 1)
    scene.fill("a6", 1)
    assert not scene.evicts(1)
    scene.come(7)
    assert not scene.evicts(1)
    (evict,) = scene.evicts(70)
    assert evict.units == (tuple(f"default/p{rank}" for rank in range(7)),)


def test_room_is_made_in_the_domain_of_the_slice() -> None:
    scene = Scene(RACKS, 8, WITHIN_BLOCK | BY_RACK)
    for node, ranks in {"a2": (0, 1), "a3": (2, 3), "a4": (4, 5), "a5": (6,)}.items():
        scene.come(*ranks, node=node, priority=9)
    for node in ("a1", "a5", "a6"):
        scene.fill(node, 1)
    scene.come(7, priority=9)
    (evict,) = scene.evicts(1)
    assert evict.victims in {("default/fills-a5",), ("default/fills-a6",)}
    scene.gone(*(uid.removeprefix("default/") for uid in evict.victims))
    assert scene.decide() in ({7: "a5"}, {7: "a6"})


def test_a_slice_none_of_whose_pods_is_there_comes_whole_to_one_domain() -> None:
    nodes = [("a1", "b0", "r0", 1), *RACKS[1:], ("c1", "b1", "r3", 4)]
    scene = Scene(nodes, 8, WITHIN_BLOCK | BY_RACK)
    scene.run({"a2": [0, 1], "a3": [2, 3]})
    scene.come(4, 5, 6, 7)
    assert scene.decide() == {4: "a4", 5: "a4", 6: "a5", 7: "a6"}


def test_pods_on_a_node_that_is_gone_hold_no_slice_in_a_domain() -> None:
    """They are about to be deleted; until then the pods that come for them have others to join."""
    scene = Scene(RACKS, 8, WITHIN_BLOCK | BY_RACK)
    scene.run({"a2": [0, 1], "a3": [2, 3], "a4": [4, 5], "a5": [6]})
    scene.engine.handle(events.Gone("Node", "a5"), scene.now)
    scene.come(7)
    assert scene.decide() == {7: "a6"}


def test_of_a_slice_the_first_pod_goes_where_the_others_have_room_too() -> None:
    scene = Scene(RACKS, 8, WITHIN_BLOCK | BY_RACK)
    scene.run({"a2": [0, 1], "a3": [2, 3]})
    scene.come(4)
    assert scene.decide() == {4: "a4"}
    scene.come(5, 6, 7)
    assert {scene.racks[node] for node in scene.decide().values()} == {"r2"}
    assert all(pod.spec.node_name for pod in scene.pods.values())


def test_a_slice_for_which_no_domain_has_room_waits() -> None:
    nodes = [*RACKS[:5], ("c1", "b1", "r3", 4)]
    scene = Scene(nodes, 8, WITHIN_BLOCK | BY_RACK)
    scene.run({"a2": [0, 1], "a3": [2, 3]})
    scene.fill("a5", 1)
    scene.come(4, 5, 6, 7)
    assert scene.decide() == {}
    assert scene.said == (
        "PodGroup default/g: 0 of 4 pods fit in block b0, the closest of 2 domains; it runs 4 pods "
        "below its minimum. block b0 has no places for a slice of 4 that share a rack."
    )
    scene.gone("fills-a5")
    assert scene.decide() == {4: "a4", 5: "a4", 6: "a5", 7: "a5"}


def test_as_many_slices_come_again_as_have_room() -> None:
    scene = Scene(RACKS, 12, BY_RACK)
    scene.see(make.node(name="d1", cpu=4, labels={"block": "b1", "rack": "r4"}))
    scene.run({"d1": [0, 1, 2, 3]})
    scene.fill("a3", 1)
    scene.come(*range(4, 12))
    assert scene.decide() == {4: "a4", 5: "a4", 6: "a5", 7: "a6"}
    assert scene.said.endswith("The nodes have no places for a slice of 4 that share a rack.")
    scene.gone("fills-a3")
    assert scene.decide() == {8: "a2", 9: "a2", 10: "a3", 11: "a3"}


def test_a_slice_whose_pods_keep_apart_goes_where_there_are_nodes_enough() -> None:
    """Kueue counts what fits by resources alone, and would put all four on one node."""
    nodes = [("a1", "b0", "r0", 9), *((f"c{i}", "b0", "r1", 9) for i in range(4))]
    term = {
        "topologyKey": names.HOSTNAME,
        "labelSelector": {"matchLabels": {names.KUEUE_GROUP: "g"}},
    }
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    scene = Scene(nodes, 4, BY_RACK)
    scene.come(0, 1, 2, 3, spec={"affinity": apart})
    assert scene.decide() == {0: "c0", 1: "c1", 2: "c2", 3: "c3"}
    scene.gone("p2", "p3")
    scene.fill("c2", 9)
    scene.come(2, 3, spec={"affinity": apart})
    assert scene.decide() == {2: "c3"}


def test_each_of_several_layers_holds() -> None:
    nodes = [("a1", "b0", "r0", 3), ("a2", "b0", "r0", 1), ("a3", "b0", "r0", 2), ("a4", "b0", "r1", 9)]  # fmt: skip
    scene = Scene(nodes, 4, BY_RACK_AND_HOST)
    scene.run({"a1": [0]})
    scene.come(1, 2, 3)
    assert scene.decide() == {1: "a1", 2: "a3", 3: "a3"}


def test_an_inner_slice_without_room_in_the_domain_of_the_outer_one_waits() -> None:
    nodes = [("a1", "b0", "r0", 3), ("a2", "b0", "r0", 1), ("a4", "b0", "r1", 9)]
    scene = Scene(nodes, 4, BY_RACK_AND_HOST)
    scene.run({"a1": [0, 1]})
    scene.come(2, 3)
    assert scene.decide() == {}
    assert scene.said.endswith(
        "rack b0/r0 has no places for a slice of 2 that share a kubernetes.io/hostname."
    )


def test_pods_without_ranks_fill_the_slices_that_lack_pods() -> None:
    scene = Scene(RACKS, 8, WITHIN_BLOCK | BY_RACK)
    scene.run({"a2": [0, 1], "a3": [2], "a4": [4, 5]}, ranked=False)
    scene.come(3, 6, 7, ranked=False)
    placed = scene.decide()
    assert sorted(scene.racks[node] for node in placed.values()) == ["r1", "r2", "r2"]


@pytest.mark.parametrize("ranked", [True, False])
def test_a_tenant_may_write_any_size_of_a_slice(*, ranked: bool) -> None:
    """Each place of the slice would take 8 bytes in a list."""
    scene = Scene(RACKS, 3, cut(("rack", 10_000_000), (names.HOSTNAME, 1)))
    scene.run({"a2": [0]}, ranked=ranked)
    scene.come(1, ranked=ranked)
    tracemalloc.start()
    scene.decide()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


def test_a_rank_beyond_the_end_is_no_place_in_a_slice() -> None:
    """A Job that runs fewer pods at once than it needs in all makes such pods, one for each that has succeeded."""
    scene = Scene(RACKS, 4, BY_RACK)
    scene.run({"a4": [4, 5, 6]})
    scene.come(7)
    assert [scene.racks[node] for node in scene.decide().values()] == ["r2"]


def test_a_slice_whose_pods_run_in_two_domains_says_so() -> None:
    scene = Scene(RACKS, 4, BY_RACK)
    scene.run({"a2": [0], "a4": [1]})
    scene.come(2, 3)
    assert scene.decide() == {}
    assert scene.said.endswith(
        "The pods with which it must share a rack are not in one domain of it."
    )


@pytest.mark.parametrize("n", [3, 7])
def test_pods_that_are_no_whole_number_of_slices_say_so(n: int) -> None:
    """There is room for all of them, and more would not help."""
    scene = Scene([("c1", "b1", "r3", 99)], n, BY_RACK)
    scene.come(*range(n))
    assert scene.decide() == {}
    assert scene.said == (
        f"PodGroup default/g: 0 of the {n} pods that must be placed at once fit. "
        f"Its {n} pods cannot be cut in slices of 4: their number is no multiple of it."
    )


def test_pods_that_have_succeeded_leave_their_places_in_the_slices() -> None:
    """All others died as well: six pods are no whole slices, but the ranks say where they belong."""
    scene = Scene(RACKS, 8, WITHIN_BLOCK | BY_RACK)
    for rank in (0, 1):
        scene.come(rank)
        done = scene.pods[f"default/p{rank}"]
        done.status.phase = "Succeeded"
        scene.see(done)
    scene.come(*range(2, 8))
    placed = scene.decide()
    racks = {rank: scene.racks[node] for rank, node in placed.items()}
    assert racks == dict.fromkeys((2, 3), racks[2]) | dict.fromkeys((4, 5, 6, 7), racks[4])
    assert racks[2] != racks[4]


@pytest.mark.parametrize("ranked", [True, False])
def test_no_slice_is_ever_split(*, ranked: bool) -> None:
    n_tried = 0

    @settings(max_examples=slices.count_examples(300), deadline=None)
    @given(st.integers(0, 1 << 40))
    def check_world(seed: int) -> None:
        nonlocal n_tried
        rng = Random(seed)
        nodes = [(f"n{i}", f"b{i // 9}", f"r{i // 3}", rng.randint(1, 5)) for i in range(18)]
        layers = rng.choice([BY_RACK, BY_RACK_AND_HOST, cut(("rack", 2)), cut((names.HOSTNAME, 2))])
        scene = Scene(nodes, 8, rng.choice([{}, WITHIN_BLOCK]) | layers)
        scene.come(*range(8), ranked=ranked)
        if not scene.decide():
            return
        for _ in range(3):
            lost = rng.sample(range(8), rng.randint(1, 7))
            scene.gone(*(f"p{rank}" for rank in lost))
            fills = rng.sample([name for name, *_ in nodes], 6)
            for name in fills:
                if _find_free(scene, name):
                    scene.fill(name, 1)
            rng.shuffle(lost)
            while lost:
                some, lost = lost[:2], lost[2:]
                scene.come(*some, ranked=ranked)
                n_tried += len(scene.decide())
                check_slices(scene, ranked=ranked)
            scene.gone(*(f"fills-{name}" for name in fills))
            scene.decide()
            scene.decide()
            check_slices(scene, ranked=ranked)
            assert all(pod.spec.node_name for pod in scene.pods.values())

    check_world()
    assert n_tried > slices.scale_bound(1000)


def _find_free(scene: Scene, node: str) -> int:
    nodes = scene.engine._cluster.nodes
    row, cpu = nodes.find_row(node), nodes.resources.find("cpu")
    return int(nodes.columns.allocatable[cpu, row] - nodes.columns.requested[cpu, row]) // 1000


def check_slices(scene: Scene, *, ranked: bool) -> None:
    """With ranks each slice is in one domain; without, no more domains have pods than slices have, each whole if all are there."""
    layers = [(one["topology"], one["size"]) for one in json.loads(scene.notes[names.KUEUE_SLICES])]
    there = {
        int(pod.metadata.name.removeprefix("p")): pod.spec.node_name
        for pod in scene.pods.values()
        if pod.spec.node_name
    }
    for level, size in layers:
        by_slice: dict[int, set[str]] = defaultdict(set)
        in_domain: dict[str, int] = defaultdict(int)
        for rank, node in there.items():
            domain = scene.racks[node] if level == "rack" else node
            by_slice[rank // size].add(domain)
            in_domain[domain] += 1
        if ranked:
            assert all(len(domains) == 1 for domains in by_slice.values()), (level, there)
        n_slices = sum(-(-n // size) for n in in_domain.values())
        assert n_slices <= 8 // size, (level, there)


def test_a_group_in_slices_takes_one_rack_beside_the_free_ones() -> None:
    """There are more free nodes than pods, but one of five in each rack is of no use."""
    racks = [(f"n{i:02}", "b0", f"r{i // 5}", 1) for i in range(50)]
    scene = Scene(racks, 24, WITHIN_BLOCK | BY_RACK)
    for i in range(25):
        scene.fill(f"n{i:02}", 1)
    scene.come(*range(24), priority=100)
    assert [len(evict.victims) for evict in scene.evicts(0.0)] == [4]
