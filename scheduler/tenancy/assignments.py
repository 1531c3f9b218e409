"""What flavors a workload would get, and why not: values that the cycle hands on.

Source: Kueue (2026-08), ``flavorassigner.Assignment``, ``FlavorAssignmentAttempt`` and ``resolveNoFitReason``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from scheduler.api.queues.definitions import ResourceGroup
from scheduler.state.entities import Where
from scheduler.tenancy.trees import Column


class Mode(IntEnum):
    """How an amount could be had, the worst first."""

    NO_FIT = 0
    # Others could make room, but nobody may be asked to.
    NO_CANDIDATES = 1
    # Somebody of the same queue would have to go, too.
    PREEMPT = 2
    RECLAIM = 3
    # Fits once those have gone that somebody else has asked to.
    DEFERRED = 4
    FIT = 5


class Reason(IntEnum):
    """Why no flavor would do, the least severe first."""

    NONE = 0
    TOPOLOGY = 1
    WAITS = 2
    EXCEEDS = 3
    NO_MATCH = 4

    @property
    def word(self) -> str:
        """The reason in Kueue's conditions."""
        return _WORDS[self]


_WORDS = {
    Reason.NONE: "",
    Reason.TOPOLOGY: "TopologyPlacementFailed",
    Reason.WAITS: "WaitingForQuota",
    Reason.EXCEEDS: "ExceedsMaxQuota",
    Reason.NO_MATCH: "NoMatchingFlavor",
}
_OVERALL = (Mode.PREEMPT, Mode.FIT)


class Chosen(NamedTuple):
    """A flavor for a resource.

    Attributes:
        flavor: its name.
        mode: how the amount could be had.
        height: how high in the tree the queue borrows.
        tried: its place among the flavors of its group, after which a later try goes on; -1 to begin anew.
    """

    flavor: str
    mode: Mode
    height: int
    tried: int = -1


class Attempt(NamedTuple):
    """A flavor that was looked at, and what came of it."""

    flavor: str
    mode: Mode
    height: int
    reasons: tuple[str, ...]
    why: Reason

    def merge(self, other: Attempt) -> Attempt:
        """Return the worse of both, with the reasons of both."""
        return Attempt(
            self.flavor,
            min(self.mode, other.mode),
            max(self.height, other.height),
            tuple(sorted({*self.reasons, *other.reasons})),
            max(self.why, other.why),
        )

    def refuse(self, reason: str) -> Attempt:
        """Return an attempt that fails for one more reason."""
        reasons = tuple(sorted({*self.reasons, reason}))
        return self._replace(mode=Mode.NO_FIT, reasons=reasons, why=Reason.NO_MATCH)


class Lot(NamedTuple):
    """Pods of a pod set that go to one domain.

    Attributes:
        n_pods: how many.
        selector: the labels of the nodes of the domain; none for all nodes.
        where: where they go within the domain; None: to any of its nodes.
    """

    n_pods: int
    selector: Mapping[str, str]
    where: Where | None = None


@dataclass(slots=True, kw_only=True)
class SetAssignment:
    """What a pod set would get: the flavor of each resource, and what all its pods ask for.

    ``lots`` say to which domains its pods go, if others of its workload are there or it was given them before.
    """

    name: str
    n_pods: int
    flavors: Mapping[str, Chosen]
    requests: Mapping[str, int]
    reasons: Sequence[str]
    attempts: Sequence[Attempt]
    lots: Sequence[Lot] = ()

    @property
    def mode(self) -> Mode:
        """The worst mode of all resources, as far as it matters: nothing fits, somebody has to go, or all fit."""
        if not self.reasons:
            return Mode.FIT
        if not self.flavors:
            return Mode.NO_FIT
        return min(generalize(one.mode) for one in self.flavors.values())


def generalize(mode: Mode) -> Mode:
    """Return a mode without the difference of who would have to go."""
    if mode in {Mode.NO_CANDIDATES, Mode.RECLAIM}:
        return Mode.PREEMPT
    return mode


@dataclass(slots=True)
class Assignment:
    """What a workload would get.

    Attributes:
        sets: its pod sets, as far as the walk came.
        usage: what it would use, by column.
        height: how high in the tree its queue would borrow.
        why: why no flavor would do.
        is_deferred: it fits once those have gone that somebody else has asked to.
        lacks_place: it has quota, and there is no place for all its pods.
        is_blocked: others could give its quota back, and still there would be no place for all its pods.
        place_problem: why there would be no place even if all nodes were free.
    """

    sets: list[SetAssignment] = field(default_factory=list)
    usage: dict[Column, int] = field(default_factory=dict)
    height: int = 0
    why: Reason = Reason.NONE
    is_deferred: bool = False
    lacks_place: bool = False
    is_blocked: bool = False
    place_problem: str = ""

    def add(self, one: SetAssignment) -> None:
        """Add what a pod set gets."""
        self.sets.append(one)
        for resource, chosen in one.flavors.items():
            self.height = max(self.height, chosen.height)
            column = chosen.flavor, resource
            self.usage[column] = self.usage.get(column, 0) + one.requests.get(resource, 0)

    @property
    def mode(self) -> Mode:
        """The worst mode of all pod sets."""
        if self.is_deferred:
            return Mode.DEFERRED
        if self.lacks_place:
            return Mode.PREEMPT
        return min((one.mode for one in self.sets), default=Mode.NO_FIT)

    @property
    def tried(self) -> list[dict[str, int]]:
        """The place of the flavor after which a later try goes on, of each resource of each pod set."""
        return [
            {resource: chosen.tried for resource, chosen in one.flavors.items()}
            for one in self.sets
        ]

    @property
    def needed(self) -> list[Column]:
        """The columns in which somebody has to make room."""
        found = {
            (chosen.flavor, resource)
            for one in self.sets
            for resource, chosen in one.flavors.items()
            if self.lacks_place or generalize(chosen.mode) == Mode.PREEMPT
        }
        return sorted(found)

    def list_flavors(self) -> dict[str, dict[str, str]]:
        """Return the flavor of each resource of each pod set."""
        return {
            one.name: {resource: chosen.flavor for resource, chosen in one.flavors.items()}
            for one in self.sets
        }

    def describe(self) -> str:
        """Say which pod sets get nothing, and why, in Kueue's words."""
        why = f": {self.place_problem}" if self.place_problem else ""
        if self.lacks_place:
            names = ", ".join(one.name for one in self.sets)
            return f"couldn't assign flavors to pod set {names}: there is quota, but no place for all its pods{why}"
        said = "; ".join(
            f"couldn't assign flavors to pod set {one.name}: {', '.join(sorted(one.reasons))}"
            for one in self.sets
            if one.reasons
        )
        if self.is_blocked:
            return f"{said}; others could give quota back, but there would be no place for all its pods{why}"
        return said


def resolve_reason(sets: Sequence[SetAssignment], groups: Sequence[ResourceGroup]) -> Reason:
    """Find the reason for a workload that gets nothing.

    Of flavors of which one would do the least severe counts; of groups of which all are needed the most severe.
    """
    overall = Reason.NONE
    for one in sets:
        if one.mode != Mode.NO_FIT:
            continue
        if not one.attempts:
            overall = Reason.NO_MATCH
            continue
        least: dict[int, Reason] = {}
        for i, attempt in enumerate(one.attempts):
            if attempt.mode != Mode.NO_FIT:
                continue
            places = [
                k
                for k, group in enumerate(groups)
                if any(flavor.flavor == attempt.flavor for flavor in group.flavors)
            ]
            for k in places or [-1 - i]:
                least[k] = min(least.get(k, attempt.why), attempt.why)
        overall = max(overall, *least.values(), Reason.NONE)
    return overall
