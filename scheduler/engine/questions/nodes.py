"""Questions about nodes. Facts are what was last read of a node, and never change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from scheduler.api import wire
from scheduler.api.admission.backends import Backend
from scheduler.devices.contract import CardDriver
from scheduler.engine.questions.contract import Fact, Lookup
from scheduler.state.nodes import NodeFacts


class KnownNode(Fact[NodeFacts | None], frozen=True):
    """What was last read of a node; None when it is not there."""

    name: str


class KnownNodes(Lookup[Mapping[str, NodeFacts]], frozen=True):
    """What was last read of each node that is there, by name."""


class NodeFigures(NamedTuple):
    """How many nodes there are, and of how many not every GPU is given away, by why."""

    n_nodes: int
    closed: Mapping[str, int]


class NodeCounts(Lookup[NodeFigures], frozen=True):
    """How many nodes there are, and how many are closed. O(cards)."""


class DriverNotice(NamedTuple):
    """What people should know once devices of a driver are in use, and which of its settings are assumed."""

    driver: str
    notice: str
    taken: str


class DriverNotices(Fact[tuple[DriverNotice, ...]], frozen=True):
    """What there is to say of the drivers whose devices a node reports."""

    node: str


class CardDrivers(Fact[Mapping[str, CardDriver]], frozen=True):
    """The drivers that allocate devices one by one, by their names; also those that are not in use any more."""


class PartFigures(NamedTuple):
    """What the cards of a node have together.

    Attributes:
        amounts: of each resource that a driver of cards lets nodes offer, in the unit of requests. Empty for a node that is not
            there, whose cards are not reported, or whose cards another scheduler allocates.
        is_occupied: whether pods are on the node that request cards.
    """

    amounts: Mapping[str, int]
    is_occupied: bool


class OfferedParts(Fact[PartFigures], frozen=True):
    """What the cards of a node have together, such as MiB of memory."""

    node: str


class SharedGpus(Fact[tuple[Backend, ...]], frozen=True):
    """The ways in which nodes share GPUs, in every size. The thread of the webhook asks, too.

    Attributes:
        cards: the resource by which pods request cards whose shares have any size.
        pod: only nodes count that this pod accepts; None: all nodes.
    """

    cards: str
    pod: wire.Pod | None = None
