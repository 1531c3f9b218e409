"""Random clusters known to the scheduler and to the twins alike: the same seed, the same world."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from scheduler.api.placement import Placement
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from tests import make
from tests.oracles import demand, fleet, fragments, hami, keel, published
from tests.unit import twin_objects

Rng = np.random.Generator
MODES = ("keel", "fgd", "best-fit", "first-fit", "dot-product", "gpu-packing", "gpu-clustering")
ZONES = ("a", "b", "c")
# Cores, MiB, model, sharers.
KINDS = (
    (100, 15360, "NVIDIA-Tesla T4", 10),
    (100, 24576, "NVIDIA A10G", 10),
    (100, 81920, "NVIDIA-A100-SXM4-80GB", 3),
    (200, 32768, "NVIDIA-V100", 10),
    (100, 16280, "NVIDIA-Tesla P100", 2),
)
PERCENTS = (20, 25, 33, 50, 65, 81)
# Of every memory above these are whole MiB, and so is the part of the card that is charged.
EVEN_PERCENTS = (25, 50, 75)
MIBS = (3000, 4096, 7680, 10000, 12288)
TAINT = {"key": "only", "value": "gpu", "effect": "NoSchedule"}
TOLERATION = {"key": "only", "operator": "Exists"}


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

    def see(
        self, pod: fleet.Pod, mode: str = "", node: str = "", charge: fleet.Charge | None = None
    ) -> str:
        """A pod is seen, running when a node is told; its uid."""
        number = len(self.arrivals)
        claim = twin_objects.claim(self.nodes[node], pod, charge) if charge else ""
        wire = twin_objects.wire_pod(pod, f"{pod.name}-{number}", mode, node, claim)
        record = self.cluster.see_pod(wire)
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
        self.cluster.pod_gone(uid)


@dataclass(frozen=True)
class Kit:
    """What may be in a world.

    Attributes:
        odd: nodes may be cordoned, cards out of order, pods have wishes and policies.
        taints: nodes may be tainted.
        plain: nodes may have GPUs without HAMi.
        mixed: a node's cards may be of several kinds.
        even: pods ask such percents of memory only as are whole MiB of every card.
    """

    odd: bool = True
    taints: bool = True
    plain: bool = True
    mixed: bool = True
    even: bool = True


def node(rng: Rng, name: str, kit: Kit) -> fleet.Node:
    # Nodes are of a few sizes, so that classes have more than one.
    made = fleet.Node(
        name,
        cpu=int(rng.choice([8000, 16000, 32000, 96000])),
        memory=int(rng.choice([32, 128])) << 30,
        labels={"kubernetes.io/hostname": name, "zone": str(rng.choice(ZONES))},
        taints=[TAINT] if kit.taints and rng.random() < 0.15 else [],
        cordoned=bool(kit.odd and rng.random() < 0.08),
    )
    chance = rng.random()
    if chance < 0.1:
        return made
    n = int(rng.choice([1, 2, 4, 8]))
    if chance < 0.25 and kit.plain:
        made.gpus = n
        return made
    same = int(rng.integers(0, len(KINDS)))
    mixed = kit.mixed and rng.random() < 0.3
    for i in range(n):
        kind = int(rng.integers(0, len(KINDS))) if mixed else same
        made.cards.append(_card(rng, f"{name}-GPU-{i}", i, kind, odd=kit.odd))
    made.gpus = sum(card.count for card in made.cards if card.health)
    return made


def _card(rng: Rng, uuid: str, index: int, kind: int, *, odd: bool) -> hami.Card:
    cores, mib, model, sharers = KINDS[kind]
    card = hami.Card(uuid, index, sharers, mib, cores, model, int(rng.integers(0, 2)))
    if odd:
        chance = rng.random()
        card.mode = "mig" if chance < 0.05 else "hami-core"
        card.health = not 0.05 < chance < 0.12
        card.cordoned = chance > 0.95
    return card


def pod(rng: Rng, kit: Kit, name: str = "pod") -> fleet.Pod:
    """A pod: mostly shares, some whole, some CPU only; with `odd` some have wishes."""
    cpu = int(rng.choice([0, 500, 1000, 2000, 4000, 8000, 12000]))
    made = fleet.Pod(name, cpu, int(rng.choice([0, 1, 4])) << 30)
    chance = rng.random()
    if chance >= 0.15:
        made.bare = chance < 0.4
        made.gpu = hami.Pod(_containers(rng, kit, chance), policy="")
    return _with_wishes(rng, made) if kit.odd else made


def _containers(rng: Rng, kit: Kit, chance: float) -> tuple[hami.Container, ...]:
    if chance < 0.4:
        nums = int(rng.choice([1, 1, 1, 2, 4, 8]))
        return (hami.Container(nums=nums, percent=100, cores=100),)
    if chance < 0.9 or not kit.odd:
        return (_share(rng, kit, 1),)
    if chance < 0.95:
        return (_share(rng, kit, int(rng.choice([2, 3]))),)
    return (_share(rng, kit, 1), _share(rng, kit, 1))


def _with_wishes(rng: Rng, made: fleet.Pod) -> fleet.Pod:
    if rng.random() < 0.15:
        made.spec["nodeSelector"] = {"zone": str(rng.choice(ZONES))}
    if rng.random() < 0.1:
        made.spec["affinity"] = near(str(rng.choice(ZONES)))
    if rng.random() < 0.3:
        made.spec["tolerations"] = [TOLERATION]
    if made.gpu:
        types = ["A100", "T4,A10G", "V100"]
        policies = ["spread", "binpack", "mutex"]
        made.gpu = replace(
            made.gpu,
            use_type=str(rng.choice(types)) if rng.random() < 0.15 else "",
            nouse_type=str(rng.choice(["A100", "P100"])) if rng.random() < 0.1 else "",
            policy=str(rng.choice(policies)) if rng.random() < 0.05 else "",
            numa_bind=bool(rng.random() < 0.05),
        )
    return made


def near(zone: str) -> fleet.Json:
    """Required affinity to the nodes of all other zones."""
    term = {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": [zone]}]}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"nodeAffinity": rules}


def _share(rng: Rng, kit: Kit, nums: int) -> hami.Container:
    kind = rng.random()
    percent = int(rng.choice(EVEN_PERCENTS if kit.even else PERCENTS))
    if kind < 0.4:
        return hami.Container(nums=nums, percent=percent, cores=percent)
    if kind < 0.55:
        return hami.Container(nums=nums, percent=percent, cores=0)
    if kind < 0.7:
        return hami.Container(nums=nums, percent=percent, cores=int(rng.choice(PERCENTS)))
    return hami.Container(nums=nums, mem=int(rng.choice(MIBS)), cores=int(rng.choice([0, 20, 50])))


def world(
    rng: Rng, kit: Kit, n: int, *, load: int = 0, past: int = 0, churn: bool = False
) -> World:
    """A cluster of n nodes with up to `load` pods running, after `past` pods that are gone again."""
    nodes = [node(rng, f"node-{i:03}", kit) for i in rng.permutation(n).tolist()]
    made = World(
        make.cluster(nodes=map(twin_objects.wire_node, nodes)), {node.name: node for node in nodes}
    )
    kinds = [pod(rng, kit, f"past-{i}") for i in range(25)]
    for _ in range(past):
        # The first are the most frequent.
        one = kinds[int(rng.integers(0, len(kinds)) * rng.random())]
        made.gone(made.see(one, node="elsewhere" if churn else ""), one)
    for i in range(load):
        one = pod(rng, kit, f"running-{i}")
        name = str(rng.choice(sorted(made.nodes)))
        options = fleet.choices(made.nodes[name], one, each=True)
        if options:
            made.see(one, node=name, charge=options[int(rng.integers(0, len(options)))])
    return made


def cycle_of(made: World, *, weight: int = 5) -> Cycle:
    """A cycle that has learnt."""
    cycle = make.cycle(cluster=made.cluster, config=Config(placement=Placement(mode_weight=weight)))
    made.cluster.nodes.refresh_ranks()
    cycle.learn()
    return cycle


def parts(made: World, pod: fleet.Pod, mode: str) -> dict[str, int]:
    """What the scheduler, having learnt, scores every node for a pod."""
    cycle = cycle_of(made)
    shape = cycle.shape_of(made.cluster.pods[made.see(pod, mode)])
    assert shape is not None
    cycle.boards.refresh(shape)
    return {name: int(shape.board.part[row]) for name, row in made.cluster.nodes.rows.items()}


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
        told = float(learnt.price[cluster.nodes.row_of(node.name)])
        if node.has_gpu and abs(told - price.get(node.name, 1.0)) > 1e-9:
            found.append(f"price of {node.name}: {told}, not {price.get(node.name, 1.0)}")
    kappa, rate = demand.kappa(known, card), float(learnt.rates[c.RATE_CPU])
    if (kappa > 0) != (rate > 0) or (kappa and abs(rate * 0.85 * kappa / 1000 - 1) > 1e-9):
        found.append(f"milli-GPU per milli-CPU: {rate} where kappa is {kappa}")
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
