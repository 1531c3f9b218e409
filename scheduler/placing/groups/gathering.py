"""Gathers pods in few domains of a level, and within these in few of each narrower level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from scheduler.placing.groups import choosing
from scheduler.placing.groups.choices import Part
from scheduler.placing.groups.domains import Domains
from scheduler.placing.groups.ordering import Kind, order_domains
from scheduler.schema import columns as c
from scheduler.state.entities import Team
from scheduler.state.pods import PodRecord

# Of each level so many domains are tried at most for pods that are unlike: each kind of them has places enough there.
_TRIED_MAX = 4


class Close(NamedTuple):
    """A domain that may take all pods of a team.

    Attributes:
        labels: the labels down to the next narrower level, or to its own level if that is the narrowest.
        rows: [N] its nodes.
    """

    labels: tuple[str, ...]
    rows: c.Flags


def has_own_places(team: Team) -> bool:
    """Whether a team within a team says itself where its pods go."""
    return any(one.where is not None for one in team.list_all() if one is not team)


def list_close(
    domains: Domains,
    labels: tuple[tuple[str, ...], tuple[str, ...]],
    kinds: Sequence[Kind],
    among: c.Flags,
) -> Iterator[Close]:
    """Yield the domains that may take all kinds of pods of a team, those of the narrowest level first.

    Args:
        domains: the domains of the cluster.
        labels: the labels down to the domain within which the pods go, and those of the narrower levels.
        kinds: the pods.
        among: [N] the only nodes that may be chosen; [0] for all.
    """
    around, inner = labels
    kinds = [one._replace(least=len(one.pods)) for one in kinds]
    for n in range(len(inner), 0, -1):
        down = (*around, *inner[:n])
        level = domains.get_level(down)
        order, _ = order_domains(domains, down, kinds, among)
        for number in order[:_TRIED_MAX].tolist():
            rows = level.domain == number
            yield Close((*down, *inner[n : n + 1]), rows & among if among.size else rows)


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
