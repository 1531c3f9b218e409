"""Gathers like pods in few domains of a level, and within these in few of each narrower level."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.placing.groups import choosing
from scheduler.placing.groups.choices import Part
from scheduler.placing.groups.domains import Domains
from scheduler.schema import columns as c
from scheduler.state.pods import PodRecord


def share_in_few(
    domains: Domains,
    labels: tuple[str, ...],
    pods: list[PodRecord],
    places: c.Ints,
    among: c.Flags,
) -> Iterator[Part]:
    """Yield which pods go to which nodes; pods in a row go to the same domain.

    Args:
        domains: the domains of the cluster.
        labels: the labels down to the level.
        pods: the pods.
        places: [N] how many of them fit on each node at most.
        among: [N] the only nodes that may be chosen; [0] for all.
    """
    level, inner, at = domains.get_level(labels), domains.list_inner(labels), 0
    sums = choosing.sum_places(places, level.domain, len(level.names), among)
    for number, n in choosing.share_out(sums, len(pods)):
        part, rows = pods[at : at + n], level.domain == number
        rows = rows & among if among.size else rows
        at += n
        if inner:
            yield from share_in_few(domains, (*labels, inner[0]), part, places, rows)
        else:
            yield Part(part, rows)
    if at < len(pods):
        # Nodes without the label are in no domain.
        yield Part(pods[at:], among)
