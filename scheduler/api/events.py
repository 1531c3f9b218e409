"""What reaches the loop: always whole objects, never deltas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scheduler.api import wire


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod was added or changed."""

    pod: wire.Pod


@dataclass(frozen=True, slots=True)
class PodGone:
    """A pod was deleted, or finished and so left the stream."""

    uid: str


@dataclass(frozen=True, slots=True)
class PodsListed:
    """All unfinished pods of ours, or of others."""

    pods: list[wire.Pod]
    ours: bool


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A node was added or changed."""

    node: wire.Node


@dataclass(frozen=True, slots=True)
class NodeGone:
    """A node was deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class NodesListed:
    """All nodes."""

    nodes: list[wire.Node]


@dataclass(frozen=True, slots=True)
class BindDone:
    """The API server has bound the pod."""

    uid: str


@dataclass(frozen=True, slots=True)
class BindFailed:
    """The pod is not bound, and not by us: ``gone`` when it no longer exists."""

    uid: str
    message: str
    gone: bool = False


@dataclass(frozen=True, slots=True)
class PluginSilent:
    """The device plugin of a node does not answer any more, or does again.

    ``waits_for`` is the uid of the pod that it was asked to serve, empty when nobody can say.
    """

    node: str
    silent: bool
    waits_for: str = ""


@dataclass(frozen=True, slots=True)
class PolicySeen:
    """A BalancePolicy was added or changed; the raw object."""

    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PolicyGone:
    """A BalancePolicy was deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class NamespaceSeen:
    """A namespace was added or changed."""

    name: str
    labels: dict[str, str]


Event = (
    PodSeen | PodGone | PodsListed | NodeSeen | NodeGone | NodesListed
    | BindDone | BindFailed | PluginSilent | PolicySeen | PolicyGone | NamespaceSeen
)  # fmt: skip
