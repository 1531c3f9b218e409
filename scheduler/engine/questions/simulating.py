"""Questions for deciding for manifests, and for explaining the decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scheduler.api import wire
from scheduler.api.groups.definitions import GroupKey
from scheduler.engine.questions.contract import Foresight, Lookup, Question
from scheduler.errors import Mistake
from scheduler.schema import columns as c
from scheduler.telling.verdicts import Verdicts


class PodMistake(NamedTuple):
    """What a person must mend on a pod."""

    uid: str
    mistake: Mistake


class MistakesOfWaiting(Question[tuple[PodMistake, ...]], frozen=True):
    """The mistakes in pods that are to be tried, in their order; a field that is not supported is none."""


class GroupMistake(NamedTuple):
    """What a person must mend before a group can be placed.

    Attributes:
        uid: the pod that has the mistake; if none of its pods has it, a pod of the group.
        stands_for: the key of the object that has the mistake; None if the pod has it, or if several objects do together.
        mistake: the field and what is wrong with it.
    """

    uid: str
    stands_for: GroupKey | None
    mistake: Mistake


class MistakesOfGroups(Question[tuple[GroupMistake, ...]], frozen=True):
    """The mistakes for which groups are held, by pod or object."""


class PodsByGroup(Question[Mapping[GroupKey, Sequence[str]]], frozen=True):
    """By group that is decided about as a whole: the uids of its pods that are not finished."""


class BeforeDecision(NamedTuple):
    """The state that explains a decision, from before the decision.

    Attributes:
        uid: of the pod that is decided for.
        verdicts: what every node says of the pod.
        cards_by: what orders the cards of a node for it; empty when something on it must be mended first.
        used: [3, D] what was in use of every card, by its row.
    """

    uid: str
    verdicts: Verdicts
    cards_by: str
    used: c.Ints


class NextDecision(Foresight[BeforeDecision | None], frozen=True):
    """What there is to know of the pod that is tried next at a time, before it is; None when none is.

    The demand is learnt for it, as it would be for the decision itself.
    """

    at: float


class SuitedNodes(Question[tuple[str, ...]], frozen=True):
    """The nodes that a DaemonSet's controller makes a pod for, by name: their labels and hard taints let it in.

    What is malformed in the pod is told when it is placed.
    """

    pod: wire.Pod


class HeldCard(NamedTuple):
    """A card that a pod holds.

    Attributes:
        row: of the columns of cards.
        position: its index on its node.
        total: [3] what there is of it, as in the columns.
    """

    row: int
    uuid: str
    position: int
    total: c.Ints


class HeldCards(Lookup[tuple[HeldCard, ...]], frozen=True):
    """The cards that a pod with a node holds, of those that the node still reports; by row."""

    uid: str


class CardIndices(Lookup[Mapping[str, int]], frozen=True):
    """The index of each card that a node reports to a driver, by its UUID."""

    node: str
    driver: str
