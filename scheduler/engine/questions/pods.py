"""Questions about pods. A record is what is known of a pod at this moment, and never changes."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from scheduler.api.door.decisions import Bind
from scheduler.engine.questions.contract import Fact, Lookup, Question, Steps
from scheduler.errors import Mistake
from scheduler.state.pods import PodRecord


class KnownPod(Lookup[PodRecord | None], frozen=True):
    """What is known of a pod; None when it is not known."""

    uid: str


class NamedPod(Lookup[PodRecord], frozen=True):
    """What is known of a pod that a decision or a note has just named."""

    uid: str


class KnownPods(Lookup[Mapping[str, PodRecord]], frozen=True):
    """All pods that are known, by uid. O(pods)."""


class PodVersion(Fact[str], frozen=True):
    """The last ``resourceVersion`` seen of a pod; empty when it is not known."""

    uid: str


class BindObjection(Lookup[str], frozen=True):
    """Why a decision may no longer be carried out; empty when it may.

    A decision can wait for minutes before the device plugin of its node; the node and its cards
    may be gone by then, or closed to the pod.
    """

    bind: Bind

    @property
    def is_about_facts(self) -> bool:
        """True unless the pod was given cards: what others use of these is different in a trial."""
        return not self.bind.devices


class MissingKeys(Question[list[str]], frozen=True):
    """Keys of known objects of a kind that are not among those present; of pods, of those of one stream."""

    kind: str
    present: Container[str]
    scheduler: str = ""


class ToldCardsMistake(Lookup[Mistake | None], frozen=True):
    """What a person must mend on a pod with a node: what it tells of its cards; None when nothing."""

    uid: str


class HowPlaced(Lookup[str], frozen=True):
    """By which mode and whose wish a pod is placed, in words; empty when nobody wished anything."""

    uid: str


class PlacedNote(Lookup[str], frozen=True):
    """The note of an event about a pod that has a node: which node, which cards, and ``how`` it was placed."""

    uid: str
    how: str


class NominatedNode(Lookup[str], frozen=True):
    """The node that a pod is nominated to; empty for none."""

    uid: str


class Governing(NamedTuple):
    """Who decides where a pod goes.

    Attributes:
        placed_by: the node policy, or else the mode.
        policy: the BalancePolicy that governs the pod; empty for none.
    """

    placed_by: str
    policy: str


class WhoGoverns(Lookup[Governing], frozen=True):
    """Who decides where a pod goes that is known."""

    uid: str


class GovernedPods(Question[Steps[Mapping[str, int]]], frozen=True):
    """How many pods of ours each policy governs, by its name; empty for none. Of the pods that there are when asked."""
