"""Random clusters known to the scheduler and to the twins alike: the same seed, the same world."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, Self

import msgspec

from scheduler.api import names, wire
from scheduler.api.placement import Placement
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from tests import make
from tests.model import clusters, workloads
from tests.model.clusters import Json, Kit
from tests.oracles import demand, fleet, fragments, hami, keel, published

MODES = ("keel", "fgd", "best-fit", "first-fit", "dot-product", "gpu-packing", "gpu-clustering")


@dataclass
class World:
    """A cluster and its twin.

    Attributes:
        nodes: by name, with what is in use.
        arrivals: every pod that was ever seen, in order.
        happened: "came" and "left" of pods that ask GPUs, in order.
    """

    cluster: Cluster
    nodes: dict[str, fleet.Node]
    arrivals: list[fleet.Pod] = field(default_factory=list)
    happened: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, bodies: Iterable[Json]) -> Self:
        """A cluster of these nodes, raw objects."""
        nodes = list(bodies)
        cluster = make.cluster(nodes=clusters.wired(nodes))
        return cls(cluster, {one.name: one for one in map(fleet.Node.of, nodes)})

    def see(
        self, pod: fleet.Pod, mode: str = "", node: str = "", charge: fleet.Charge | None = None
    ) -> str:
        """A pod is seen, running when a node is told; its uid."""
        meta, spec = pod.raw["metadata"], pod.raw["spec"]
        name = f"{pod.name}-{len(self.arrivals)}"
        notes = (meta.get("annotations") or {}) | ({names.MODE: mode} if mode else {})
        if charge:
            said = claim(self.nodes[node], pod, charge)
            notes |= {names.HAMI_NODE: node, names.HAMI_ALLOCATED: said}
        body = pod.raw | {
            "metadata": meta | {"name": name, "uid": name, "annotations": notes},
            "spec": spec | {"nodeName": node},
        }
        record = self.cluster.see_pod(msgspec.convert(body, wire.Pod))
        assert record is not None
        self.arrivals.append(pod)
        if pod.gpu:
            self.happened.append("came")
        if node in self.nodes:
            self.nodes[node] = fleet.placed(self.nodes[node], pod, charge or {})
        return record.uid

    def gone(self, uid: str, pod: fleet.Pod) -> None:
        if self.cluster.pods[uid].node and pod.gpu:
            self.happened.append("left")
        self.cluster.drop_pod(uid)


def claim(node: fleet.Node, pod: fleet.Pod, charge: fleet.Charge) -> str:
    """What HAMi would write of a pod that is charged so: which container has which card."""
    assert pod.gpu
    cards = {card.uuid: card for card in node.cards}
    taken = [uuid for uuid, (slots, *_) in charge.items() for _ in range(slots)]
    for order in permutations(taken):
        left = iter(order)
        slots = [[next(left) for _ in range(one.nums)] for one in pod.gpu.containers]
        sums: fleet.Charge = {}
        text = ""
        for one, uuids in zip(pod.gpu.containers, slots, strict=True):
            for uuid in uuids:
                mib, before = hami.memory_asked(cards[uuid], one), sums.get(uuid, (0, 0, 0))
                sums[uuid] = (before[0] + 1, before[1] + mib, before[2] + one.cores)
                text += f"{uuid},NVIDIA,{mib},{one.cores}:"
            text += ";"
        if sums == charge:
            return text
    raise AssertionError(f"{pod} is never charged {charge}")


def drawn(rng: random.Random, kit: Kit, name: str = "pod") -> fleet.Pod:
    return fleet.Pod.of(workloads.drawn(rng, kit, name))


def world(
    rng: random.Random, kit: Kit, n: int, *, load: int = 0, past: int = 0, churn: bool = False
) -> World:
    """A cluster of n nodes with up to `load` pods running, after `past` pods that are gone again."""
    made = World.of(clusters.nodes(rng, n, kit))
    kinds = [drawn(rng, kit, f"past-{i}") for i in range(25)]
    for _ in range(past):
        # The first are the most frequent.
        one = kinds[int(rng.randrange(len(kinds)) * rng.random())]
        made.gone(made.see(one, node="elsewhere" if churn else ""), one)
    for i in range(load):
        one = drawn(rng, kit, f"running-{i}")
        name = rng.choice(sorted(made.nodes))
        if options := fleet.choices(made.nodes[name], one, each=True):
            made.see(one, node=name, charge=rng.choice(options))
    return made


def cycle_of(made: World, *, weight: int = 5) -> Cycle:
    """A cycle that has learnt."""
    cycle = make.cycle(cluster=made.cluster, config=Config(placement=Placement(mode_weight=weight)))
    made.cluster.nodes.refresh_ranks()
    cycle.learn()
    return cycle


def parts(made: World, pod: fleet.Pod, mode: str) -> dict[str, int]:
    """What the scheduler, having learnt, scores every node for a pod: points by their weight.

    Without keel's second objective, which is less than one of a milli-point.
    """
    cycle = cycle_of(made)
    shape = cycle.get_shape(made.cluster.pods[made.see(pod, mode)])
    assert shape is not None
    cycle.boards.refresh(shape)
    points = shape.board.part // shape.ask.prefers.mode.unit
    return {name: int(points[row]) for name, row in made.cluster.nodes.rows.items()}


def counts(made: World) -> tuple[dict[demand.Shape, float], bool]:
    """The demand to plan by, and whether it was seen, not assumed."""
    if sum(pod.gpu is not None for pod in made.arrivals) < demand.ENOUGH:
        return demand.assumed(list(made.nodes.values())), False
    return demand.counted(made.arrivals), True


def tables(made: World, learnt: c.Demand) -> keel.Tables:
    """The twin's tables; only what an optimum leaves open is taken from the scheduler's."""
    nodes = list(made.nodes.values())
    known, seen = counts(made)
    known, card = demand.possible(known, nodes), demand.mean_card(nodes)
    weights = demand.weights(known, nodes, card, seen=seen)
    return keel.Tables(
        price=demand.prices(known, nodes, float(learnt.rates[c.RATE_DEPARTURES])) if seen else {},
        value=values(made.cluster, learnt),
        kappa=demand.kappa(known, card),
        kappa_memory=demand.kappa(known, card, "memory"),
        typical=demand.keel_typical(known, card),
        departures=float(learnt.rates[c.RATE_DEPARTURES]),
        short=weights.short,
        left=weights.left,
        left_cpu=weights.left_cpu,
    )


def values(cluster: Cluster, learnt: c.Demand) -> dict[fleet.Kind, list[float]]:
    """The scheduler's values by kind of card."""
    return {kind: learnt.value[q].tolist() for q, kind in enumerate(cluster.cards.kinds.values)}


def wrong(
    cluster: Cluster,
    learnt: c.Demand,
    known: Mapping[demand.Shape, float],
    nodes: Sequence[fleet.Node],
    *,
    seen: bool,
) -> list[str]:
    """What differs between the scheduler's tables and the twin's; empty: nothing."""
    found, card = [], demand.mean_card(nodes)
    everything = known
    known = demand.possible(known, nodes)
    used = float(learnt.rates[c.RATE_DEPARTURES])
    price = demand.prices(known, nodes, used) if seen else {}
    for node in nodes:
        told = float(learnt.price[cluster.nodes.find_row(node.name)])
        if node.has_gpu and abs(told - price.get(node.name, 1.0)) > 1e-9:
            found.append(f"price of {node.name}: {told}, not {price.get(node.name, 1.0)}")
    kappa, rate = demand.kappa(known, card), float(learnt.rates[c.RATE_CPU])
    if (kappa > 0) != (rate > 0) or (kappa and abs(rate * 0.85 * kappa / 1000 - 1) > 1e-9):
        found.append(f"milli-GPU per milli-CPU: {rate} where kappa is {kappa}")
    memory = demand.kappa(known, card, "memory")
    served = dict(zip(learnt.serving.tolist(), learnt.served.tolist(), strict=True))
    if served.keys() != ({c.MEMORY} if memory else set()) or any(
        abs(rate * 0.85 * memory / 1000 - 1) > 1e-9 for rate in served.values()
    ):
        found.append(f"milli-GPU per byte: {served} where kappa is {memory}")
    for kind, value in values(cluster, learnt).items():
        found += [
            f"{kind}: {text}" for text in demand.holds(value, demand.share_sizes(known, kind))
        ]
    kinds = cluster.cards.kinds.values
    for name, expected, table in (
        ("keel", demand.keel_typical(known, card), learnt.keel),
        ("fgd", demand.fgd_typical(everything, card), learnt.fgd),
    ):
        mine, theirs = typical_rows(expected, kinds), learnt_rows(table, kinds)
        if mine != theirs:
            found.append(f"typical pods of {name}: {theirs}, not {mine}")
    largest = published.largest(nodes)
    if [largest.cpu, largest.gpu] != learnt.rates[c.RATE_MOST_CPU : c.RATE_MOST_GPU + 1].tolist():
        found.append(f"{largest}, not {learnt.rates}")
    return found


def typical_rows(
    typical: Sequence[fragments.Typical], kinds: Sequence[fleet.Kind]
) -> list[tuple[Any, ...]]:
    """Typical pods as sorted rows: CPU, cards, what each kind of card gives, weight."""
    return sorted(
        (one.cpu, one.cards, tuple(map(one.asks, kinds)) if one.cards else (), one.weight)
        for one in typical
    )


def learnt_rows(typical: c.Typical, kinds: Sequence[fleet.Kind]) -> list[tuple[Any, ...]]:
    """Likewise, as the scheduler keeps them."""
    rows = []
    for k in range(typical.weight.size):
        cards = int(typical.cards[k])
        asks = tuple((int(typical.cores[q, k]), int(typical.mib[q, k])) for q in range(len(kinds)))
        # Pods without GPU ask more cards than any node has.
        is_gpu = cards < 1000
        row = (cards, asks) if is_gpu else (0, ())
        rows.append((int(typical.cpu[k]), *row, int(typical.weight[k])))
    return sorted(rows)
