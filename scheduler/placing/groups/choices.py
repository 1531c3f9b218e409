"""What the rules of another system choose from for a team, and what they say: which of its pods go to which nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from scheduler.api.door.decisions import Bind, Detail, Hold, Outcome
from scheduler.placing.groups.domains import Domains
from scheduler.schema import columns as c
from scheduler.schema.world import ANY_ROWS, ANYWHERE
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Team
from scheduler.state.pods import PodRecord

# Counts [N] how many pods like one fit on each node at most; beside another one, if there is one.
CountPlaces = Callable[[PodRecord, PodRecord | None], c.Ints]


class PlacePods(Protocol):
    """Decides for each of some pods by itself."""

    def __call__(self, pods: list[PodRecord], among: c.Flags, wanted: c.Ints = ANY_ROWS) -> Outcome:
        """Place pods [k] among rows [N], [0] for all; each on its own row of ``wanted`` [k] if there are any."""


class Part(NamedTuple):
    """Pods that go to some nodes.

    Attributes:
        rows: [N] the nodes; not read if there is only one.
        row: the row of the only node; -1 if there may be several.
    """

    pods: list[PodRecord]
    rows: c.Flags
    row: int = -1


class Step(NamedTuple):
    """Parts that are placed before the next step is planned.

    Attributes:
        parts: the pods that have a place.
        left: the pods that have none.
        said: why these have none, or why the pods of the parts may go nowhere else; without its full stop.
    """

    parts: list[Part]
    left: list[PodRecord]
    said: str = ""


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


# Says by the rules of another system in which steps the pods of a team go to nodes; none: it finds no place for all.
Assign = Callable[[Choice], Iterable[Step]]


def join_parts(parts: list[Part]) -> Iterator[tuple[list[PodRecord], c.Flags, c.Ints]]:
    """Yield the pods of parts with the rows among which they go, or, for parts of one row each, the row of each pod."""
    pods: list[PodRecord] = []
    wanted: list[int] = []
    for part in parts:
        row = part.row
        if row < 0 and np.count_nonzero(part.rows) == 1:
            row = int(part.rows.argmax())
        if row >= 0:
            pods += part.pods
            wanted += [row] * len(part.pods)
            continue
        if pods:
            yield pods, ANYWHERE, np.array(wanted, np.int64)
            pods, wanted = [], []
        yield part.pods, part.rows, ANY_ROWS
    if pods:
        yield pods, ANYWHERE, np.array(wanted, np.int64)


def place_step(step: Step, place_pods: PlacePods) -> tuple[list[Bind], list[Hold]]:
    """Place the pods of a step; return the binds, and why the others wait."""
    binds: list[Bind] = []
    holds = [Hold(pod.uid, said=f"{step.said}.") for pod in step.left]
    for pods, rows, wanted in join_parts(step.parts):
        tried = place_pods(pods, rows, wanted)
        binds += tried.binds
        holds += [_add_detail(hold, step.said) for hold in tried.holds]
    return binds, holds


def _add_detail(hold: Hold, said: str) -> Hold:
    why = hold.diagnosis
    if not said or why is None:
        return hold
    detail = Detail("where the others are", said)
    return replace(hold, diagnosis=replace(why, details=(detail, *why.details)))
