"""Events that reach the engine: always whole objects, never deltas.

An engine's log has the events as they are, so they hold only texts and figures.
"""

from __future__ import annotations

from typing import Any

import msgspec

from scheduler.api import kai, kueue, steering, wire
from scheduler.api.cards import Grants
from scheduler.api.claims.objects import DeviceObject
from scheduler.api.groups import objects
from scheduler.api.groups.definitions import GroupKey
from scheduler.api.storage import Given, StorageObject

# The objects of all kinds that are watched; each names its kind.
Object = (
    wire.Pod | wire.Node | steering.PeerObject | steering.PodDisruptionBudget | steering.Namespace
    | steering.BalancePolicy | steering.ConfigMap | steering.ResourceQuota | StorageObject | DeviceObject | objects.GroupObject | objects.TopologyObject | kueue.QueueObject
    | kai.Queue
)  # fmt: skip


class _Event(msgspec.Struct, frozen=True, tag=True, gc=False):
    pass


class Seen(_Event, frozen=True):
    """An object was added or changed."""

    found: Object


class Gone(_Event, frozen=True):
    """An object was deleted, or left its stream as finished pods do; ``key`` as in ``kinds``."""

    kind: str
    key: str


class ListBegins(_Event, frozen=True):
    """A list of all objects of a kind begins; changes of other objects may come before it ends.

    A list of pods has all pods of one stream: ``scheduler`` is our scheduler name that these pods have, and is empty for
    the bound pods of other schedulers. Pods that have failed are in none, and those that have succeeded only in ours. A
    list that broke off begins again and does not end twice.
    """

    kind: str
    scheduler: str = ""


class ListEnds(_Event, frozen=True):
    """The list is complete, and objects that were not in it have been reported gone."""

    kind: str
    scheduler: str = ""


class BindDone(_Event, frozen=True):
    """The API server has bound the pod."""

    uid: str


class BindFailed(_Event, frozen=True):
    """The bind failed and the pod is not bound.

    Attributes:
        uid: the uid of the pod.
        message: why.
        gone: the pod was deleted meanwhile.
        behind: the node before which the pod waited for its turn, if the turn did not come; else empty.
        claims: the ResourceClaims that the bind may have written: namespace, name, and the version after the last
            write, empty if that is not known.
    """

    uid: str
    message: str
    gone: bool = False
    behind: str = ""
    claims: tuple[tuple[str, str, str], ...] = ()


class PluginSilent(_Event, frozen=True):
    """The device plugin of a node stopped answering, or answers again.

    ``waits_for`` is the uid of the pod that it was asked to serve, empty when that is unknown.
    """

    node: str
    silent: bool
    waits_for: str = ""


class CardsOnProbation(_Event, frozen=True):
    """Cards of a node, by id, that were ill before the engine made a fresh start; no new pod gets them until these times."""

    node: str
    until: dict[str, float]


class EvictDone(_Event, frozen=True):
    """The API server has begun to delete a pod that was to be evicted, or no longer knows the pod."""

    uid: str


class EvictFailed(_Event, frozen=True):
    """A pod that was to be evicted stays; ``is_refused``: the Eviction API does not let it go."""

    uid: str
    message: str
    is_refused: bool = False


class DemandRecalled(_Event, frozen=True):
    """How fast pods leave, in departures per arrival, as an earlier leader learnt it.

    Attributes:
        departures, horizon: the mean of pods with devices, and the number of arrivals that it is over.
        plain_departures, plain_horizon: likewise of pods without devices; the horizon is 0 if nothing is known.
    """

    departures: float
    horizon: int
    plain_departures: float = 0.0
    plain_horizon: int = 0


class PodAssumed(_Event, frozen=True):
    """A bind of the pod, with these cards and volumes, was under way before the engine made a fresh start."""

    uid: str
    node: str
    devices: Grants
    given: tuple[Given, ...] = ()


class PodNominated(_Event, frozen=True):
    """A pod was nominated to a node, and was promised these cards, before the engine made a fresh start."""

    uid: str
    node: str
    cards: Grants = ()


class PodGoing(_Event, frozen=True):
    """A pod was being evicted to make room for another pod before the engine made a fresh start."""

    uid: str
    makes_room_for: str


class PodRefused(_Event, frozen=True):
    """The eviction of a pod was refused before the engine made a fresh start; until then it is not tried again."""

    uid: str
    until: float


class PromisedLater(_Event, frozen=True):
    """A group was promised room for a later time before the engine made a fresh start, see ``state/later.py``."""

    entity: str
    until: float
    ends_by: float
    on: dict[str, tuple[str, ...]]
    doubted: tuple[str, ...] = ()
    domain: tuple[str, tuple[str, ...]] = ("", ())


class MemberSucceeded(_Event, frozen=True):
    """A pod of a group had succeeded before the engine made a fresh start, see ``state/groups/successes.py``."""

    uid: str
    name: str
    group: GroupKey
    part: str
    index: int
    scheduler: str
    is_deleted: bool


class AdmitDone(_Event, frozen=True):
    """The API server knows that a workload has quota; ``key`` is its namespace and name."""

    key: str


class AdmitFailed(_Event, frozen=True):
    """A workload could not be given its quota."""

    key: str
    message: str


class PreemptFailed(_Event, frozen=True):
    """A workload could not be asked to give its quota back, or to do another step.

    Attributes:
        keeps_quota: whether the step had nothing to do with its quota.
    """

    key: str
    message: str
    keeps_quota: bool = False


class QueuesHeld(_Event, frozen=True):
    """Another program manages the queues, or no longer does: as long as it does, nothing is decided about quota."""

    is_held: bool


class KaiQueuesHeld(_Event, frozen=True):
    """Another scheduler decides for KAI's queues, or no longer does: as long as it does, nothing in them is decided.

    Attributes:
        by: says who it is; empty if there is none.
        is_known: whether that is known, or only not ruled out yet: then nothing is said to users.
    """

    by: str
    is_known: bool = True


class GroupsAsked(_Event, frozen=True):
    """Somebody asked about groups, so that those that had changed were formed before the next decision."""


class QuotaGiven(_Event, frozen=True):
    """A workload had been given quota that its object did not have yet before the engine made a fresh start.

    Attributes:
        key: its namespace and name.
        queue: the queue of the cluster.
        amounts: (flavor, resource, amount in base units).
    """

    key: str
    queue: str
    amounts: tuple[tuple[str, str, int], ...]


class QuotaGoing(_Event, frozen=True):
    """A workload was to give its quota back before the engine made a fresh start."""

    key: str


class GaveWay(_Event, frozen=True):
    """For which workloads one had given quota back before the engine made a fresh start, and others for it.

    Attributes:
        key: the workload.
        given: the keys and uids of those for which it had given quota back.
        is_owed: others had given quota back for it, and it had not got any since.
    """

    key: str
    given: tuple[tuple[str, str], ...]
    is_owed: bool


class StepGoing(_Event, frozen=True):
    """The next step of a workload was being carried out before the engine made a fresh start."""

    key: str


class UsageKnown(_Event, frozen=True):
    """What a local queue had used before the engine made a fresh start, see ``tenancy/history.py``."""

    local: str
    account: dict[str, Any]


class ShareUsageKnown(_Event, frozen=True):
    """What KAI's queues had used before the engine made a fresh start, see ``tenancy/kai/usage.py``."""

    known: dict[str, Any]


class DemandKnown(_Event, frozen=True):
    """The demand that was known before the engine made a fresh start, see ``state/demand.py``."""

    demand: dict[str, Any]


Event = (
    Seen | Gone | ListBegins | ListEnds | BindDone | BindFailed | PluginSilent | CardsOnProbation | EvictDone | EvictFailed
    | DemandRecalled | PodAssumed | PodNominated | PodGoing | PodRefused | PromisedLater | MemberSucceeded | DemandKnown
    | GroupsAsked | AdmitDone | AdmitFailed | PreemptFailed | QueuesHeld | KaiQueuesHeld | QuotaGiven | QuotaGoing | StepGoing
    | GaveWay | UsageKnown | ShareUsageKnown
)  # fmt: skip


class Page(_Event, frozen=True):
    """A part of a list of all objects of a kind, or of all pods of one stream; a shell hands the parts in one by one.

    A list that breaks off has no last page, and the list that follows has a first page again.
    """

    kind: str
    found: list[Object]
    scheduler: str = ""
    is_first: bool = True
    is_last: bool = True


Heard = Event | Page
