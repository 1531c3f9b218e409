"""Nodes, cards and pods in plain words, for the twins of what is scored card by card.

A node knows what is in use on it; placing a pod gives a new node. Milli: 1000 is a whole card.
"""

import copy
from dataclasses import dataclass, field, replace
from typing import Any

from tests.oracles import allocation, filters, hami, requests

Json = dict[str, Any]
WHOLE = 1000
Charge = dict[str, tuple[int, int, int]]
"""Per card what the pod holds there: sharers, MiB, cores."""
Kind = tuple[int, int]
"""Core percent and MiB of a card; (100, 0) is a whole GPU of a node without HAMi."""
NAMELESS: Kind = (100, 0)
GPU = "nvidia.com/gpu"


@dataclass
class Node:
    """A node; `gpus` is its allocatable nvidia.com/gpu: sharers with HAMi, whole GPUs without."""

    name: str
    cpu: int
    memory: int
    cards: list[hami.Card] = field(default_factory=list)
    gpus: int = 0
    pods: int = 110
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[Json] = field(default_factory=list)
    cordoned: bool = False
    cpu_used: int = 0
    memory_used: int = 0
    gpus_used: int = 0
    pods_used: int = 0
    sizes: list[int] = field(default_factory=lambda: [0] * 5)

    @classmethod
    def of(cls, body: Json) -> "Node":
        """What a raw object says, with nothing in use."""
        meta, spec, there = body["metadata"], body.get("spec", {}), body["status"]["allocatable"]
        cordon = (meta.get("annotations") or {}).get("hami.io/device-cordon", "").split(",")
        cards = [
            hami.Card(
                uuid, one.get("index", 0), one.get("count", 0), one.get("devmem", 0),
                one.get("devcore", 0), one.get("type", ""), one.get("numa", 0), one.get("mode", ""),
                health=one.get("health", False), cordoned=uuid in cordon,
            )
            for uuid, one in allocation.cards_of(body).items()
        ]  # fmt: skip
        cpu, memory, gpus, pods = (
            requests.amount(name, there.get(name, 0)) for name in ("cpu", "memory", GPU, "pods")
        )
        taints, cordoned = spec.get("taints") or [], spec.get("unschedulable", False)
        return cls(meta["name"], cpu, memory, cards, gpus, pods, meta["labels"], taints, cordoned)

    @property
    def managed(self) -> bool:
        return bool(self.cards)

    @property
    def has_gpu(self) -> bool:
        return bool(self.cards or self.gpus)

    @property
    def count(self) -> int:
        """Cards or whole GPUs, whatever their state."""
        return len(self.cards) if self.cards else self.gpus

    def words(self, *, cordon: bool = True) -> Json:
        return {
            "metadata": {"name": self.name, "labels": self.labels},
            "spec": {"unschedulable": self.cordoned and cordon, "taints": self.taints},
        }


@dataclass
class Pod:
    """A pod; `bare` when it asks nvidia.com/gpu and no figure of HAMi's, `spec` are its words.

    `raw` is the object that it was read from.
    """

    name: str
    cpu: int = 0
    memory: int = 0
    gpu: hami.Pod | None = None
    bare: bool = False
    spec: Json = field(default_factory=dict)
    raw: Json = field(default_factory=dict)

    @classmethod
    def of(cls, body: Json) -> "Pod":
        """What a raw object asks. Of init containers these twins know nothing."""
        meta, spec = body["metadata"], body["spec"]
        limits = [one.get("resources", {}).get("limits") or {} for one in spec["containers"]]
        asks = [_asked(one) for one in limits]
        notes, gpu = meta.get("annotations") or {}, None
        if any(one.nums for one in asks):
            gpu = hami.Pod(
                tuple(asks),
                policy=notes.get("hami.io/gpu-scheduler-policy", ""),
                numa_bind=notes.get("nvidia.com/numa-bind") == "true",
                use_type=notes.get("nvidia.com/use-gputype", ""),
                nouse_type=notes.get("nvidia.com/nouse-gputype", ""),
            )
        bare = gpu is not None and not any(allocation.HAMI_ONLY & one.keys() for one in limits)
        cpu, memory = (requests.total(body, name) or 0 for name in ("cpu", "memory"))
        words = ("nodeSelector", "affinity", "tolerations")
        said = {word: spec[word] for word in words if spec.get(word)}
        return cls(meta["name"], cpu, memory, gpu, bare, said, body)

    @property
    def asking(self) -> list[hami.Container]:
        return [one for one in self.gpu.containers if one.nums] if self.gpu else []

    @property
    def gpus(self) -> int:
        return sum(one.nums for one in self.asking)

    @property
    def walks(self) -> bool:
        """Whether HAMi's walk chooses its cards, whatever the mode."""
        return bool(self.gpu and (self.gpu.policy or self.gpu.numa_bind or len(self.asking) > 1))

    @property
    def size_class(self) -> int:
        """A share 0, one 1, two 2, three or four 3, more 4; none -1."""
        if not self.asking:
            return -1
        if self.gpus == 1:
            (one,) = self.asking
            return 1 if one.percent == 100 or one.cores == 100 else 0
        return 2 if self.gpus == 2 else 3 if self.gpus <= 4 else 4


def _asked(limits: Json) -> hami.Container:
    """A container; who asks GPUs and no figure asks all of each."""
    nums, mem = limits.get(GPU, 0), limits.get("nvidia.com/gpumem", 0)
    if nums and not allocation.HAMI_ONLY & limits.keys():
        return hami.Container(nums=nums, percent=100, cores=100)
    percent = limits.get("nvidia.com/gpumem-percentage", hami.PERCENT_UNSET if mem else 100)
    cores = limits.get("nvidia.com/gpucores", 0)
    return hami.Container(nums=nums, mem=mem, percent=percent, cores=cores)


def kind_of(card: hami.Card) -> Kind:
    return card.cores, card.mem


def closed(card: hami.Card) -> bool:
    return not card.health or card.cordoned or card.mode == "mig" or card.used >= card.count


def free(card: hami.Card) -> tuple[int, int]:
    """Milli of cores and of memory that are free."""
    if closed(card):
        return 0, 0
    return part(card.cores - card.used_cores, card.cores), part(card.mem - card.used_mem, card.mem)


def part(figure: int, total: int) -> int:
    return WHOLE if total == 0 else max(0, WHOLE * figure // total)


def idle(card: hami.Card) -> int:
    return min(free(card))


def frees(node: Node) -> list[tuple[int, int]]:
    """Free cores and memory of every card, or of every whole GPU not asked yet."""
    if node.managed:
        return [free(card) for card in node.cards]
    return [(WHOLE, WHOLE)] * (node.gpus - node.gpus_used)


def free_by_kind(node: Node) -> list[tuple[tuple[int, int], Kind]]:
    """What `frees` tells, each with the kind of the card."""
    kinds = [kind_of(card) for card in node.cards] or [NAMELESS] * (node.gpus - node.gpus_used)
    return list(zip(frees(node), kinds, strict=True))


def idles(node: Node) -> list[int]:
    return [min(pair) for pair in frees(node)]


def asked_of(container: hami.Container, kind: tuple[int, float]) -> tuple[int, int]:
    """Milli of the cores and of the memory of such a card that a container is charged.

    A mean card, whose MiB are no whole number, charges percents as they are.
    """
    cores, mib = kind
    core = WHOLE * container.cores // cores if cores else 0
    memory: float
    if container.mem:
        memory = int(WHOLE * container.mem // mib) if mib else WHOLE
    else:
        whole = isinstance(mib, int) and mib > 0
        memory = (
            WHOLE * (mib * container.percent // 100) // mib if whole else 10 * container.percent
        )
    return core, int(memory)


def size(pod: Pod, card: hami.Card, charge: tuple[int, int, int]) -> int:
    """Milli of the card that the pod asks: the larger of cores and memory."""
    if len(pod.asking) == 1:
        return max(asked_of(pod.asking[0], kind_of(card)))
    _, mib, cores = charge
    return max(part(cores, card.cores) if card.cores else 0, part(mib, card.mem))


def accepts(node: Node, pod: Pod) -> bool:
    """Whether the node's words and what is left of its resources take the pod, cards apart."""
    body = {"metadata": {"name": pod.name}, "spec": {"containers": [], **pod.spec}}
    if filters.refusal(body, node.words(), []):
        return False
    if pod.gpu and not node.managed and not (pod.bare and grants(node, pod.gpu)):
        return False
    return (
        pod.cpu <= node.cpu - node.cpu_used
        and pod.memory <= node.memory - node.memory_used
        and pod.gpus <= node.gpus - node.gpus_used
        and node.pods_used < node.pods
    )


def grants(node: Node, gpu: hami.Pod) -> bool:
    """Whether a node that reports a number of GPUs and no cards can do what a pod wishes of them."""
    if gpu.numa_bind or gpu.use_uuid or gpu.nouse_uuid or gpu.vgpu_mode:
        return False
    if not (gpu.use_type or gpu.nouse_type):
        return True
    product = node.labels.get("nvidia.com/gpu.product", "").upper()
    wanted, refused = (
        any(part in product for part in _parts(text)) for text in (gpu.use_type, gpu.nouse_type)
    )
    return bool(product) and (wanted or not _parts(gpu.use_type)) and not refused


def _parts(text: str) -> list[str]:
    words = (part.strip().upper().replace(" ", "-") for part in text.split(","))
    return [word for word in words if word]


def passing(node: Node, pod: Pod) -> list[tuple[hami.Card, int]]:
    """Cards that HAMi's checks let the one asking container have, and the MiB it would hold."""
    assert pod.gpu is not None
    (container,) = pod.asking
    found = []
    for card in node.cards:
        mib = hami.memory_asked(card, container)
        if not hami.refused_before_numa(card, pod.gpu) and not hami.refused_after_numa(
            card, container, pod.gpu, mib
        ):
            found.append((card, mib))
    return found


def choices(node: Node, pod: Pod, *, each: bool) -> list[Charge]:
    """The cards that the pod may be given on a node; none when it does not fit.

    With `each` a share may go to any card that passes (of cards in one state the first stands for
    all); else there is one choice: the least idle.
    """
    if not accepts(node, pod):
        return []
    if pod.gpu is None or not node.managed:
        return [{}]
    if pod.walks:
        policy = pod.gpu.policy or "binpack"
        choice = hami.choose(node.cards, replace(pod.gpu, policy=policy))
        return [choice.charge] if choice.fits else []
    (container,) = pod.asking
    cores = min(100, container.cores)
    found = passing(node, pod)
    if len(found) < container.nums:
        return []
    if each and container.nums == 1:
        states: dict[tuple[int, ...], Charge] = {}
        for card, mib in found:
            state = (card.cores, card.mem, card.count, card.used, card.used_mem, card.used_cores)
            states.setdefault(state, {card.uuid: (1, mib, cores)})
        return list(states.values())
    found.sort(key=lambda one: (idle(one[0]), one[0].index))
    return [{card.uuid: (1, mib, cores) for card, mib in found[: container.nums]}]


def placed(node: Node, pod: Pod, charge: Charge, sign: int = 1) -> Node:
    """The node with the pod on it (or, with sign -1, without it)."""
    after = copy.copy(node)
    after.cards = [copy.copy(card) for card in node.cards]
    after.sizes = list(node.sizes)
    after.cpu_used += sign * pod.cpu
    after.memory_used += sign * pod.memory
    after.gpus_used += sign * pod.gpus
    after.pods_used += sign
    if pod.size_class >= 0:
        after.sizes[pod.size_class] += sign
    for card in after.cards:
        slots, mib, cores = charge.get(card.uuid, (0, 0, 0))
        card.used += sign * slots
        card.used_mem += sign * mib
        card.used_cores += sign * cores
    return after
