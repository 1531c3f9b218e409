"""Chooses the volumes that the claims of a pod get on one kind of nodes: existing volumes, or new volumes.

Source: kube-scheduler's volumebinding/binder.go, scorer.go, component-helpers' volume/pv_helpers.go. If several
volumes, or several capacities, are equally good, kube-scheduler takes any of them; Evenkeel takes the first by name.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from scheduler.api import selectors
from scheduler.api.selectors import Labels
from scheduler.kernels.modes import score
from scheduler.plugins.volumes.needs import Unbound
from scheduler.schema.columns import Ints
from scheduler.state.volumes.objects import Capacity, Class, Terms, Volume, Wish

NO_MATCH, NO_ROOM = 1, 2


class There(NamedTuple):
    """The storage on one kind of nodes.

    Attributes:
        labels: the labels of the nodes.
        volumes: the volumes that can be used on the nodes, by name.
        capacities: the reported free capacities for the nodes, by name.
        reserved: the volumes that are reserved for one claim each.
    """

    labels: Labels
    volumes: dict[str, Volume]
    capacities: Sequence[Capacity] = ()
    reserved: Collection[str] = ()


class Choice(NamedTuple):
    """The volumes that claims get.

    Attributes:
        bits: why the pod cannot go to the nodes: ``NO_MATCH``, ``NO_ROOM``; 0 if it can.
        score: 0..100.
        volumes: the volume that each claim gets, by name; empty for a volume that is to be provisioned.
    """

    bits: int
    score: int = 0
    volumes: tuple[str, ...] = ()


class Provisioning(NamedTuple):
    """What is known about the classes of a pod's claims, and how a choice is scored.

    Attributes:
        classes: the classes by name.
        telling: the names of classes whose drivers report their free capacity.
        curve: [2, points] points by how much of a volume, or of the room, the claims take; see ``score.read_curve``.
    """

    classes: dict[str, Class]
    telling: Collection[str]
    curve: Ints


def choose_volumes(claims: Sequence[Unbound], there: There, provisioning: Provisioning) -> Choice:
    """Choose the volume of each claim, small claims first, so that each gets the smallest volume that suits it.

    Claims without a suitable volume are provisioned.
    """
    given = [""] * len(claims)
    to_find = [i for i, claim in enumerate(claims) if claim.selected is None]
    to_make = [i for i, claim in enumerate(claims) if claim.selected is not None]
    for i in sorted(to_find, key=lambda i: claims[i].wish.bytes):
        found = _find_volume(claims[i], there, given)
        if found:
            given[i] = found
        else:
            to_make.append(i)
    asked: list[tuple[str, int, int]] = []
    for i in to_make:
        wish = claims[i].wish
        known = provisioning.classes.get(wish.of_class)
        if (
            known is None
            or not known.provisions
            or not includes_node(known.topologies, there.labels)
        ):
            return Choice(NO_MATCH)
        if known.name not in provisioning.telling or wish.request is None:
            continue
        room = _find_room(wish, there)
        if room is None:
            return Choice(NO_ROOM)
        if room.room is not None:
            # A driver that reports only the maximum size of a volume does not say how much is left.
            asked.append((known.name, wish.request, room.room))
    bound = [(claims[i].wish, there.volumes[name]) for i, name in enumerate(given) if name]
    taken = _sum_volumes(bound) if bound else _sum_room(asked)
    return Choice(0, _score_taken(taken, provisioning.curve), tuple(given))


def has_properties(wish: Wish, volume: Volume) -> bool:
    """Whether a volume's own properties suit a claim, wherever the volume is and whichever claim it is reserved for."""
    return (
        volume.capacity >= wish.bytes
        and volume.mode == wish.mode
        and volume.attributes == wish.attributes
        and volume.of_class == wish.of_class
        and not volume.is_deleting
    )


def suits(wish: Wish, volume: Volume) -> bool:
    """Whether a volume that is reserved for no claim may be given to this claim."""
    return (
        has_properties(wish, volume)
        and (wish.selector is None or wish.selector.matches(volume.labels))
        and volume.modes.issuperset(wish.modes)
    )


def includes_node(terms: Terms, labels: Labels) -> bool:
    """Whether the terms include a node with these labels; None includes all nodes."""
    return terms is None or any(
        all(selectors.meets_requirement(one, labels) for one in term.labels) for term in terms
    )


def _find_volume(claim: Unbound, there: There, taken: Sequence[str]) -> str:
    """Find the name of the volume for a claim, empty if there is none."""
    wish = claim.wish
    for name in claim.own:
        if name in taken:
            continue
        # The claim takes a volume that is reserved for it, and no other: if that cannot be used here, none can.
        return name if name in there.volumes else ""
    smallest, found = -1, ""
    for name, volume in there.volumes.items():
        if name in taken or name in there.reserved or not suits(wish, volume):
            continue
        if not found or volume.capacity < smallest:
            smallest, found = volume.capacity, name
    return found


def _find_room(wish: Wish, there: There) -> Capacity | None:
    for one in there.capacities:
        most = one.largest if one.largest is not None else one.room
        if one.of_class == wish.of_class and most is not None and most >= wish.bytes:
            return one
    return None


def _sum_volumes(bound: Sequence[tuple[Wish, Volume]]) -> list[tuple[int, int]]:
    """Sum up by class the requested bytes and the bytes of the volumes."""
    sums: dict[str, list[int]] = {}
    for wish, volume in bound:
        of_class = sums.setdefault(volume.of_class, [0, 0])
        of_class[0] += wish.bytes
        of_class[1] += volume.capacity
    return [(asked, capacity) for asked, capacity in sums.values()]


def _sum_room(asked: Sequence[tuple[str, int, int]]) -> list[tuple[int, int]]:
    sums: dict[str, tuple[int, int]] = {}
    for name, request, room in asked:
        sums[name] = sums.get(name, (0, 0))[0] + request, room
    return list(sums.values())


def _score_taken(taken: Sequence[tuple[int, int]], curve: Ints) -> int:
    """Score how much is taken, 0..100: the mean over classes, with halves rounded up."""
    if not taken:
        return 0
    points = sum(
        score.read_curve(curve, 100 if asked > most or not most else asked * 100 // most)
        for asked, most in taken
    )
    return (2 * points + len(taken)) // (2 * len(taken))
