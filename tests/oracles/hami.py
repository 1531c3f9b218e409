"""HAMi's choice of cards for a whole pod on one node (v2.10), a card and a container at a time.

Differences on purpose, where HAMi has bugs: sidecars stay and count like app containers, and an ordinary init
container runs on top of the sidecars before it; a card is never charged 0 MiB; without link scores
topology-aware only walks like spread; a card in MIG mode is refused.
"""

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cmp_to_key

import numpy as np

PERCENT_UNSET = 101
F = np.float32


@dataclass
class Card:
    """One card of the node with what is used of it."""

    uuid: str
    index: int
    count: int = 10
    mem: int = 16384
    cores: int = 100
    model: str = "NVIDIA-Tesla T4"
    numa: int = 0
    mode: str = "hami-core"
    health: bool = True
    cordoned: bool = False
    used: int = 0
    used_mem: int = 0
    used_cores: int = 0


@dataclass(frozen=True)
class Container:
    """What one container asks of each of `nums` cards; `kind` is init, sidecar or app."""

    kind: str = "app"
    nums: int = 0
    mem: int = 0
    percent: int = PERCENT_UNSET
    cores: int = 0


@dataclass(frozen=True)
class Pod:
    """The containers, init and sidecars first in their order, and the pod's annotations."""

    containers: tuple[Container, ...]
    policy: str = "spread"
    numa_bind: bool = False
    use_type: str = ""
    nouse_type: str = ""
    use_uuid: str = ""
    nouse_uuid: str = ""
    vgpu_mode: str | None = None
    weights: tuple[int, int, int] = (1, 1, 1)


Pick = tuple[str, int, int]
"""The card's uuid, MiB, cores."""


@dataclass
class Choice:
    """Picks per container if the pod fits, else why one container did not."""

    fits: bool = True
    picks: list[list[Pick]] = field(default_factory=list)
    charge: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)


def choose(cards: Sequence[Card], pod: Pod) -> Choice:
    """Picks for every container, and per card (slots, MiB, cores) charged to the pod."""
    start = sorted(copy.deepcopy(list(cards)), key=lambda card: card.index)
    staying = copy.deepcopy(start)
    peak = {card.uuid: figures(card) for card in start}
    choice = Choice()
    for container in pod.containers:
        if container.nums <= 0:
            choice.picks.append([])
            continue
        seen = copy.deepcopy(staying) if container.kind == "init" else staying
        picks, reasons = place(seen, container, pod)
        if picks is None:
            return Choice(fits=False, reasons=reasons)
        choice.picks.append(picks)
        for card in seen:
            slots, mem, cores = map(max, peak[card.uuid], figures(card))
            peak[card.uuid] = slots, mem, cores
    for card in start:
        (slots, mem, cores), before = peak[card.uuid], figures(card)
        taken = slots - before[0], mem - before[1], cores - before[2]
        if any(taken):
            choice.charge[card.uuid] = taken
    return choice


def figures(card: Card) -> tuple[int, ...]:
    return card.used, card.used_mem, card.used_cores


def place(
    cards: list[Card], container: Container, pod: Pod
) -> tuple[list[Pick] | None, Counter[str]]:
    """One container: sorts `cards` in place and charges them."""
    scores = {card.uuid: device_score(card, pod.weights) for card in cards}
    cards.sort(key=cmp_to_key(lambda a, b: compare(a, b, scores, pod)))
    if container.nums > len(cards):
        return None, Counter({"NodeInsufficientDevice": len(cards)})
    picks, reasons = walk(cards, container, pod)
    if picks is not None:
        for card in cards:
            for uuid, mem, cores in picks:
                if uuid == card.uuid:
                    card.used += 1
                    card.used_mem += mem
                    card.used_cores += cores
    return picks, reasons


def device_score(card: Card, weights: tuple[int, int, int]) -> np.float32:
    if card.count == 0 or card.cores == 0 or card.mem == 0:
        return F(0)
    slot = F(F(card.used) / F(card.count))
    core = F(F(card.used_cores) / F(card.cores))
    memory = F(F(card.used_mem) / F(card.mem))
    total = F(F(weights[0]) * slot)
    total = F(total + F(F(weights[1]) * core))
    total = F(total + F(F(weights[2]) * memory))
    return F(F(10) * total)


def node_score(cards: Sequence[Card]) -> np.float32:
    """How full the node is, over all its cards, before the pod."""
    count, cores, mem = (
        sum(card.count for card in cards),
        sum(card.cores for card in cards),
        sum(card.mem for card in cards),
    )
    if count == 0 or cores == 0 or mem == 0:
        return F(0)
    slot = F(F(sum(card.used for card in cards)) / F(count))
    core = F(F(sum(card.used_cores for card in cards)) / F(cores))
    memory = F(F(sum(card.used_mem for card in cards)) / F(mem))
    return F(F(10) * F(F(slot + core) + memory))


def tokens(policy: str) -> list[str]:
    return [token.strip() for token in policy.split(",")]


def sort_keys(pod: Pod) -> list[str]:
    """What to sort by, ascending; the walk then begins at the end."""
    if "," in pod.policy or pod.policy == "numa":
        named = [token for token in tokens(pod.policy) if token in {"binpack", "spread", "numa"}]
        chain = list(dict.fromkeys(named)) or ["spread"]
        if pod.numa_bind and chain[0] != "numa":
            chain = ["numa", *(key for key in chain if key != "numa")]
        return [*chain, "index"]
    if pod.policy == "mutex":
        return ["used-descending", "numa"]
    if pod.numa_bind:
        return ["numa-descending", "binpack"] if pod.policy == "binpack" else ["numa", "spread"]
    return ["binpack" if pod.policy == "binpack" else "spread", "numa"]


def compare(one: Card, other: Card, scores: dict[str, np.float32], pod: Pod) -> int:
    for key in sort_keys(pod):
        if key in {"binpack", "spread"}:
            a, b = float(scores[one.uuid]), float(scores[other.uuid])
        elif key.startswith("numa"):
            a, b = one.numa, other.numa
        elif key.startswith("used"):
            a, b = one.used, other.used
        else:
            a, b = one.index, other.index
        if a != b:
            lower = -1 if a < b else 1
            return -lower if key == "spread" or key.endswith("descending") else lower
    return 0


def walk(
    cards: Sequence[Card], container: Container, pod: Pod
) -> tuple[list[Pick] | None, Counter[str]]:
    """From the last card to the first, until enough pass."""
    reasons: Counter[str] = Counter()
    picks: list[Pick] = []
    numa = None
    for card in reversed(cards):
        reason = refused_before_numa(card, pod)
        if not reason and pod.numa_bind and card.numa != numa:
            if picks:
                reasons["NumaNotFit"] += len(picks)
            picks = []
            numa = card.numa
        mem = memory_asked(card, container)
        reason = reason or refused_after_numa(card, container, pod, mem)
        if reason:
            reasons[reason] += 1
            continue
        picks.append((card.uuid, mem, min(100, container.cores)))
        if len(picks) == container.nums:
            return picks, reasons
    if picks:
        reasons["AllocatedCardsInsufficientRequest"] = len(picks)
    return None, reasons


def memory_asked(card: Card, container: Container) -> int:
    mem = container.mem
    if mem == 0 and container.percent != PERCENT_UNSET:
        mem = card.mem * container.percent // 100
    return max(1, mem)


def refused_before_numa(card: Card, pod: Pod) -> str:
    if not card.health:
        return "CardNotHealth"
    if card.cordoned:
        return "CardCordoned"
    wrong_mode = pod.vgpu_mode is not None and card.mode not in pod.vgpu_mode
    if wrong_mode or not model_matches(card.model, pod):
        return "CardTypeMismatch"
    return ""


def model_matches(model: str, pod: Pod) -> bool:
    def named(words: str) -> bool:
        return any(word and word.upper() in model.upper() for word in tokens(words))

    if pod.use_type.strip() and not named(pod.use_type):
        return False
    return not (pod.nouse_type.strip() and named(pod.nouse_type))


def refused_after_numa(card: Card, container: Container, pod: Pod, mem: int) -> str:
    cores = min(100, container.cores)
    if pod.use_uuid.strip() and card.uuid not in tokens(pod.use_uuid):
        return "CardUuidMismatch"
    if pod.nouse_uuid.strip() and card.uuid in tokens(pod.nouse_uuid):
        return "CardUuidMismatch"
    checks = [
        (card.count <= card.used, "CardTimeSlicingExhausted"),
        ("mutex" in tokens(pod.policy) and card.used > 0, "ExclusiveDeviceAllocateConflict"),
        (card.mem - card.used_mem < mem, "CardInsufficientMemory"),
        (card.cores - card.used_cores < cores, "CardInsufficientCore"),
        (
            card.cores == 100 and cores == 100 and card.used > 0,
            "ExclusiveDeviceAllocateConflict",
        ),
        (
            card.cores != 0 and card.used_cores == card.cores and cores == 0,
            "CardComputeUnitsExhausted",
        ),
        (card.mode == "mig", "CardMigTopologyInfeasible"),
    ]
    for refuses, reason in checks:
        if refuses:
            return reason
    return ""
