"""What pods hold of the cards that KAI's reservation pods hold for them.

What a pod says of its own share is not enough: its creator writes it. KAI's binder has a pod of its own request the whole
card, in a namespace where tenants create no pods, and writes the card's group on that pod and on those that share the
card. So a pod holds a part of those cards only whose reservation pods are on its node, and all pods of a card together
hold that card at most.

Source: KAI-Scheduler (2026-03), ``pkg/binder/binding/resourcereservation``, ``pkg/common/resources/gpu_sharing.go``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler.api import names
from scheduler.api.pods.kai_shares import UNREADABLE, Share
from scheduler.api.queues.kai import CARD
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from scheduler.tenancy.kai.terms import find_part, read_card_mib


class _Place(NamedTuple):
    """A card, as KAI names it."""

    node: str
    group: str


@dataclass(slots=True)
class _Card:
    """What is known of a card.

    Attributes:
        reserving: the reservation pods that hold it.
        sharing: the pods that share it, by uid.
        parts: by pod what it holds of the card, in millionths; of those only that hold something.
    """

    reserving: set[str] = field(default_factory=set)
    sharing: dict[str, PodRecord] = field(default_factory=dict)
    parts: dict[str, int] = field(default_factory=dict)


class Reservations:
    """The cards of one cluster that pods share by KAI's annotations."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._cards: dict[_Place, _Card] = {}
        # By pod: the cards that it reserves or shares.
        self._places: dict[str, tuple[_Place, ...]] = {}
        # By pod what it holds of all cards together, in millionths; only of those that hold something.
        self._held: dict[str, int] = {}
        # The cards of which something has changed, in the order of their changes.
        self._changed: dict[_Place, None] = {}
        self._described = -1

    def note_pod(self, pod: PodRecord) -> None:
        """Note a pod that was added or has changed."""
        reserves = is_reservation(pod)
        groups = _list_groups(pod) if reserves or is_sharing(pod) else set()
        if not groups and pod.uid not in self._places:
            return
        self.drop_pod(pod.uid)
        places = tuple(_Place(pod.node, group) for group in sorted(groups))
        for place in places:
            card = self._cards.setdefault(place, _Card())
            if reserves:
                card.reserving.add(pod.uid)
            else:
                card.sharing[pod.uid] = pod
            self._changed[place] = None
        if places:
            self._places[pod.uid] = places

    def drop_pod(self, uid: str) -> None:
        """Forget a pod that is gone."""
        for place in self._places.pop(uid, ()):
            card = self._cards[place]
            card.reserving.discard(uid)
            card.sharing.pop(uid, None)
            self._changed[place] = None

    def forget(self) -> None:
        """Forget all pods."""
        self._cards.clear()
        self._places.clear()
        self._held.clear()
        self._changed.clear()

    def find_held(self, uid: str) -> int:
        """Find what a pod holds of all cards together, in millionths, as it was settled last."""
        return self._held.get(uid, 0)

    def settle(self) -> list[str]:
        """Find what the pods of all cards hold of which something has changed; return the pods that hold another part."""
        position = self._cluster.described.position
        if position != self._described:
            # A node may say now of how many MiB its cards are.
            self._described = position
            self._changed.update(dict.fromkeys(self._cards))
        concerned: set[str] = set()
        for place in self._changed:
            if (card := self._cards.get(place)) is not None:
                concerned.update(card.parts)
                card.parts = self._divide(place, card)
                concerned.update(card.parts)
                if not (card.reserving or card.sharing):
                    del self._cards[place]
        self._changed.clear()
        return [uid for uid in sorted(concerned) if self._sum_up(uid)]

    def _sum_up(self, uid: str) -> bool:
        """Find what a pod holds of all cards together; return whether that has changed."""
        before, held = self._held.pop(uid, 0), 0
        for place in self._places.get(uid, ()):
            card = self._cards[place]
            held += card.parts.get(uid, 0)
            share = _read_share(card.sharing[uid])
            if share.cards:
                # A pod may have labels of more groups than it says that it has cards.
                held = min(held, share.cards * find_part(share, self._read_mib(place.node)))
        if held:
            self._held[uid] = held
        return held != before

    def _read_mib(self, node: str) -> int:
        row = self._cluster.nodes.find_row(node)
        facts = self._cluster.nodes.facts[row] if row >= 0 else None
        return read_card_mib(facts.labels if facts is not None else {})

    def _divide(self, place: _Place, card: _Card) -> dict[str, int]:
        """Divide a card: older pods hold their part of it first."""
        found: dict[str, int] = {}
        if not card.reserving:
            return found
        mib, left = self._read_mib(place.node), CARD
        for pod in sorted(card.sharing.values(), key=lambda one: (one.created, one.uid)):
            if not left:
                break
            found[pod.uid] = min(left, find_part(_read_share(pod), mib))
            left -= found[pod.uid]
        return found


def is_reservation(pod: PodRecord) -> bool:
    """Whether a pod holds a card for pods that share it."""
    is_there = pod.namespace == names.KAI_RESERVATIONS and bool(pod.node)
    return is_there and names.KAI_CARD_GROUP in (pod.labels or {})


def is_sharing(pod: PodRecord) -> bool:
    """Whether a pod with a node holds, on its node, parts of cards that it does not request itself."""
    template = pod.template
    if not pod.node or pod.deleting or template.gpu is not None or template.most:
        return False
    return pod.namespace != names.KAI_RESERVATIONS


def _list_groups(pod: PodRecord) -> set[str]:
    """List the groups of the cards of a pod; of several cards each has a label of its own."""
    labels = pod.labels or {}
    if is_reservation(pod):
        return {labels[names.KAI_CARD_GROUP]}
    return {
        value
        for key, value in labels.items()
        if key == names.KAI_CARD_GROUP or key.startswith(names.KAI_CARD_GROUPS)
    }


def _read_share(pod: PodRecord) -> Share:
    """Read the share of a pod that shares cards; annotations that are gone count like those that cannot be read."""
    return pod.template.share or UNREADABLE
