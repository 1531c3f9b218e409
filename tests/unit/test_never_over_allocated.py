"""Two pods never hold what only one can have, whatever fails and whenever the scheduler restarts."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names
from scheduler.api.cards import CardUse
from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests import make, slices
from tests.model import clusters
from tests.model.life import Life, happenings
from tests.model.server import Json, Server
from tests.model.streams import Streams
from tests.oracles import allocation

PLACEMENTS = [
    Placement(),
    Placement(node_policy="spread", gpu_policy="spread"),
    Placement(gpu_policy="mutex,numa"),
    Placement(mode=Mode.LAMBDA_G),
]
KIT = clusters.Kit(
    cpu=("4", "9"),
    pods=(6, 110),
    counts=(1, 2, 3, 4),
    models=[
        clusters.Model(mib=mib, sharers=sharers, cores=cores)
        for mib in (8000, 15360)
        for sharers in (1, 3, 10)
        for cores in (100, 100, 150)
    ],
    mixed=1.0,
    odd=False,
    closed=0.0,
    taints=0.0,
    measured=1.0,
    beside=0.5,
    cut=0.2,
)


class Crowd(Life):
    """A crowded cluster; the server's truth is judged after every step.

    Attributes:
        bound_kinds: binds that the server took, by the kind of the pod.
    """

    def __init__(self, seed: int, placement: Placement) -> None:
        super().__init__(Config(placement=placement))
        self.bound_kinds: Counter[str] = Counter()
        rng = random.Random(seed)
        for i in range(rng.randrange(2, 5)):
            self.server.create("nodes", clusters.node(rng, f"node-{i}", KIT))
        self.scheduler_restarts(rng)

    def init_containers_end(self, rng: random.Random) -> None:
        if bound := self.pods(bound=True):
            pod = rng.choice(bound)
            ended = {"conditions": [{"type": "Initialized", "status": "True"}]}
            self.change(pod, status=pod["status"] | ended)

    def stranger_runs_where_it_fits(self, rng: random.Random) -> None:
        body = self.new_pod(rng.choice(["plain", "host-port", "iops"]), scheduler_name="other")
        self.streams.bind(body["metadata"]["uid"], f"node-{rng.randrange(4)}", ())
        # This pod stands for another scheduler that sees the same, so it may not race with ours.
        assumed = [
            sent | {"spec": sent["spec"] | {"nodeName": node}}
            for uid, (node, _) in self.in_flight.items()
            if (sent := self.server.pod_of(uid)) and not sent["spec"].get("nodeName")
        ]
        pods = self.server.of_kind("pods")
        if allocation.violations(self.server.of_kind("nodes"), pods + assumed):
            self.delete(body)
        self.streams.deliver("others")

    def node_leaves_and_returns(self, rng: random.Random) -> None:
        body = rng.choice(self.server.of_kind("nodes"))
        self.server.delete("nodes", "", body["metadata"]["name"])
        self.server.create("nodes", body)

    def send(self, uid: str) -> bool:
        done = super().send(uid)
        # A pod is named by its kind and a number.
        self.bound_kinds[uid.partition("/")[2].rpartition("-")[0]] += done
        return done

    def judge(self) -> None:
        pods = self.server.of_kind("pods")
        assert not allocation.violations(self.server.of_kind("nodes"), pods)
        cut = {
            uuid
            for node in self.server.of_kind("nodes")
            for uuid, card in allocation.cards_of(node).items()
            if card["mode"] == "mig"
        }
        for pod in pods:
            assert not _shortfall(pod, cut)
        checks.verify(self.cluster)
        assert not checks.list_overcommitted(self.cluster)


def _shortfall(pod: Json, cut: set[str]) -> list[str]:
    """Containers of a pod with cards that did not get as many as they asked, of those that are not in ``cut`` each card once."""
    slots = allocation.slots_of(pod)
    containers = [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
    return [
        container["name"]
        for container, slot in zip(containers, slots, strict=False)
        if len({uuid for uuid, _, _ in slot} - cut) + sum(uuid in cut for uuid, _, _ in slot)
        != container["resources"].get("limits", {}).get(names.GPU, 0)
        or not all(mib for _, mib, _ in slot)
    ]


OFTEN = ["pods_come", "scheduler_decides", "bind_is_answered", "something_is_delivered"]
HAPPENINGS = happenings(Crowd)
steps = st.lists(
    st.tuples(st.sampled_from([*HAPPENINGS, *OFTEN * 3]), st.integers(0, 2**20)),
    min_size=20,
    max_size=80,
)


def play(world: Crowd, happened: list[tuple[str, int]]) -> None:
    for name, seed in happened:
        world.happen(name, seed)
        world.judge()


@given(st.integers(0, 2**20), st.sampled_from(PLACEMENTS), steps)
@settings(max_examples=slices.count_examples(200), deadline=None)
def test_no_card_nor_node_is_ever_given_away_twice(
    seed: int, placement: Placement, happened: list[tuple[str, int]]
) -> None:
    play(Crowd(seed, placement), happened)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_long_crowded_life_with_restarts_gives_nothing_away_twice(placement: Placement) -> None:
    rng = random.Random(7)
    world = Crowd(7, placement)
    happenings = [*HAPPENINGS, *OFTEN * 6, *["pods_go"] * 3]
    play(world, [(rng.choice(happenings), rng.randrange(2**20)) for _ in range(700)])
    assert world.n_bound > 60
    # Both families of devices, alone and in one pod.
    assert min(world.bound_kinds[kind] for kind in ("whole-gpu", "amd", "both")) > 1


def test_the_judge_sees_cards_ports_and_resources_given_away_twice() -> None:
    node = make.raw(make.hami_node(cards=1, cpu=1))
    server = Server()
    streams = Streams(server, Cluster())
    for name in ("a", "b"):
        body = make.raw(make.pod(name=name, cpu="600m", host_ports=[80], gpu=1, gpumem=8000))
        server.create("pods", body)
        streams.bind(f"default/{name}", "node", ((CardUse("node-GPU-0", 8000, 60),),))
    assert allocation.violations([node], server.of_kind("pods")) == [
        "node: 1200 of cpu",
        "node: 16000 mib of node-GPU-0",
        "node: 120 cores of node-GPU-0",
        "node: port ('TCP', 80) held 2 times",
    ]
