"""Why the cards of some nodes do not suffice for a pod of one container, in figures: a card at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tests.oracles import hami

Nodes = Mapping[str, Sequence[hami.Card]]


class Shortage(NamedTuple):
    """How many cards (or nodes, for counts of cards) gave a reason, and the best of them."""

    n: int
    best: int = 0
    node: str = ""


def of(nodes: Nodes, pod: hami.Pod) -> dict[str, Shortage]:
    """By HAMi's reason. Nodes that have enough are passed over; of equals the first by name is the best."""
    found: dict[str, Shortage] = {}
    (asked,) = (one for one in pod.containers if one.nums)
    one_card = replace(pod, containers=(replace(asked, nums=1),))
    for name in sorted(nodes):
        whole = hami.choose(nodes[name], pod)
        if whole.fits:
            continue
        for reason in ("NodeInsufficientDevice", "AllocatedCardsInsufficientRequest"):
            if whole.reasons[reason]:
                _add(found, reason, whole.reasons[reason], name)
        if whole.reasons["NodeInsufficientDevice"]:
            continue
        for card in nodes[name]:
            alone = hami.choose([card], one_card)
            for reason in alone.reasons:
                _add(found, reason, _free(card, asked, reason), name)
    return found


def _free(card: hami.Card, asked: hami.Container, reason: str) -> int:
    if reason == "CardInsufficientCore":
        return max(0, card.cores - card.used_cores)
    free = max(0, card.mem - card.used_mem)
    return free if asked.mem else free * 100 // max(1, card.mem)


def _add(found: dict[str, Shortage], reason: str, figure: int, node: str) -> None:
    before = found.get(reason, Shortage(0, -1))
    best = (figure, node) if figure > before.best else (before.best, before.node)
    found[reason] = Shortage(before.n + 1, *best)
