"""What is read of the cluster: a source for every list and watch, made of the table of kinds.

What there can be many of comes through a stream of its own (``streams``), because kopf takes a millisecond
for each event. What is rare is heard through kopf's handlers (``rare``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from scheduler.api import kinds
from scheduler.api.door import events
from scheduler.api.door.events import Event, Heard
from scheduler.api.kinds import Kind
from scheduler.api.limits import PodLimits
from scheduler.kube.watch import listing
from scheduler.kube.watch.listing import Read

T = TypeVar("T")
Put = Callable[[Heard], None]

UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


@dataclass(frozen=True, slots=True)
class Source(Generic[T]):
    """A list and watch.

    Attributes:
        name: what logs and metrics call it.
        kind: whose objects are read.
        read: makes an object of its JSON.
        selector: which of them, by field selector; empty for all.
        scheduler: of pods, the one of our names that they give; empty for pods of others.
    """

    name: str
    kind: Kind
    read: Read[T]
    selector: str = ""
    scheduler: str = ""

    @property
    def params(self) -> dict[str, str]:
        """What to ask for in a list or watch."""
        return {"fieldSelector": self.selector} if self.selector else {}

    def tell_page(self, found: list[Any], *, is_first: bool, is_last: bool) -> Heard:
        """What a page of a list of all objects says."""
        return events.Page(self.kind.name, found, self.scheduler, is_first, is_last)

    def tell_change(self, found: Any, *, is_gone: bool) -> Event:
        """What a change says; ``found`` is as it was last seen when it is gone or no longer under the selector."""
        if is_gone:
            return events.Gone(self.kind.name, kinds.make_key(found))
        return events.Seen(found)


def table(schedulers: tuple[str, ...], limits: PodLimits) -> tuple[Source[Any], ...]:
    """All sources, pods of ours first.

    Args:
        schedulers: the names that this process goes by. A field selector knows no "or", so each name has a
            source of its own, and that of other schedulers' pods leaves out all of them.
        limits: how much of a pod is read.
    """
    return (
        *_of_pods(schedulers, limits),
        *(
            Source(kind.stream or kind.plural, kind, listing.reader(kind))
            for kind in kinds.WATCHED
            if kind != kinds.PODS
        ),
    )


def _of_pods(schedulers: tuple[str, ...], limits: PodLimits) -> Iterable[Source[Any]]:
    read = listing.read_pod(limits)
    for one in schedulers:
        name = "pods-ours" if len(schedulers) == 1 else f"pods-ours-{one}"
        yield Source(name, kinds.PODS, read, f"spec.schedulerName={one},{UNFINISHED}", one)
    others = ",".join(("spec.nodeName!=", *(f"spec.schedulerName!={one}" for one in schedulers)))
    yield Source("pods-others", kinds.PODS, read, f"{others},{UNFINISHED}")
