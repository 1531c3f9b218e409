"""Which pods share a card of Metax (HAMi v2.10 ``pkg/device/metax``: ``checkAppClass``, ``checkDeviceQos``, ``Fit``).

A card in use has the policy of the pods on it: HAMi notes it so until the plugin reports it, and forgets it when it starts anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Pod:
    """A pod that gets one card; ``kind`` is online, offline, or empty."""

    name: str
    mib: int
    cores: int
    kind: str = ""
    policy: str = "best-effort"


@dataclass
class Card:
    """A card, and the policy that its plugin reports."""

    mib: int
    reported: str
    pods: list[Pod] = field(default_factory=list)

    def count(self, kind: str) -> int:
        return sum(pod.kind == kind for pod in self.pods)


def accepts(card: Card, pod: Pod) -> bool:
    """Whether the pod may have a part of the card."""
    if sum(one.mib for one in card.pods) + pod.mib > card.mib:
        return False
    if card.pods and not may_share(card, pod):
        return False
    return pod.kind == "online" or has_cores(card, pod)


def may_share(card: Card, pod: Pod) -> bool:
    """Whether the pods on a card let the pod join them."""
    if any(one.kind for one in card.pods) != bool(pod.kind):
        return False
    if pod.kind == "online":
        return True
    policies = {one.policy for one in card.pods if one.kind != "online"} or {card.reported}
    return policies <= {"", pod.policy} and not (pod.kind and card.count("online"))


def has_cores(card: Card, pod: Pod) -> bool:
    """Whether a card has the cores; a pod with all of them is alone, and one without any needs a card with some left."""
    used = sum(one.cores for one in card.pods if one.kind != "online")
    if used + pod.cores > 100 or (used == 100 and pod.cores == 0):
        return False
    return not (pod.cores == 100 and card.pods)


def find_quietest(cards: Sequence[Card]) -> list[Card]:
    """Those that an online pod may get: the fewest online pods, then offline ones; only offline ones come last."""

    def rank(card: Card) -> tuple[bool, int, int]:
        online, offline = card.count("online"), card.count("offline")
        return online == 0 and offline > 0, online, offline

    return [card for card in cards if rank(card) == min(map(rank, cards))]
