"""A recorded trace, played and measured second by second: first fit, nothing batched, nothing summed before."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Pod:
    """What it asks of each resource, its app and how many of it a node may have; whole seconds."""

    asks: dict[str, int]
    arrival: int
    departure: int | None = None
    app: str = ""
    most: int = 0


@dataclass
class Played:
    """Where each pod went and when, in the order of arrival; None: nowhere."""

    order: list[int]
    node: dict[int, int] = field(default_factory=dict)
    placed_at: dict[int, int] = field(default_factory=dict)


def play(nodes: Sequence[dict[str, int]], pods: Sequence[Pod], *, queue: bool) -> Played:
    """Every second: who leaves, then who waits, then who comes, each in the order of arrival."""
    order = sorted(range(len(pods)), key=lambda i: pods[i].arrival)
    played, waiting = Played(order), list[int]()
    for now in range(pods[order[0]].arrival, pods[order[-1]].arrival + 1):
        freed = any(leaves(pods, played, i) == now for i in played.node)
        come = [i for i in order if pods[i].arrival == now]
        for i in [*(waiting if freed else ()), *come]:
            there = _there(pods, played, now)
            here = [[pods[k] for k in there if played.node[k] == n] for n in range(len(nodes))]
            fitting = [n for n, node in enumerate(nodes) if _fits(node, here[n], pods[i])]
            node = min(fitting, default=None)
            if node is not None:
                played.node[i], played.placed_at[i] = node, now
        if queue:
            waiting = [i for i in [*waiting, *come] if i not in played.node]
    return played


def leaves(pods: Sequence[Pod], played: Played, i: int) -> float:
    """When a pod that was placed leaves: it runs as long as it did."""
    departure = pods[i].departure
    if departure is None:
        return float("inf")
    return played.placed_at[i] + departure - pods[i].arrival


def in_use(pods: Sequence[Pod], played: Played, now: int) -> tuple[Counter[str], int]:
    """In the second that begins now: of each resource, and how many nodes."""
    there = _there(pods, played, now)
    used = Counter[str]()
    for i in there:
        used.update(pods[i].asks)
    return used, len({played.node[i] for i in there})


def _there(pods: Sequence[Pod], played: Played, now: int) -> list[int]:
    return [i for i in played.node if played.placed_at[i] <= now < leaves(pods, played, i)]


def _fits(node: dict[str, int], here: list[Pod], pod: Pod) -> bool:
    used = Counter[str]()
    for other in here:
        used.update(other.asks)
    if any(used[name] + asked > node.get(name, 0) for name, asked in pod.asks.items()):
        return False
    return not pod.most or sum(other.app == pod.app for other in here) < pod.most
