"""The same scores end to end: from objects through Cluster and Cycle to the node chosen."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from scheduler.api import names
from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from tests import make
from tests.oracles import kube_scores as twin
from tests.unit import compiled

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
MIB = 2**20


@dataclass
class Figures:
    """A node's or a pod's six figures; ``nonzero`` are cpu's and memory's with stand-ins."""

    plain: list[int] = field(default_factory=lambda: [0] * 6)
    nonzero: list[int] = field(default_factory=lambda: [0] * 2)

    def add(self, other: "Figures") -> None:
        self.plain = [a + b for a, b in zip(self.plain, other.plain, strict=True)]
        self.nonzero = [a + b for a, b in zip(self.nonzero, other.nonzero, strict=True)]


@dataclass
class Made:
    """Random objects, and by hand what they come to."""

    cycle: Cycle
    capacity: dict[str, list[int]]
    used: dict[str, Figures]
    pod: Figures
    taints: dict[str, int]
    affinity: dict[str, int]


def random_container(rng: np.random.Generator, *, gpu: bool) -> tuple[make.Json, Figures]:
    cpu = int(rng.integers(0, 900)) if rng.random() < 0.7 else None
    mem = int(rng.integers(0, 900)) * MIB if rng.random() < 0.7 else None
    iops = int(rng.integers(1, 200)) if rng.random() < 0.4 else 0
    card = [int(rng.integers(1, 50)), int(rng.integers(1, 4000))] if gpu else [0, 0]
    built = make.container(
        name=f"c{rng.integers(10**9)}",
        cpu=None if cpu is None else f"{cpu}m",
        memory=mem,
        gpu=1 if gpu else None,
        gpucores=card[0] if gpu else None,
        gpumem=card[1] if gpu else None,
        requests={names.IOPS: iops} if iops else {},
    )
    return built, Figures(
        [cpu or 0, mem or 0, *card, iops, 0],
        [twin.nonzero([cpu], 100), twin.nonzero([mem], 200 * MIB)],
    )


def made(seed: int, *, gpu: bool, config: Config) -> Made:
    """90 nodes, a third with a GPU, some without iops; pods on them, and one pod to place."""
    rng = np.random.default_rng(seed)
    cluster = make.cluster()
    result = Made(make.cycle(cluster=cluster, config=config), {}, {}, Figures(), {}, {})
    for i in rng.permutation(90).tolist():
        name = f"node-{i:02}"
        cpu, mem = int(rng.integers(900, 9000)), int(rng.integers(900, 9000)) * MIB
        iops = int(rng.integers(500, 2000)) if rng.random() < 0.8 else 0
        result.taints[name] = int(rng.integers(0, 4))
        zone = int(rng.integers(0, 3))
        result.affinity[name] = (0, 7, 30)[zone]
        figures: dict[str, Any] = {
            "name": name,
            "cpu": f"{cpu}m",
            "memory": mem,
            "allocatable": {names.IOPS: iops},
            "labels": {"zone": str(zone)},
            "taints": [(f"soft-{n}", "", "PreferNoSchedule") for n in range(result.taints[name])],
        }
        if i % 3 == 0:
            card = make.card(uuid=f"{name}-GPU", mib=16000)
            cluster.see_node(make.hami_node(cards=[card], **figures))
        else:
            cluster.see_node(make.node(**figures))
        result.capacity[name] = [cpu, mem, *([100, 16000] if i % 3 == 0 else [0, 0]), iops, 0]
        result.used[name] = Figures()
        for p in range(int(rng.integers(0, 5))):
            on_gpu = i % 3 == 0 and rng.random() < 0.5
            container, asked = random_container(rng, gpu=on_gpu)
            text = f"{name}-GPU,NVIDIA,{asked.plain[3]},{asked.plain[2]}:;"
            notes = {names.HAMI_NODE: name, names.HAMI_ALLOCATED: text} if on_gpu else None
            cluster.see_pod(
                make.pod(name=f"{name}-{p}", node=name, containers=[container], annotations=notes)
            )
            result.used[name].add(asked)
    containers = []
    for number in range(2):
        container, asked = random_container(rng, gpu=gpu and number == 0)
        containers.append(container)
        result.pod.add(asked)
    preferred = [(7, "zone", "1"), (30, "zone", "2")]
    cluster.see_pod(make.pod(name="new", containers=containers, preferred=preferred))
    return result


def fits(found: Made, name: str, *, gpu: bool) -> bool:
    if gpu and not found.capacity[name][2]:
        return False
    return all(
        asked == 0 or used + asked <= cap
        for cap, used, asked in zip(
            found.capacity[name], found.used[name].plain, found.pod.plain, strict=True
        )
    )


def points(found: Made, name: str, mode: Mode) -> int:
    used, pod = found.used[name], found.pod
    listed = [
        twin.Resource(
            cap, used.plain[d], pod.plain[d], WEIGHTS[d],
            used.nonzero[d] if d < 2 else None, pod.nonzero[d] if d < 2 else None,
        )
        for d, cap in enumerate(found.capacity[name])
    ]  # fmt: skip
    if mode == Mode.LEAST_ALLOCATED:
        return twin.least_allocated(listed)
    if mode == Mode.MOST_ALLOCATED:
        return twin.most_allocated(listed)
    if mode == Mode.BALANCED_ALLOCATION:
        return twin.balanced_allocation(listed) or 0
    return twin.requested_to_capacity_ratio(listed, CURVE)


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("mode", KUBE_MODES)
@pytest.mark.parametrize("seed", compiled.seeds(1, 2, 3))
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
    shape = found.cycle.shape_of(pod)
    assert shape is not None
    found.cycle.boards.refresh(shape)

    feasible = [name for name in sorted(found.capacity) if fits(found, name, gpu=gpu)]
    assert 5 < len(feasible) < 90
    taints = twin.default_normalize([found.taints[name] for name in feasible], reverse=True)
    affinity = twin.default_normalize([found.affinity[name] for name in feasible], reverse=False)
    totals = {}
    for name, taint, preference in zip(feasible, taints, affinity, strict=True):
        row = cluster.nodes.row_of(name)
        term = 1000 * points(found, name, mode)
        assert shape.board.part[row] == MODE_WEIGHT * term
        assert shape.static is not None
        scores = {one.name: one.points for one in shape.static.points(shape.board, row)}
        given = {"TaintToleration": taint, "NodeAffinity": preference, "ImageLocality": 0}
        assert scores == given
        away_from_gpus = WITHOUT_GPU_TIER if not gpu and not found.capacity[name][2] else 0
        totals[name] = away_from_gpus + MODE_WEIGHT * term + 3000 * taint + 2000 * preference
        assert shape.board.key[row] == totals[name]
    for name in found.capacity.keys() - totals.keys():
        assert shape.board.key[cluster.nodes.row_of(name)] == -1

    outcome = found.cycle.schedule([pod])
    assert [bind.node for bind in outcome.binds] == [max(totals, key=lambda name: totals[name])]
