"""What the rules of another system choose from for a team, and what they say: which of its pods go to which nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from scheduler.placing.groups.domains import Domains
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Team
from scheduler.state.pods import PodRecord

# Counts [N] how many pods like one fit on each node at most; beside another one, if there is one.
CountPlaces = Callable[[PodRecord, PodRecord | None], c.Ints]


class Part(NamedTuple):
    """Pods that go to some nodes; ``rows`` [N] are the nodes."""

    pods: list[PodRecord]
    rows: c.Flags


class Choice(NamedTuple):
    """What there is to choose.

    Attributes:
        team: the team, which has a constraint.
        waiting: the leaves of the team with their waiting pods, in order.
        count_places: counts the places for a pod.
        among: [N] the only nodes that count; [0] for all nodes.
    """

    cluster: Cluster
    domains: Domains
    team: Team
    waiting: list[tuple[Team, list[PodRecord]]]
    count_places: CountPlaces
    among: c.Flags
