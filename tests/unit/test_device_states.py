"""Nodes whose devices have one state are alike; a pod's claims are judged once for each state, with a board and without one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import wire
from scheduler.api.claims import objects
from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.embedded.agents import dra_devices
from scheduler.kernels import place
from scheduler.schema import devices as d
from scheduler.shapes import cold
from scheduler.shapes.boards import Boards, Shape
from scheduler.shapes.policies import PolicyBook
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from tests import make, slices
from tests.operator import devices

Json = dict[str, Any]
_POOLS = (
    dra_devices.make_gpus(4),
    dra_devices.make_mig_gpus(2),
    dra_devices.make_hami_gpus(3),
    dra_devices.make_nics(2),
)
_PLACEMENTS = (
    *(Placement(mode=mode) for mode in (Mode.KEEL, Mode.KUBE_SCHEDULER, Mode.LEAST_ALLOCATED)),
    Placement(node_policy="spread", gpu_policy="binpack"),
    Placement(gpu_policy="spread"),
)


@pytest.fixture(autouse=True)
def _no_kind_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a kind comes, it is decided as if for the first time."""
    monkeypatch.setattr(cold, "_LIKE", 1 << 30)


class World:
    """Nodes with devices of several drivers, and pods with claims that come and go."""

    def __init__(self, rng: random.Random, placement: Placement, n_nodes: int = -1) -> None:
        self.rng, self.n = rng, 0
        self.cluster = Cluster()
        self.cycle = Cycle(self.cluster, PolicyBook(Config(placement=placement)))
        for one in dra_devices.make_classes():
            self.cluster.claims.see_class(msgspec.convert(one, objects.DeviceClass))
        for i in range(rng.randrange(2, 14) if n_nodes < 0 else n_nodes):
            self.add_node(f"n{i}", *rng.sample(_POOLS, rng.choice([1, 1, 2])))

    def add_node(self, name: str, *pools: dra_devices.Pool) -> None:
        rng = self.rng
        cpu = rng.choice(["8", "8", "16"])
        self.cluster.see_node(make.node(name=name, cpu=cpu, memory="64Gi", pods=20))
        for pool in pools:
            called = f"{name}-{_POOLS.index(pool)}"
            of_pool: Json = {"name": called, "generation": 1}
            parts: list[Json] = [{"sharedCounters": list(pool.counters)}] if pool.counters else []
            parts += [{"devices": list(pool.devices)}]
            for k, part in enumerate(parts):
                about = of_pool | {"resourceSliceCount": len(parts)}
                spec = {"driver": pool.driver, "nodeName": name, "pool": about, **part}
                body = {"metadata": {"name": f"{called}-{k}"}, "spec": spec}
                self.cluster.claims.see_slice(msgspec.convert(body, objects.ResourceSlice))
        self.cluster.claims.flush()

    def add_pod(self) -> PodRecord:
        """A pod with a claim of its own, of which no other one is."""
        rng = self.rng
        self.n += 1
        name, uid = f"p{self.n}", f"uid-{self.n}"
        kind = rng.randrange(5)
        if kind == 0:
            share = {"memory": f"{rng.randrange(1, 60)}Gi", "cores": str(rng.randrange(1, 60))}
            asked = devices.request(of_class=dra_devices.HAMI, capacity={"requests": share})
        elif kind == 1:
            profile = rng.choice(dra_devices.PROFILES).name
            text = f"device.attributes['gpu.nvidia.com'].profile == '{profile}' && {self.n} > 0"
            selectors = [{"cel": {"expression": text}}]
            asked = devices.request(of_class=dra_devices.MIG_CLASS, selectors=selectors)
        else:
            of_class = rng.choice([one["metadata"]["name"] for one in dra_devices.make_classes()])
            asked = devices.request(of_class=of_class, count=rng.randrange(1, 4))
        more: Json = {}
        if kind == 2:
            root = "resource.kubernetes.io/pcieRoot"
            more["constraints"] = [{"requests": ["gpu"], "matchAttribute": root}]
        body = devices.claim(f"{name}-c", asked, **more)
        body["metadata"] |= {"namespace": "default", "uid": f"claim-{uid}"}
        body["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}]  # fmt: skip
        self.cluster.claims.see_claim(msgspec.convert(body, objects.ResourceClaim))
        pod = make.pod(name=name, namespace="default", cpu=f"{rng.randrange(1, 3)}")
        pod.metadata.uid = uid
        pod.spec.resource_claims = [wire.PodClaim("c", "", "t")]
        pod.status.resource_claim_statuses = [wire.PodClaimStatus("c", f"{name}-c")]
        seen = self.cluster.see_pod(pod)
        assert seen is not None
        return seen

    def make_shape(self, pod: PodRecord, *, row_by_row: bool) -> tuple[Boards, Shape]:
        """A board that knows nothing of what was found before. Row by row, no row can read what was found on another one."""
        self.cycle._begin()
        key = self.cycle._make_key(pod)
        assert key is not None
        boards = Boards(self.cluster, self.cycle.learner)
        shape = boards.get_shape(key)
        if not row_by_row:
            boards.refresh(shape)
            return boards, shape
        for row in boards.find_stale_rows(shape).tolist():
            boards._no_run.moved = np.array([row])
            place.place_run(boards.get_world(shape), shape.ask, shape.board, boards._no_run)
        return boards, shape

    def list_states(self) -> Iterator[tuple[int, Any]]:
        """By node the number of the state, and all that the state is about."""
        self.cycle.boards.states.refresh()
        columns = self.cluster.claims.table.columns
        for row in self.cluster.nodes.rows.values():
            yield int(columns.states[row]), describe_devices(columns, row)


def describe_devices(columns: d.Devices, row: int) -> Any:
    """The devices of a node, without what they are called; sets of counters by their place on the node."""
    found: list[Any] = []
    sets: dict[int, int] = {}
    first, n = columns.spans_of[:, row].tolist()
    for start, count in columns.spans[first : first + n].tolist():
        for device in range(start, start + count):
            reach, cell = int(columns.reach[device]), int(columns.cell[device])
            if reach >= 0 and not columns.reaches[reach, row]:
                continue
            kind = int(columns.kind[device])
            cells = columns.cells[:, cell : cell + int(columns.n_cells[kind])].tolist()
            draws = []
            for in_set, pattern in d.DRAWS:
                number = int(columns.draws[in_set, device])
                at, size, layout, _ = columns.sets[:, number].tolist() if number >= 0 else [0] * 4
                counters = columns.counters[:, at : at + size].tolist()
                place = sets.setdefault(number, len(sets)) if number >= 0 else -1
                draws.append((place, layout, int(columns.draws[pattern, device]), counters))
            values = [int(columns.values[at, device]) for at in columns.places.tolist() if at >= 0]
            used = int(columns.owners[device]), int(columns.sharers[device])
            found.append((kind, values, used, cells if cell >= 0 else None, draws))
    return bool(columns.unsure[row]), found


@pytest.mark.parametrize("placement", _PLACEMENTS, ids=lambda one: f"{one.mode}-{one.node_policy}")
@settings(max_examples=slices.count_examples(25), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_what_is_found_for_a_state_holds_on_all_nodes_that_have_it(
    placement: Placement, seed: int
) -> None:
    rng = random.Random(seed)
    world = World(rng, placement)
    world.cycle.learn()
    for _ in range(25):
        pod = world.add_pod()
        _, alone = world.make_shape(pod, row_by_row=True)
        _, together = world.make_shape(pod, row_by_row=False)
        rows = np.array(sorted(world.cluster.nodes.rows.values()))
        assert alone.board.part[rows].tolist() == together.board.part[rows].tolist()
        assert alone.board.refused[:, rows].tolist() == together.board.refused[:, rows].tolist()
        best = [row for row in rows.tolist() if together.board.key[row] >= 0]
        rank = world.cluster.nodes.columns.rank
        best.sort(key=lambda row: (-int(together.board.key[row]), int(rank[row])))
        n_boards = len(world.cycle.boards._shapes)
        binds = world.cycle.schedule([pod], explain=False).binds
        assert [one.node for one in binds] == [
            world.cluster.nodes.find_name(row) for row in best[:1]
        ]
        # Constraints tell devices apart, which states do not.
        if not together.ask.claims.constraints.size:
            assert len(world.cycle.boards._shapes) == n_boards
        states = list(world.list_states())
        for number, described in states:
            assert [other for at, other in states if at == number] == [described] * sum(
                at == number for at, _ in states
            )
            assert {at for at, other in states if other == described} == {number}
        if rng.random() < 0.3:
            gone = world.cluster.pods[rng.choice(sorted(world.cluster.pods))]
            world.cluster.drop_pod(gone.uid)
            world.cluster.claims.drop_claim((gone.namespace, f"{gone.name}-c"))
        if rng.random() < 0.1:
            world.add_node(f"late-{world.n}", rng.choice(_POOLS))
    checks.verify(world.cluster)


def test_nodes_with_like_devices_share_a_state_until_one_of_them_is_used() -> None:
    world = World(random.Random(1), Placement(), n_nodes=0)
    for i in range(3):
        world.add_node(f"same-{i}", _POOLS[1])
    numbers = [number for number, _ in world.list_states()]
    assert len(set(numbers)) == 1
    assert numbers[0] >= 0
    columns = world.cluster.claims.table.columns
    row = world.cluster.nodes.find_row("same-1")
    columns.owners[columns.spans[columns.spans_of[0, row], 0]] += 1
    world.cluster.moved.add(row)
    now = dict(zip(world.cluster.nodes.rows, world.list_states(), strict=True))
    assert now["same-0"][0] == now["same-2"][0] != now["same-1"][0]


def test_a_cluster_without_devices_has_no_states() -> None:
    cluster = Cluster()
    cycle = Cycle(cluster, PolicyBook(Config()))
    cluster.see_node(make.node(name="n"))
    cycle.boards.states.refresh()
    assert (cluster.claims.table.columns.states == -1).all()
    assert cluster.claims.table.columns.states.size == cluster.nodes.capacity
