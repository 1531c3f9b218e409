"""Teams of stand-ins: a pod set is one, or as many as it has lots, each of which goes to its own domain."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from scheduler.state.entities import Team, Where
from scheduler.state.pods import PodRecord
from scheduler.tenancy.assignments import SetAssignment


def make_teams(given: SetAssignment, pods: Sequence[PodRecord], where: Where | None) -> list[Team]:
    """Make the team of the stand-ins of a pod set; one for each lot if lots say where they go."""
    lots = given.lots
    if not any(lot.where for lot in lots):
        return [_make_team(given.name, pods, where)]
    starts = accumulate((lot.n_pods for lot in lots), initial=0)
    return [
        _make_team(given.name, pods[start : start + lot.n_pods], lot.where)
        for lot, start in zip(lots, starts, strict=False)
    ]


def _make_team(name: str, pods: Sequence[PodRecord], where: Where | None) -> Team:
    """Make a team that needs places for all of its pods at once."""
    first = pods[0].template
    return Team(
        name=name,
        minimum=len(pods),
        pods=tuple(pods),
        ranks=tuple(range(len(pods))),
        template=first if all(pod.template is first for pod in pods) else None,
        where=where,
        n_short=len(pods),
    )
