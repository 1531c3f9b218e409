"""MIG as HAMi's plugin does it: instances at the places that the scheduler has reserved, made while Allocate is answered.

Source: Project-HAMi/HAMi v2.10 ``nvinternal/plugin/migmgr.go``. An instance goes with its pod. A place on which another
instance stands is an error of whoever reserved it, and Allocate fails.

Plugins up to v2.9 (``nvinternal/plugin/util.go``) cut a card by the template that the first pod names. The real one would
hand an instance out twice, and end when it cuts a card in use anew; here Allocate fails.
"""

import json
from collections.abc import Collection
from typing import Any, NamedTuple

Json = dict[str, Any]

ALLOCATIONS = "hami.io/vgpu-mig-allocations"


class PlaceTakenError(Exception):
    """A reserved place overlaps with an instance that is there."""


class Instance(NamedTuple):
    """An instance on a card."""

    pod: str
    container: int
    device: int
    card: str
    profile: str
    start: int
    size: int


class Taken(NamedTuple):
    """An instance of a card that is cut by a template."""

    pod: str
    card: str
    template: int
    place: int


class MigCards:
    """The instances on the cards of all nodes that this process plays; ``taken`` those of templates."""

    def __init__(self) -> None:
        self.instances: dict[str, list[Instance]] = {}
        self.taken: dict[str, list[Taken]] = {}
        self._made = 0

    def drop_instances(self, node: str, living: Collection[str]) -> None:
        """Remove the instances of pods that are gone from a node; ``living`` are the UIDs of its pods."""
        kept = [one for one in self.instances.get(node, ()) if one.pod in living]
        self.instances[node] = kept
        self.taken[node] = [one for one in self.taken.get(node, ()) if one.pod in living]

    def take_instances(self, node: str, pod: str, names: Collection[str]) -> None:
        """Give instances to a pod, each named ``UUID[template-place]``; ``pod`` is its UID.

        Raises:
            PlaceTakenError: an instance is in use, or its card is cut by another template.
            ValueError: a name is none of an instance.
        """
        there = self.taken.setdefault(node, [])
        for name in names:
            card, _, numbers = name.partition("[")
            template, _, place = numbers.removesuffix("]").partition("-")
            taken = Taken(pod, card, int(template), int(place))
            for other in there:
                is_other = other.template != taken.template or other.place == taken.place
                if other.card == card and is_other:
                    raise PlaceTakenError(f"{taken} cannot be beside {other}")
            there.append(taken)

    def make_instances(self, node: str, pod: Json, container: int, cards: Collection[str]) -> str:
        """Make the instances that are reserved for one container; return the annotation with their identities.

        ``cards`` are the UUIDs of the cards in MIG mode that the container gets; empty text where there are none.

        Raises:
            PlaceTakenError: a place is taken.
            ValueError: the annotation does not have a place for each of the cards.
        """
        meta = pod["metadata"]
        reserved: list[Json] = json.loads((meta.get("annotations") or {}).get(ALLOCATIONS) or "[]")
        mine = [one for one in reserved if one["containerIndex"] == container]
        if sorted(one["gpuUUID"] for one in mine) != sorted(cards):
            raise ValueError(f"the reservations of {meta['name']} are not for the cards {cards}")
        there = self.instances.setdefault(node, [])
        for one in mine:
            place = one["placement"]
            made = Instance(
                meta["uid"],
                container,
                one["deviceIndex"],
                one["gpuUUID"],
                one["profile"],
                place["start"],
                place["size"],
            )
            other = next((old for old in there if _overlap(old, made)), None)
            if other is not None:
                raise PlaceTakenError(f"{made} overlaps with {other}")
            there.append(made)
            self._made += 1
            one |= {
                "migUUID": f"MIG-{made.card}-{self._made}",
                "gpuInstanceID": self._made,
                "computeInstanceID": 0,
            }
        return json.dumps(reserved, separators=(",", ":")) if mine else ""


def _overlap(one: Instance, other: Instance) -> bool:
    return (
        one.card == other.card
        and one.start < other.start + other.size
        and other.start < one.start + one.size
    )
