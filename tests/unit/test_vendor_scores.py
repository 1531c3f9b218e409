"""What vendors add to HAMi's score of a node: the cases that were compared with HAMi's functions, and the slow twin."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.cycle.schedule import Cycle
from scheduler.devices.vendors.vendor import Vendor as Kind
from scheduler.kernels.devices import choose, gpus
from scheduler.schema import columns as c
from scheduler.shapes.boards import Shape
from scheduler.state import checks
from tests import make, slices
from tests.model import vendor_cases as cases
from tests.model import vendor_fits as fits
from tests.oracles import vendor_scores as twin
from tests.unit.test_vendors import list_cases

POLICIES = ("binpack", "spread")
LOSSES, SCORES = "metax-tech.com/gpu.topology.losses", "metax-tech.com/gpu.topology.scores"
KUNLUN, METAX, SHARES = "kunlunxin.com/xpu", "metax-tech.com/gpu", "metax-tech.com/sgpu"
ASCEND, VASTAI = "huawei.com/Ascend910A", "vastaitech.com/va"
RESOURCES = (KUNLUN, METAX, SHARES, ASCEND, VASTAI)
BY_LINKS = {"metax-tech.com/sgpu-topology-aware": "true"}

# The devices of another vendor are a pool of their own here.
SCORED = [
    one for one in list_cases("scores") if not any(device.type for device in one.values[1].devices)
]


@pytest.mark.parametrize(("kind", "case"), SCORED)
def test_what_is_added_is_what_hami_adds(kind: Kind, case: cases.Score) -> None:
    is_neutral = kind.word == "Metax-SGPU"
    wanted = twin.weigh_neutral(case.score, case.policy) if is_neutral else case.score
    assert fits.score(kind, case) == wanted


def make_node(rng: random.Random, resource: str, name: str) -> wire.Node:
    """A node with some devices of one family, differently linked."""
    n = 8 if resource == KUNLUN else rng.randint(2, 8)
    notes: dict[str, str] = {}
    told = [
        {"id": f"{name}-{i}", "index": i, "count": 4, "devmem": 65536, "devcore": 100, "type": "A", "health": True}
        for i in range(n)
    ]  # fmt: skip
    if resource == METAX:
        for key in (LOSSES, SCORES):
            if rng.random() < 0.8:
                kinds = {str(i): rng.choice([0, 5, 20, 300, 2500, 9000]) for i in range(1, 5)}
                notes[key] = json.dumps(kinds) if rng.random() < 0.8 else "{"
    elif resource == SHARES:
        cards = [
            {"uuid": f"{name}-{i}", "totalDevCount": 4, "totalCompute": 100, "totalVRam": 65536,
             "healthy": True, "linkZone": rng.randrange(3)}
            for i in range(n)
        ]  # fmt: skip
        notes["metax-tech.com/node-gpu-devices"] = json.dumps(cards)
    elif resource == VASTAI:
        for i, one in enumerate(told):
            one["custominfo"] = {
                "DeviceStrategy": "die",
                "AIC": f"card-{i * rng.randint(1, 2) // 3}",
            }
        notes["hami.io/node-va-register"] = json.dumps(told)
    elif resource == ASCEND:
        for one in told:
            one["custominfo"] = {"NetworkID": rng.randrange(3)}
        notes["hami.io/node-register-Ascend910A"] = json.dumps(told)
    return make.node(
        name=name,
        cpu=640,
        allocatable={resource: 4 * n if notes and resource != METAX else n},
        annotations=notes,
    )


def make_pod(rng: random.Random, resource: str, name: str, policy: str) -> wire.Pod:
    notes = {names.HAMI_NODE_POLICY: policy} | (BY_LINKS if rng.random() < 0.7 else {})
    wanted = [rng.choice([1, 1, 2, 4]) for _ in range(rng.choice([1, 1, 2]))]
    containers = [
        make.container(name=f"c{i}", requests={resource: n}) for i, n in enumerate(wanted)
    ]
    return make.pod(name=name, containers=containers, annotations=notes)


def add_by_twin(
    shape: Shape,
    resource: str,
    node: wire.Node,
    policy: str,
    there: list[twin.Device],
    picks: twin.Picks,
) -> float:
    if resource == KUNLUN:
        return twin.score_islands(there, picks)
    if resource == METAX:
        return twin.score_numbers(node.metadata.annotations or {}, policy, picks)
    if resource in (VASTAI, ASCEND):
        return float(twin.score_groups(picks, 10 if resource == ASCEND else 1))
    found = twin.score_zones(there, picks) if shape.ask.prefers.mode.scorer else 0
    return twin.weigh_neutral(found, policy)


def score_by_twin(
    cycle: Cycle, shape: Shape, row: int, resource: str, node: wire.Node, policy: str
) -> float:
    """HAMi's score of a node with the devices that the pod would get there."""
    cluster, world = cycle._cluster, cycle.boards.get_world(shape)
    cards, s = cluster.cards.columns, world.scratch
    n = choose.choose_devices(world.tables.nodes, cards, shape.ask, row, s)
    assert n > 0
    devices = {
        d: twin.Device(
            cluster.cards.find_uuid(d),
            int(cards.position[d]),
            str(cards.group[d]) if cards.group[d] >= 0 else "",
            int(cards.used[c.SLOTS, d]),
        )
        for d in cluster.registers.list_card_rows(row)
    }
    slots = s.pick_slot[:n].tolist()
    picks = [
        [
            twin.Pick(devices[int(s.picks[p])], int(s.pick_cores[p]))
            for p in range(n)
            if slots[p] == slot
        ]
        for slot in dict.fromkeys(slots)
    ]
    own = float(
        gpus.score_node(world.tables.nodes, cluster.registers.find_pool(shape.ask.family, row))
    )
    there = list(devices.values())
    return own + add_by_twin(shape, resource, node, policy, there, picks)


@settings(max_examples=slices.count_examples(120), deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(RESOURCES))
def test_the_node_is_the_one_that_hami_scores_best(seed: int, resource: str) -> None:
    rng = random.Random(seed)
    nodes = {f"n{i}": make_node(rng, resource, f"n{i}") for i in range(rng.randint(2, 5))}
    cluster = make.cluster(nodes=list(nodes.values()))
    cycle = make.cycle(cluster=cluster)
    for i in range(8):
        policy = rng.choice(POLICIES)
        record = cluster.see_pod(make_pod(rng, resource, f"p{i}", policy))
        shape = cycle.get_shape(record) if record else None
        assert record is not None
        assert shape is not None
        cycle.boards.refresh(shape)
        rows = {name: row for name, row in cluster.nodes.rows.items() if shape.board.key[row] >= 0}
        scores = {
            name: score_by_twin(cycle, shape, row, resource, nodes[name], policy)
            for name, row in rows.items()
        }
        outcome = cycle.schedule([record])
        checks.verify(cluster)
        if not scores:
            assert not outcome.binds
            continue
        best = (max if policy == "binpack" else min)(scores.values())
        # Beside scores of millions HAMi drops the use of cards; here it counts, but for the last bits.
        best_names = [name for name, one in scores.items() if abs(one - best) < 1e-3]
        assert outcome.binds[0].node in best_names, scores


def test_a_node_with_cards_of_another_vendor_gets_nothing_for_islands() -> None:
    """HAMi scores no such node: the other one, where a broken island is mended, gains 3000."""
    plain = make.node(name="b", cpu=64, allocatable={KUNLUN: 8})
    mixed = make.hami_node(name="a", cards=1, allocatable={KUNLUN: 8})
    cluster = make.cluster(nodes=[mixed, plain])
    notes = {names.HAMI_NODE_POLICY: "binpack"}
    pods = [make.pod(name="p", requests={KUNLUN: 4}, annotations=notes)]
    (bind,) = (
        make.cycle(cluster=cluster)
        .schedule([r for pod in pods if (r := cluster.see_pod(pod))])
        .binds
    )
    assert bind.node == "b"


def test_without_a_node_policy_nothing_is_added() -> None:
    told = {LOSSES: json.dumps({"1": 0}), SCORES: json.dumps({"1": 0})}
    cluster = make.cluster(
        nodes=[
            make.node(name="a", allocatable={METAX: 2}),
            make.node(name="b", allocatable={METAX: 2}, annotations=told),
        ]
    )
    record = cluster.see_pod(make.pod(name="p", requests={METAX: 1}))
    assert record is not None
    assert make.cycle(cluster=cluster).schedule([record]).binds[0].node == "a"
