"""Counts the use of storage again from pods, claims and attachments, and compares it with the kept counts."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.state.nodes import NodeTable
from scheduler.state.pods import PodRecord
from scheduler.state.volumes.store import Storage
from scheduler.state.volumes.uses import Uses


def find_difference(
    storage: Storage, nodes: NodeTable, on_nodes: Iterable[tuple[int, PodRecord]]
) -> str:
    """Describe the first count that is wrong; empty when all are right. ``on_nodes``: charged pods, with their rows."""
    there = list(on_nodes)
    again = Uses(nodes)
    for node, drivers in storage.uses.drivers.items():
        again.take_in(node, drivers)
    for node, handle in storage.list_attached():
        again.attach(node, handle, 1)
    for key, claim in storage.claims.items():
        again.note_handle(key, storage.find_handle(claim))
    for row, pod in there:
        again.follow_pod(pod, row, 1)
    kept, counted = storage.uses.list_counts(), again.list_counts()
    if kept != counted:
        return f"storage in use is {kept}, counted again it is {counted}"
    given = {
        (pod.namespace, one.claim, one.volume or pod.node) for _, pod in there for one in pod.given
    }
    return (
        ""
        if storage.list_given() == given
        else f"claims are given {storage.list_given()}, pods {given}"
    )
