"""The same scores end to end: from objects through Cluster and Cycle to the node chosen."""

import random
from dataclasses import dataclass, replace

import pytest

from scheduler.api import names
from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from tests import make, slices
from tests.make import Json
from tests.model import clusters
from tests.oracles import allocation, requests
from tests.oracles import kube_scores as twin

KUBE_MODES = [
    Mode.LEAST_ALLOCATED,
    Mode.MOST_ALLOCATED,
    Mode.BALANCED_ALLOCATION,
    Mode.REQUESTED_TO_CAPACITY_RATIO,
]
CURVE = ((0, 10), (30, 2), (100, 9))
WEIGHTS = (3, 2, 5, 1, 1, 4)
MODE_WEIGHT = 5
WITHOUT_GPU_TIER = 1 << 60


RESOURCES = (names.CPU, names.MEMORY, names.GPU_CORES, names.GPU_MEMORY, names.IOPS, names.NETWORK)
KIT = clusters.Kit(
    families={"none": 67, "hami": 33},
    cpu=[f"{n}m" for n in range(900, 9000)],
    memory=[f"{n}Mi" for n in range(900, 9000)],
    counts=(1,),
    models=[clusters.Model(mib=16000)],
    odd=False,
    closed=0,
    taints=0,
    soft=0.6,
    measured=0.8,
)
POINTS = {"a": 0, "b": 7, "c": 30}


@dataclass
class Made:
    """Random objects, by name of the node, and one pod to place."""

    cycle: Cycle
    nodes: dict[str, Json]
    pods: dict[str, list[Json]]
    pod: Json

    def capacity(self, name: str) -> list[int]:
        body = self.nodes[name]
        there, card = body["status"]["allocatable"], allocation.cards_of(body)
        cards = {names.GPU_CORES: 100, names.GPU_MEMORY: 16000} if card else {}
        return [requests.amount(one, (there | cards).get(one, 0)) for one in RESOURCES]

    def used(self, name: str) -> list[int]:
        return [sum(asked(pod)[d] for pod in self.pods[name]) for d in range(6)]


def asked(pod: Json) -> list[int]:
    return [requests.total(pod, one) or 0 for one in RESOURCES]


def container(rng: random.Random, *, gpu: bool) -> Json:
    figures: Json = {"gpu": 1, "gpucores": rng.randrange(1, 50), "gpumem": rng.randrange(1, 4000)}
    return make.container(
        name=f"c{rng.randrange(10**9)}",
        cpu=f"{rng.randrange(900)}m" if rng.random() < 0.7 else None,
        memory=f"{rng.randrange(900)}Mi" if rng.random() < 0.7 else None,
        requests={names.IOPS: rng.randrange(1, 200)} if rng.random() < 0.4 else {},
        **(figures if gpu else {}),
    )


def made(seed: int, *, gpu: bool, config: Config) -> Made:
    """90 nodes, a third with a GPU, some without iops; pods on them, and one pod to place."""
    rng = random.Random(seed)
    nodes = {body["metadata"]["name"]: body for body in clusters.nodes(rng, 90, KIT)}
    cluster = make.cluster(nodes=clusters.wired(nodes.values()))
    pods: dict[str, list[Json]] = {name: [] for name in nodes}
    for name, there in pods.items():
        for p in range(rng.randrange(5)):
            on_gpu = bool(allocation.cards_of(nodes[name])) and rng.random() < 0.5
            one = container(rng, gpu=on_gpu)
            figures = one["resources"]["limits"]
            text = f"{name}-GPU-0,NVIDIA,{figures.get(names.GPU_MEMORY)},{figures.get(names.GPU_CORES)}:;"
            notes = {names.HAMI_NODE: name, names.HAMI_ALLOCATED: text} if on_gpu else None
            pod = make.pod(name=f"{name}-{p}", node=name, containers=[one], annotations=notes)
            cluster.see_pod(pod)
            there.append(make.raw(pod))
    containers = [container(rng, gpu=gpu), container(rng, gpu=False)]
    preferred = [(POINTS[zone], "zone", zone) for zone in "bc"]
    new = make.pod(name="new", containers=containers, preferred=preferred)
    cluster.see_pod(new)
    return Made(make.cycle(cluster=cluster, config=config), nodes, pods, make.raw(new))


def soft_taints(node: Json) -> int:
    return len(node.get("spec", {}).get("taints") or ())


def fits(found: Made, name: str, *, gpu: bool) -> bool:
    capacity = found.capacity(name)
    if gpu and not capacity[2]:
        return False
    figures = zip(capacity, found.used(name), asked(found.pod), strict=True)
    return all(wanted == 0 or used + wanted <= cap for cap, used, wanted in figures)


def points(found: Made, name: str, mode: Mode) -> int:
    used, pod, listed = found.used(name), asked(found.pod), []
    for d, cap in enumerate(found.capacity(name)):
        stand_in: tuple[int | None, int | None] = None, None
        if d < 2:
            there = sum(requests.nonzero(one, RESOURCES[d]) for one in found.pods[name])
            stand_in = there, requests.nonzero(found.pod, RESOURCES[d])
        listed.append(twin.Resource(cap, used[d], pod[d], WEIGHTS[d], *stand_in))
    if mode == Mode.LEAST_ALLOCATED:
        return twin.least_allocated(listed)
    if mode == Mode.MOST_ALLOCATED:
        return twin.most_allocated(listed)
    if mode == Mode.BALANCED_ALLOCATION:
        return twin.balanced_allocation(listed) or 0
    return twin.requested_to_capacity_ratio(listed, CURVE)


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("mode", KUBE_MODES)
@pytest.mark.parametrize("seed", slices.pick_part((1, 2, 3)))
def test_the_board_and_the_choice_are_kube_schedulers_sum_number_for_number(
    seed: int, mode: Mode, *, gpu: bool
) -> None:
    """The mode's term, taints 3 and node affinity 2 on every node; the best by name gets the pod."""
    placement = Placement(mode=mode, weights=WEIGHTS, curve=CURVE)
    found = made(
        seed, gpu=gpu, config=Config(placement=replace(placement, mode_weight=MODE_WEIGHT))
    )
    cluster = found.cycle._cluster
    pod = cluster.pods["default/new"]
    shape = found.cycle.get_shape(pod)
    assert shape is not None
    found.cycle.boards.refresh(shape)

    feasible = [name for name in sorted(found.nodes) if fits(found, name, gpu=gpu)]
    assert 5 < len(feasible) < 90
    taints = twin.default_normalize(
        [soft_taints(found.nodes[name]) for name in feasible], reverse=True
    )
    affinity = twin.default_normalize(
        [POINTS[found.nodes[name]["metadata"]["labels"]["zone"]] for name in feasible],
        reverse=False,
    )
    totals = {}
    for name, taint, preference in zip(feasible, taints, affinity, strict=True):
        row = cluster.nodes.find_row(name)
        term = 1000 * points(found, name, mode)
        assert shape.board.part[row] == MODE_WEIGHT * term
        assert shape.static is not None
        scores = {
            one.name: one.points
            for one in shape.static.list_points(shape.board, row, shape.weights)
        }
        given = {"TaintToleration": taint, "NodeAffinity": preference, "ImageLocality": 0}
        assert scores == given
        away_from_gpus = WITHOUT_GPU_TIER if not gpu and not found.capacity(name)[2] else 0
        totals[name] = away_from_gpus + MODE_WEIGHT * term + 3000 * taint + 2000 * preference
        assert shape.board.key[row] == totals[name]
    for name in found.nodes.keys() - totals.keys():
        assert shape.board.key[cluster.nodes.find_row(name)] == -1

    outcome = found.cycle.schedule([pod])
    assert [bind.node for bind in outcome.binds] == [max(totals, key=lambda name: totals[name])]
