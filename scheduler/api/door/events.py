"""What reaches the engine: always whole objects, never deltas.

Events are encoded as they are when an engine's log is written, so they hold nothing but words and figures.
"""

from __future__ import annotations

from typing import Any

import msgspec

from scheduler.api import steering, wire
from scheduler.api.cards import Slots
from scheduler.api.storage import Given, StorageObject

# Of every kind that is read but pods and nodes; each says its kind.
Object = (
    steering.Group
    | steering.PodDisruptionBudget
    | steering.Namespace
    | steering.BalancePolicy
    | StorageObject
)


class _Event(msgspec.Struct, frozen=True, tag=True, gc=False):
    pass


class PodSeen(_Event, frozen=True):
    """A pod was added or changed."""

    pod: wire.Pod


class PodGone(_Event, frozen=True):
    """A pod was deleted, or finished and so left the stream."""

    uid: str


class PodListBegins(_Event, frozen=True):
    """The pods seen from here to the end of the list are all unfinished pods of one stream.

    ``scheduler`` is the one of our names that these pods give, empty for the bound pods of others.
    """

    scheduler: str


class PodListEnds(_Event, frozen=True):
    """The list is complete, and pods that were not in it have been reported gone."""

    scheduler: str


class NodeSeen(_Event, frozen=True):
    """A node was added or changed."""

    node: wire.Node


class NodeGone(_Event, frozen=True):
    """A node was deleted."""

    name: str


class NodeListEnds(_Event, frozen=True):
    """All nodes have been seen, and those that were not in the list have been reported gone."""


class BindDone(_Event, frozen=True):
    """The API server has bound the pod."""

    uid: str


class BindFailed(_Event, frozen=True):
    """The bind failed and the pod is not bound; ``gone`` when it was deleted meanwhile."""

    uid: str
    message: str
    gone: bool = False


class PluginSilent(_Event, frozen=True):
    """The device plugin of a node stopped answering, or answers again.

    ``waits_for`` is the uid of the pod that it was asked to serve, empty when nobody can say.
    """

    node: str
    silent: bool
    waits_for: str = ""


class Seen(_Event, frozen=True):
    """An object of any other kind was added or changed."""

    found: Object


class Gone(_Event, frozen=True):
    """One was deleted; ``namespace`` is empty for what is in none."""

    kind: str
    namespace: str
    name: str


class EvictDone(_Event, frozen=True):
    """The API server has begun to delete a pod that was to be evicted, or knows it no more."""

    uid: str


class EvictFailed(_Event, frozen=True):
    """A pod that was to be evicted stays."""

    uid: str
    message: str


class DemandRecalled(_Event, frozen=True):
    """How fast pods leave, in departures per arrival, as an earlier leader has learnt it.

    Attributes:
        departures, horizon: of pods with devices, a mean over so many arrivals.
        plain_departures, plain_horizon: of pods without; over 0 where nothing is known of them.
    """

    departures: float
    horizon: int
    plain_departures: float = 0.0
    plain_horizon: int = 0


class PodAssumed(_Event, frozen=True):
    """A bind of the pod, with these cards and volumes, was under way before the engine made a fresh start."""

    uid: str
    node: str
    slots: Slots
    given: tuple[Given, ...] = ()


class PodNominated(_Event, frozen=True):
    """A pod was nominated to a node, and promised these cards, before the engine made a fresh start."""

    uid: str
    node: str
    cards: Slots = ()


class PodGoing(_Event, frozen=True):
    """A pod was on its way out to make room for another, likewise."""

    uid: str
    makes_room_for: str


class DemandKnown(_Event, frozen=True):
    """The demand that was known before the engine made a fresh start, see ``state/demand.py``."""

    demand: dict[str, Any]


Event = (
    PodSeen | PodGone | PodListBegins | PodListEnds | NodeSeen | NodeGone | NodeListEnds | BindDone
    | BindFailed | PluginSilent | Seen | Gone | EvictDone | EvictFailed | DemandRecalled | PodAssumed
    | PodNominated | PodGoing | DemandKnown
)  # fmt: skip


class PodsListed(_Event, frozen=True):
    """All unfinished pods of one stream as one list; a shell hands them in one by one.

    ``scheduler`` as in ``PodListBegins``.
    """

    pods: list[wire.Pod]
    scheduler: str


class NodesListed(_Event, frozen=True):
    """All nodes as one list, likewise."""

    nodes: list[wire.Node]


class Listed(_Event, frozen=True):
    """All objects of another kind as one list, likewise."""

    kind: str
    found: list[Object]


Heard = Event | PodsListed | NodesListed | Listed
