"""What is told of a plan, and what it is told by."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import NamedTuple


class Terms(NamedTuple):
    """How a plan is made.

    Attributes:
        kept: by the uid of a pod: why it may not be moved, as a text that follows "pods", by what its object says.
        own: uids of pods that belong to their node; a node with only such pods is idle.
        now: the time by which it counts for how long pods have run, in seconds since 1970.
        run_seconds: a pod is moved only if it has run for so long.
        most: the most moves.
        ends_first: the uids of pods whose controllers make a successor only when the pod is gone, as StatefulSets do. Other
            controllers make it as soon as the pod begins to end, so it is placed while the pod still holds its place.
        only_for: the uid of the waiting pod that the plan is for, alone or with its group; empty for none.
        only_waiting: plan only moves that let waiting pods in.
        most_in: the most moves of pods of each namespace; a namespace that is not in it has no bound of its own.
    """

    kept: Mapping[str, str]
    own: AbstractSet[str]
    now: float
    run_seconds: float
    most: int
    ends_first: AbstractSet[str]
    only_for: str = ""
    only_waiting: bool = False
    most_in: Mapping[str, int] = {}


class Held(NamedTuple):
    """What a pod holds of a card.

    Attributes:
        position: the place of the card on its node.
        cores, mib: what it holds, in percent and MiB.
    """

    uuid: str
    position: int
    model: str
    cores: int
    mib: int


class Seat(NamedTuple):
    """Where a pod is: its node, and the cards that it has there, in their order."""

    node: str
    cards: tuple[Held, ...]


class What(StrEnum):
    """What a move makes whole."""

    CARD = "card"
    SLOT = "slot"
    NODE = "node"


class Freed(NamedTuple):
    """What is whole after a move: a card, all slots of a card that can be cut, or a node.

    Attributes:
        uuid, position, model: of the card; empty, -1 and empty for a node.
    """

    what: What
    node: str
    uuid: str = ""
    position: int = -1
    model: str = ""


class LetIn(NamedTuple):
    """A waiting pod that has room after a move; ``group`` is the name of the group that it came with, empty for none."""

    uid: str
    seat: Seat
    group: str = ""


class Move(NamedTuple):
    """One move, as it was carried out in a trial: the pod left, and one like it went where the scheduler put it.

    Attributes:
        is_ahead: whether the one like it had room while the pod still held its place.
    """

    uid: str
    left: Seat
    came: Seat
    run_seconds: float
    freed: tuple[Freed, ...]
    lets_in: tuple[LetIn, ...]
    is_ahead: bool


class Totals(NamedTuple):
    """How much is whole, and how many pods wait without room; of cards and nodes that take pods."""

    cards: int
    nodes: int
    waiting: int


class Plan(NamedTuple):
    """A plan: bundles of moves, to be carried out in this order.

    Attributes:
        bundles: each has moves that belong together.
        stays: (why pods may not be moved, how many), the most first.
        movable: how many pods may be moved.
        before, after: how much is whole before the plan and after it.
        tried: how many moves were tried on the engine.
        is_cut: whether more could have been tried.
    """

    bundles: tuple[tuple[Move, ...], ...]
    stays: tuple[tuple[str, int], ...]
    movable: int
    before: Totals
    after: Totals
    tried: int
    is_cut: bool
