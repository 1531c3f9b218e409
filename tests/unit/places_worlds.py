"""Clusters judged node by node, known to the scheduler and to the twin of places alike."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from scheduler.api import wire
from scheduler.cycle.schedule import Cycle
from scheduler.schema import columns as c
from scheduler.schema import places as schema
from scheduler.schema.places import Places
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from tests import make
from tests.oracles import places as twin
from tests.oracles import requests
from tests.oracles.places import CORES, CPU, MEMORY, MIB, PODS

IOPS = "example.com/iops"
TOLD = (CPU, MEMORY, PODS)
# milli-CPU, MiB, pods, iops.
SIZES = (
    (4000, 16 << 10, 110, 0), (8000, 32 << 10, 110, 500), (16_000, 32 << 10, 20, 0),
    (32_000, 256 << 10, 250, 2000), (3500, 7011, 8, 0),
)  # fmt: skip
Asked = dict[str, int]


@dataclass
class World:
    """A cluster and its twin.

    Attributes:
        nodes: by name, with what is in use.
        arrivals: what every pod asked that was ever seen, in order; in base units.
    """

    cluster: Cluster
    nodes: dict[str, twin.Node]
    arrivals: list[Asked] = field(default_factory=list)

    @classmethod
    def of(cls, bodies: Sequence[wire.Node]) -> "World":
        nodes = [twin.Node.of(make.raw(body)) for body in bodies]
        return cls(make.cluster(nodes=bodies), {node.name: node for node in nodes})

    def see(self, asks: Mapping[str, int], node: str = "", **more: Any) -> PodRecord:
        """A pod is seen, running when a node is told."""
        name = f"pod-{len(self.arrivals)}"
        said = {r: f"{n}m" if r == CPU else n for r, n in asks.items() if r != PODS}
        extended = {r: n for r, n in said.items() if "/" in r}
        body = make.pod(name=name, node=node, requests=said, limits=extended, **more)
        record = self.cluster.see_pod(body)
        assert record is not None
        pod = {CPU: 0, MEMORY: 0, PODS: 1} | {
            r: requests.amount(r, quantity) for r, quantity in said.items()
        }
        self.arrivals.append(pod)
        if node in self.nodes:
            self.nodes[node] = self.nodes[node].with_pod({PODS: 1, **asks})
        return record

    def resources(self) -> list[str]:
        """What is looked at: what all pods ask, and what any has asked that some node offers."""
        asked = {r for pod in self.arrivals for r, n in pod.items() if n}
        offered = {r for node in self.nodes.values() for r in node.there}
        return [*TOLD, *sorted((asked & offered) - {*TOLD})]

    def learnt(self) -> tuple[twin.Learnt, Sequence[twin.Shape]]:
        shapes, nodes = twin.counted(self.arrivals), list(self.nodes.values())
        believed = len(self.arrivals) >= twin.ENOUGH
        return twin.learnt(nodes, shapes, self.resources(), believed=believed), shapes


def cycle_of(cluster: Cluster) -> Cycle:
    """A cycle that has learnt."""
    cycle = make.cycle(cluster=cluster)
    cluster.nodes.refresh_ranks()
    cycle.learn()
    return cycle


def nodes(rng: random.Random) -> list[wire.Node]:
    """Nodes of a few sizes; now and then one that lacks something."""
    kinds = rng.sample(SIZES, rng.randrange(1, 4))
    made = []
    for i in range(rng.choice((2, 5, 14, 40))):
        cpu, mib, pods, iops = rng.choice(kinds)
        if rng.random() < 0.03:
            cpu = 0
        more: dict[str, Any] = {"allocatable": {IOPS: iops}} if iops else {}
        made.append(make.node(name=f"n{i:02}", cpu=f"{cpu}m", memory=f"{mib}Mi", pods=pods, **more))
    rng.shuffle(made)
    return made


def pod(rng: random.Random, *, again: bool) -> Asked:
    """What a pod asks; ``again``: of a size of which there are few."""
    if again:
        cpu, mib = rng.choice(
            ((0, 0), (500, 512), (1000, 4096), (2000, 1024), (0, 8192), (7000, 60_000))
        )
    else:
        cpu, mib = int(rng.expovariate(1 / 1500)), int(rng.expovariate(1 / 3000))
    asks = {CPU: cpu, MEMORY: mib << 20}
    if rng.random() < 0.2:
        asks[IOPS] = rng.choice((50, 125))
    if rng.random() < 0.02:
        asks["example.com/nowhere"] = 1
    return asks


def world(seed: int) -> tuple[World, random.Random]:
    """A cluster in use by pods that came after others; of some all sizes are new, of some pods leave."""
    rng = random.Random(seed)
    made = World.of(nodes(rng))
    again, leaves = rng.random() < 0.5, rng.random() < 0.4
    # More different shapes are binned, and the twin bins none.
    n = rng.choice((0, 3, 20, 70, 200)) if again else rng.choice((1, 8, 30, 62))
    for _ in range(n):
        asks = pod(rng, again=again)
        node = rng.choice(sorted(made.nodes))
        fits = made.nodes[node].holds(asks | {PODS: 1}) or rng.random() < 0.02
        if fits and rng.random() < 0.6:
            made.see(asks, node)
        else:
            gone = made.see(asks, "elsewhere" if leaves else "")
            made.cluster.drop_pod(gone.uid)
    return made, rng


def told(cluster: Cluster, places: Places) -> twin.Places:
    """The scheduler's tables in the twin's words."""
    by_row = {schema.OF_CORES: CORES, schema.OF_MIB: MIB}
    names = [
        by_row.get(row) or cluster.nodes.resources.values[row] for row in places.resources.tolist()
    ]
    per = [[Fraction(1 / one) if one else 0 for one in row] for row in places.per.tolist()]
    typical = [
        twin.Typical(
            {name: amounts[k] for name, amounts in zip(names, per, strict=True) if amounts[k]},
            Fraction(worth),
        )
        for k, worth in enumerate(places.worth.tolist())
    ]
    full, part, mix, rest, used, uneven, square, packed = places.weights[1:].tolist()
    return twin.Places(
        typical,
        by_name(names, places.price),
        by_name(names, places.level),
        {name: row.tolist() for name, row in zip(names, places.value, strict=True)},
        {r: 1 / one for r, one in by_name(names, places.cell).items() if one},
        twin.Weights(
            float(places.weights[schema.STEP]), full, part, mix, rest, used, uneven, square, packed
        ),
    )


def by_name(names: Sequence[str], values: c.Floats) -> dict[str, Fraction]:
    return dict(zip(names, map(Fraction, values.tolist()), strict=True))


def is_finite(places: Places) -> bool:
    return all(bool(np.isfinite(one).all()) for one in places.list_values())
