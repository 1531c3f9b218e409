"""What is read of the cluster, as a table: a line for every list and watch.

What there can be many of comes through a stream of its own (``streams``), because kopf takes a millisecond
for each event. What is rare is heard through kopf's handlers (``rare``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.door.events import Event, Heard
from scheduler.api.limits import PodLimits
from scheduler.api.names import GroupKind
from scheduler.api.storage import StorageObject
from scheduler.kube.rights import Right
from scheduler.kube.watch import kinds, listing
from scheduler.kube.watch.kinds import Kind
from scheduler.kube.watch.listing import Read

T = TypeVar("T")
Put = Callable[[Heard], None]

UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


class Way(Enum):
    """How a source is heard: by a stream of its own, or by kopf."""

    RAW = "raw"
    RARE = "rare"


class Words(NamedTuple, Generic[T]):
    """The events that a source's news become.

    Attributes:
        seen: of an object that was added or changed.
        gone: of one that was deleted, or is no longer under the selector; None where that is no news.
        listed: of all objects at once; None where each is an event of its own.
    """

    seen: Callable[[T], Event]
    gone: Callable[[T], Event] | None = None
    listed: Callable[[list[T]], Heard] | None = None

    def of_list(self, items: list[T]) -> list[Heard]:
        """What a list of all objects says."""
        return [self.listed(items)] if self.listed else [self.seen(one) for one in items]

    def of_change(self, item: T, *, is_gone: bool) -> list[Heard]:
        """What a change says; ``item`` is as it was last seen when it is gone."""
        if not is_gone:
            return [self.seen(item)]
        return [self.gone(item)] if self.gone else []


@dataclass(frozen=True, slots=True)
class Source(Generic[T]):
    """One line of the table.

    Attributes:
        name: what logs and metrics call it.
        kind: whose objects are read.
        way: how they are heard.
        selector: which of them, by field selector; empty for all.
        read: makes an object of its JSON.
        words: the events that the news become.
        needed_by: what cannot work without.
        absent: what is said once when the API server does not serve the kind; empty where it always does.
    """

    name: str
    kind: Kind
    way: Way
    selector: str
    read: Read[T]
    words: Words[T]
    needed_by: str
    absent: str = ""

    @property
    def params(self) -> dict[str, str]:
        """What to ask for in a list or watch."""
        return {"fieldSelector": self.selector} if self.selector else {}


def table(schedulers: tuple[str, ...], limits: PodLimits) -> tuple[Source[Any], ...]:
    """All sources, pods of ours first.

    Args:
        schedulers: the names that this process goes by. A field selector knows no "or", so each name has a
            source of its own, and that of other schedulers' pods leaves out all of them.
        limits: how much of a pod is read.
    """
    read_pod = listing.read_pod(limits)
    others = ",".join(("spec.nodeName!=", *(f"spec.schedulerName!={one}" for one in schedulers)))
    return (
        *(
            Source(
                "pods-ours" if len(schedulers) == 1 else f"pods-ours-{one}",
                kinds.PODS,
                Way.RAW,
                f"spec.schedulerName={one},{UNFINISHED}",
                read_pod,
                _pods(one),
                "the queue",
            )
            for one in schedulers
        ),
        Source(
            "pods-others",
            kinds.PODS,
            Way.RAW,
            f"{others},{UNFINISHED}",
            read_pod,
            _pods(""),
            "the free capacity of nodes",
        ),
        Source("nodes", kinds.NODES, Way.RAW, "", listing.read_node, _NODES, "every rule"),
        *(
            Source(
                kind.plural,
                kind,
                Way.RAW,
                "",
                read,
                _groups(group),
                "the default spread of pods",
            )
            for kind, group, read in _GROUPS
        ),
        *(
            Source(
                kind.plural,
                kind,
                Way.RAW,
                "",
                listing.read_storage(name),
                _storage(name),
                "pods with storage",
            )
            for name, kind in kinds.STORAGE.items()
        ),
        Source(
            "budgets",
            kinds.BUDGETS,
            Way.RAW,
            "",
            listing.read_budget,
            _BUDGETS,
            "which pods a budget protects from preemption",
        ),
        Source(
            "namespaces",
            kinds.NAMESPACES,
            Way.RARE,
            "",
            listing.read_plain,
            Words(_namespace_seen),
            "namespace selectors of BalancePolicies",
        ),
        Source(
            "policies",
            kinds.POLICIES,
            Way.RARE,
            "",
            listing.read_plain,
            Words(events.PolicySeen, _policy_gone),
            "placement by BalancePolicies",
            "the BalancePolicy CRD is not installed; pods are placed by the configuration",
        ),
    )


def reads(sources: Iterable[Source[Any]]) -> list[Right]:
    """The rights that it takes to read these."""
    read = dict.fromkeys(source.kind for source in sources)
    return [Right(verb, kind.group, kind.plural) for kind in read for verb in ("list", "watch")]


def _pods(scheduler: str) -> Words[wire.Pod]:
    return Words(
        events.PodSeen,
        lambda pod: events.PodGone(pod.metadata.uid),
        partial(events.PodsListed, scheduler=scheduler),
    )


_GROUPS: tuple[tuple[Kind, GroupKind, Read[Any]], ...] = (
    (kinds.SERVICES, GroupKind.SERVICE, listing.read_service),
    (
        kinds.REPLICATION_CONTROLLERS,
        GroupKind.REPLICATION_CONTROLLER,
        listing.read_service,
    ),
    (kinds.REPLICA_SETS, GroupKind.REPLICA_SET, listing.read_set),
    (kinds.STATEFUL_SETS, GroupKind.STATEFUL_SET, listing.read_set),
)


def _groups(kind: GroupKind) -> Words[wire.Service | wire.PodSet]:
    def seen(one: wire.Service | wire.PodSet) -> events.GroupSeen:
        meta = one.metadata
        return events.GroupSeen(kind, meta.namespace, meta.name, one.selector)

    return Words(
        seen,
        lambda one: events.GroupGone(kind, one.metadata.namespace, one.metadata.name),
        lambda found: events.GroupsListed(kind, list(map(seen, found))),
    )


def _storage(kind: str) -> Words[StorageObject]:
    def gone(one: StorageObject) -> events.StorageGone:
        return events.StorageGone(kind, one.metadata.namespace, one.metadata.name)

    return Words(events.StorageSeen, gone, partial(_storage_listed, kind))


def _storage_listed(kind: str, found: list[StorageObject]) -> Heard:
    return events.StorageListed(kind, found)


_BUDGETS: Words[wire.Budget] = Words(
    events.of_budget,
    lambda one: events.BudgetGone(one.metadata.namespace, one.metadata.name),
    lambda found: events.BudgetsListed(list(map(events.of_budget, found))),
)


_NODES: Words[wire.Node] = Words(
    events.NodeSeen, lambda node: events.NodeGone(node.metadata.name), events.NodesListed
)


def _namespace_seen(body: dict[str, Any]) -> Event:
    metadata = body["metadata"]
    return events.NamespaceSeen(metadata["name"], dict(metadata.get("labels") or {}))


def _policy_gone(body: dict[str, Any]) -> Event:
    return events.PolicyGone(body["metadata"]["name"])
