"""Notes that the engine returns with its decisions: people read them, and shells act on them.

Notes name pods and nodes by uid or name; everything else about these is in the engine's state.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api import wire
from scheduler.api.groups.definitions import GroupKey
from scheduler.api.hami_config.maps import DeviceSettings


class Left(NamedTuple):
    """A pod is finished or gone: nothing more is done or reported for it."""

    uid: str


class Scheduled(NamedTuple):
    """The API server has bound one of our pods as decided."""

    uid: str


class Retried(NamedTuple):
    """A bind failed and the pod waits again; ``message`` says why."""

    uid: str
    message: str


class NodeRead(NamedTuple):
    """A node was read anew: what is malformed on it may have changed."""

    name: str


class PodBound(NamedTuple):
    """A pod with a node, or its node's cards, was read anew: what is malformed on it may have changed."""

    uid: str


class PolicyJudged(NamedTuple):
    """A BalancePolicy was read; ``problem`` is empty when it is in force, ``remark`` says if a part of it is not."""

    name: str
    generation: int
    problem: str
    remark: str


class PolicyLeft(NamedTuple):
    """A BalancePolicy was deleted."""

    name: str


class QueueRead(NamedTuple):
    """An object of queues was read; ``problem`` says which field is wrong and what is allowed, and is empty if none is.

    Attributes:
        kind: the name of its kind in the table of kinds.
        key: its name, with its namespace if it has one.
    """

    kind: str
    key: str
    generation: int
    problem: str


class DeviceMapRead(NamedTuple):
    """A ConfigMap of HAMi's was read; ``problem`` says which key and field is wrong, and is empty if none is.

    Attributes:
        key: its namespace and name.
        taken: what HAMi is configured with from now on; None if nothing has changed. Pods and nodes have to be seen again.
    """

    key: str
    meta: wire.Meta
    problem: str
    taken: DeviceSettings | None = None


class DeviceMapLeft(NamedTuple):
    """A ConfigMap of HAMi's was deleted; what it said stays in force."""

    key: str


class SpaceQuotaRead(NamedTuple):
    """A ResourceQuota was read; ``problem`` says which field is wrong, and is empty if none is."""

    key: str
    meta: wire.Meta
    problem: str


class SpaceQuotaLeft(NamedTuple):
    """A ResourceQuota was deleted."""

    key: str


class DevicesRead(NamedTuple):
    """An object about devices was read; ``problem`` says which field is wrong, and is empty if none is any more.

    Attributes:
        kind: the name of its kind in the table of kinds.
    """

    kind: str
    key: str
    meta: wire.Meta
    problem: str


class DevicesLeft(NamedTuple):
    """An object about devices that could not be read was deleted."""

    kind: str
    key: str


class PluginFellSilent(NamedTuple):
    """The device plugin of a node does not answer; ``waits_for`` is the pod it was asked to serve, or empty."""

    node: str
    waits_for: str


class GroupHeld(NamedTuple):
    """A group may not be tried, as something is missing or wrong; ``uid`` is the pod that stands for it.

    ``is_wrong``: a person must mend something; else the group only waits for it.
    """

    group: GroupKey
    uid: str
    why: str
    is_wrong: bool


class HeldByQueue(NamedTuple):
    """A pod or group waits for its queue, one of KAI's; ``uid`` is the pod that stands for it.

    Attributes:
        group: the key of the group; None for a pod by itself.
        reason: in KAI's words.
        why: what is missing, for people.
    """

    group: GroupKey | None
    uid: str
    reason: str
    why: str


class PromiseEnded(NamedTuple):
    """A group has room that was promised room for a later time; ``is_kept``: by that time."""

    group: GroupKey
    is_kept: bool


class Backfilled(NamedTuple):
    """A pod was placed where room is promised for later to a group that comes before it: it does not delay the group."""

    uid: str


Note = (
    Backfilled
    | GroupHeld
    | HeldByQueue
    | PromiseEnded
    | Left
    | Scheduled
    | Retried
    | NodeRead
    | PodBound
    | PolicyJudged
    | PolicyLeft
    | QueueRead
    | DeviceMapRead
    | DeviceMapLeft
    | SpaceQuotaRead
    | SpaceQuotaLeft
    | DevicesRead
    | DevicesLeft
    | PluginFellSilent
)
