"""What is read from the cluster: a source for every list and watch, made from the table of kinds.

Kinds that can have many objects come through streams of their own (``streams``), because kopf takes a millisecond
for each event. Rare kinds come through kopf's handlers (``rare``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from scheduler.api import kinds, steering
from scheduler.api.door import events
from scheduler.api.door.events import Event, Heard
from scheduler.api.kind import Kind
from scheduler.api.limits import PodLimits
from scheduler.kube.watch import listing
from scheduler.kube.watch.listing import Read

T = TypeVar("T")
Put = Callable[[Heard], None]

_NOT_FAILED = "status.phase!=Failed"
UNFINISHED = f"status.phase!=Succeeded,{_NOT_FAILED}"


@dataclass(frozen=True, slots=True)
class Source(Generic[T]):
    """A list and watch.

    Attributes:
        name: the name in logs and metrics.
        kind: the kind whose objects are read.
        read: makes an object from its JSON.
        selector: a field selector for some of the objects; empty for all.
        scheduler: for pods of ours, their scheduler name; for an object that is read by itself, its key; empty for pods of
            other schedulers, and for other kinds.
    """

    name: str
    kind: Kind
    read: Read[T]
    selector: str = ""
    scheduler: str = ""

    def find_path(self, kind: Kind) -> str:
        """Find the path of the objects; ``kind`` is the kind in the version that the API server serves."""
        if self.kind == kinds.CONFIG_MAPS:
            return kind.find_list_path(kinds.split_key(self.scheduler)[0])
        return kind.path

    @property
    def params(self) -> dict[str, str]:
        """The parameters of a list or watch."""
        return {"fieldSelector": self.selector} if self.selector else {}

    def make_page_event(self, found: list[Any], *, is_first: bool, is_last: bool) -> Heard:
        """Return the event of a page of a list of all objects."""
        return events.Page(self.kind.name, found, self.scheduler, is_first, is_last)

    def make_change_event(self, found: Any, *, is_gone: bool) -> Event:
        """Return the event of a change. An object that is gone, or no longer under the selector, is as it was last."""
        if is_gone:
            return events.Gone(self.kind.name, kinds.make_key(found))
        return events.Seen(found)


def make_table(
    schedulers: tuple[str, ...],
    limits: PodLimits,
    *,
    with_queues: bool = False,
    with_kai: bool = False,
    config_maps: Iterable[str] = (),
) -> tuple[Source[Any], ...]:
    """Return all sources, those of our pods first.

    Args:
        schedulers: the scheduler names of this process. A field selector has no "or", so each name has a
            source of its own, and the source of other schedulers' pods excludes all of these names.
        limits: how much of a pod is read.
        with_queues: whether Kueue's queues are managed.
        with_kai: whether KAI's queues are managed.
        config_maps: the ConfigMaps that are read, by their keys.
    """
    of_queues = kinds.OF_QUEUES if with_queues else ()
    of_kai = kinds.OF_KAI if with_kai else ()
    return (
        *_make_pod_sources(schedulers, limits),
        *(
            Source(kind.stream or kind.plural, kind, listing.make_reader(kind))
            for kind in (*kinds.WATCHED, *of_queues, *of_kai)
            if kind != kinds.PODS
        ),
        *(_make_map_source(i, key) for i, key in enumerate(config_maps)),
    )


def _make_map_source(i: int, key: str) -> Source[steering.ConfigMap]:
    """Make the source of one ConfigMap: a Role can give the right to read it, and no other."""
    kind = kinds.CONFIG_MAPS
    selector = f"metadata.name={kinds.split_key(key)[1]}"
    name = f"{kind.plural}-{i + 1}" if i else kind.plural
    return Source(name, kind, listing.make_reader(kind), selector, key)


def _make_pod_sources(schedulers: tuple[str, ...], limits: PodLimits) -> Iterable[Source[Any]]:
    read = listing.make_pod_reader(limits)
    for one in schedulers:
        name = "pods-ours" if len(schedulers) == 1 else f"pods-ours-{one}"
        # A pod that leaves a stream shows what it was before, so whether it has succeeded would not be seen.
        yield Source(name, kinds.PODS, read, f"spec.schedulerName={one},{_NOT_FAILED}", one)
    others = ",".join(("spec.nodeName!=", *(f"spec.schedulerName!={one}" for one in schedulers)))
    yield Source("pods-others", kinds.PODS, read, f"{others},{UNFINISHED}")
