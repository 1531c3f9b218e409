"""Two pods never hold what only one can have, whatever fails and whenever the scheduler restarts."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names
from scheduler.api.cards import CardUse
from scheduler.api.decisions import Bind
from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.cycle.schedule import is_waiting
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from scheduler.state.pods import Life
from tests import make
from tests.oracles import allocation
from tests.unit import api_model, random_clusters

PLACEMENTS = [
    Placement(),
    Placement(node_policy="spread", gpu_policy="spread"),
    Placement(gpu_policy="mutex,numa"),
    Placement(mode=Mode.LAMBDA_G),
]
GPU_KINDS: dict[str, dict[str, Any]] = {
    "exclusive": {"gpu": 1},
    "two-shared": {"gpu": 2, "gpumem": 4000},
    "thirds": {"gpu": 1, "gpumem_percent": 34, "gpucores": 34},
    "no-cores": {"gpu": 1, "gpumem": 700, "gpucores": 0},
    "two-containers": {
        "containers": [
            make.container(name="a", gpu=1, gpumem=5000, gpucores=40),
            make.container(name="b", gpu=1, gpumem=5000, gpucores=40),
        ]
    },
    "init-only": {
        "init_containers": [make.container(name="init", gpu=2, gpumem=9000)],
        "containers": [make.container(cpu="100m")],
    },
}


class World:
    """A server whose truth is judged after every step, and a scheduler that hears of it late."""

    def __init__(self, seed: int, placement: Placement) -> None:
        rng = random.Random(seed)
        self.config = Config(placement=placement)
        self.server = api_model.Server(Cluster())
        for i in range(rng.randrange(2, 5)):
            self.server.put_node(self._node(rng, f"node-{i}"))
        self.n_bound = 0
        # A seed may come twice, and a pod that is gone does not come back under its uid.
        self._numbers = itertools.count()
        self.scheduler_restarts(rng)

    # What may happen.

    def pods_come(self, rng: random.Random) -> None:
        kinds = [*random_clusters.PODS, *GPU_KINDS]
        kind = rng.choice(kinds)
        for _ in range(rng.randrange(1, 5)):
            if kind in GPU_KINDS:
                figures = GPU_KINDS[kind]
                body = api_model.raw(make.pod(name=f"{kind}-{next(self._numbers)}", **figures))
                self.server.put_pod(body)
            else:
                self.server.new_pod(kind)

    def pods_go(self, rng: random.Random) -> None:
        """Pods that run leave, or any."""
        bound = [uid for uid, b in self.server.pods.items() if b["spec"].get("nodeName")]
        uids = sorted(bound if bound and rng.random() < 0.7 else self.server.pods)
        for uid in rng.sample(uids, min(len(uids), rng.randrange(1, 9))):
            self.server.delete_pod(uid)

    def pod_finishes(self, rng: random.Random) -> None:
        if self.server.pods:
            self.server.finish_pod(rng.choice(sorted(self.server.pods)), seen=True)

    def init_containers_end(self, rng: random.Random) -> None:
        bound = [b for b in self.server.pods.values() if b["spec"].get("nodeName")]
        if bound:
            body = rng.choice(bound)
            body["status"]["conditions"] = [{"type": "Initialized", "status": "True"}]
            self.server.put_pod(body)

    def stranger_runs_where_it_fits(self, rng: random.Random) -> None:
        body = self.server.new_pod(
            rng.choice(["plain", "host-port", "iops"]), scheduler_name="other"
        )
        uid = body["metadata"]["uid"]
        self.server.bind(uid, f"node-{rng.randrange(4)}", ())
        # This pod stands for another scheduler that sees the same, so it may not race with ours.
        assumed = [
            sent | {"spec": sent["spec"] | {"nodeName": bind.node}}
            for bind in self.in_flight
            if (sent := self.server.pods.get(bind.uid)) and not sent["spec"].get("nodeName")
        ]
        if allocation.violations(
            list(self.server.nodes.values()), [*self.server.pods.values(), *assumed]
        ):
            self.server.delete_pod(uid)
        self.server.deliver("others")

    def streams_deliver(self, rng: random.Random) -> None:
        self.server.deliver(rng.choice([*api_model.STREAMS, "ours"]), rng.randrange(1, 30))

    def scheduler_decides(self, rng: random.Random) -> None:
        waiting = [pod for pod in self.cluster.pods.values() if is_waiting(pod)]
        if rng.random() < 0.3:
            rng.shuffle(waiting)  # else like pods follow each other
        self.in_flight += self.cycle.schedule(waiting[: rng.randrange(1, 24)]).binds

    def bind_succeeds(self, rng: random.Random) -> None:
        if bind := self._result(rng):
            done = self.server.bind(bind.uid, bind.node, bind.slots)
            self.n_bound += done
            if not done:
                self.cluster.forget(bind.uid)

    def bind_succeeds_and_its_answer_is_lost(self, rng: random.Random) -> None:
        if bind := self._result(rng):
            self.n_bound += self.server.bind(bind.uid, bind.node, bind.slots)

    def bind_fails(self, rng: random.Random) -> None:
        if bind := self._result(rng):
            self.cluster.forget(bind.uid)

    def old_failure_arrives(self, rng: random.Random) -> None:
        """For a pod that the watch has shown bound meanwhile."""
        known = sorted(self.cluster.pods)
        if known and self.cluster.pods[uid := rng.choice(known)].life == Life.BOUND:
            self.cluster.forget(uid)

    def scheduler_restarts(self, rng: random.Random) -> None:
        """Binds under way are lost with it; it knows only what the server shows."""
        for stream in self.server.late.values():
            stream.clear()
        self.cluster = self.server.cluster = Cluster()
        self.server.build(self.cluster, rng)
        self.cycle = make.cycle(cluster=self.cluster, config=self.config)
        self.in_flight: list[Bind] = []

    def node_leaves_and_returns(self, rng: random.Random) -> None:
        body = self.server.nodes[rng.choice(sorted(self.server.nodes))]
        self.server.delete_node(body["metadata"]["name"])
        self.server.put_node(body)

    # Support.

    def judge(self) -> None:
        nodes, pods = list(self.server.nodes.values()), list(self.server.pods.values())
        assert not allocation.violations(nodes, pods)
        for pod in pods:
            assert not _shortfall(pod)
        checks.verify(self.cluster)
        assert not checks.overcommitted(self.cluster)

    def _result(self, rng: random.Random) -> Bind | None:
        """A bind whose result comes now: not in the order they were sent."""
        return self.in_flight.pop(rng.randrange(len(self.in_flight))) if self.in_flight else None

    def _node(self, rng: random.Random, name: str) -> api_model.Json:
        cards = [
            make.card(
                uuid=f"{name}-GPU-{i}", index=i, sharers=rng.choice([1, 3, 10]),
                mib=rng.choice([8000, 15360]), cores=rng.choice([100, 100, 150]), numa=i // 2,
            )
            for i in range(rng.randrange(5))
        ]  # fmt: skip
        figures: dict[str, Any] = {"cpu": rng.choice(["4", "9"]), "pods": rng.choice([6, 110]), "name": name,
                   "allocatable": {names.IOPS: 100, names.NETWORK: 100}}  # fmt: skip
        if cards:
            return api_model.raw(make.hami_node(cards=cards, **figures))
        return api_model.raw(make.node(gpus=rng.randrange(3), **figures))


def _shortfall(pod: api_model.Json) -> list[str]:
    """Containers of a pod with cards that did not get as many, distinct, as they asked."""
    slots = allocation.slots_of(pod)
    containers = [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
    return [
        container["name"]
        for container, slot in zip(containers, slots, strict=False)
        if len({uuid for uuid, _, _ in slot})
        != container["resources"].get("limits", {}).get(names.GPU, 0)
        or not all(mib for _, mib, _ in slot)
    ]


HAPPENINGS: dict[str, Callable[[World, random.Random], None]] = {
    name: happen
    for name, happen in vars(World).items()
    if callable(happen) and not name.startswith("_") and name != "judge"
}
OFTEN = ["pods_come", "scheduler_decides", "bind_succeeds", "streams_deliver"]
steps = st.lists(
    st.tuples(st.sampled_from([*HAPPENINGS, *OFTEN * 3]), st.integers(0, 2**20)),
    min_size=20,
    max_size=80,
)


def play(world: World, happened: list[tuple[str, int]]) -> None:
    for name, seed in happened:
        HAPPENINGS[name](world, random.Random(seed))
        world.judge()


@given(st.integers(0, 2**20), st.sampled_from(PLACEMENTS), steps)
@settings(max_examples=200, deadline=None)
def test_no_card_nor_node_is_ever_given_away_twice(
    seed: int, placement: Placement, happened: list[tuple[str, int]]
) -> None:
    play(World(seed, placement), happened)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_long_crowded_life_with_restarts_gives_nothing_away_twice(placement: Placement) -> None:
    rng = random.Random(7)
    world = World(7, placement)
    happenings = [*HAPPENINGS, *OFTEN * 6, *["pods_go"] * 3]
    play(world, [(rng.choice(happenings), rng.randrange(2**20)) for _ in range(700)])
    assert world.n_bound > 60


def test_the_judge_sees_cards_ports_and_resources_given_away_twice() -> None:
    node = api_model.raw(make.hami_node(cards=1, cpu=1))
    server = api_model.Server(Cluster())
    for name in ("a", "b"):
        body = api_model.raw(make.pod(name=name, cpu="600m", host_ports=[80], gpu=1, gpumem=8000))
        server.put_pod(body)
        server.bind(f"default/{name}", "node", ((CardUse("node-GPU-0", 8000, 60),),))
    assert allocation.violations([node], list(server.pods.values())) == [
        "node: 1200 of cpu",
        "node: 16000 mib of node-GPU-0",
        "node: 120 cores of node-GPU-0",
        "node: port ('TCP', 80) held 2 times",
    ]
