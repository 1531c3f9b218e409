"""Splits a batch into runs of like pods; each run goes to the placing kernel as one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from scheduler.shapes.boards import Key
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord


def split_runs(
    batch: Sequence[PodRecord], key_of: Callable[[PodRecord], Key | None], cluster: Cluster
) -> Iterator[tuple[Key | None, list[PodRecord]]]:
    """Yield like pods that follow each other as one run, with their key.

    The caller places a run before it asks for the next one.
    """
    key: Key | None = None
    run: list[PodRecord] = []
    nominations, is_alone = cluster.nominations, False
    for pod in cluster.pauses.go_through(batch):
        now = key_of(pod)
        is_single = key is not None and key.view.is_single
        if run and (now != key or is_single or is_alone or nominations.find_node(pod.uid)):
            version = nominations.version
            yield key, run
            # The key may differ now. The placed pods may have terms about this pod, or may have been given the volumes
            # that its claims would be given; or room was promised to a pod.
            is_other = cluster.terms.has_owners or (now is not None and now.view.is_single)
            if is_other or nominations.version != version:
                now = key_of(pod)
            run = []
        key = now
        run.append(pod)
        is_alone = bool(nominations.find_node(pod.uid))
    if run:
        yield key, run
