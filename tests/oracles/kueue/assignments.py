"""What the search for flavors came to (the types of pkg/scheduler/flavorassigner)."""

from dataclasses import dataclass, field
from enum import IntEnum

from tests.oracles.kueue.amounts import Amounts, Requests, add_amounts
from tests.oracles.kueue.slices import count_more
from tests.oracles.kueue.workloads import Info, PodSet, Progress, scale_pod_set

NO_MATCHING_FLAVOR = "NoMatchingFlavor"
EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
WAITING_FOR_QUOTA = "WaitingForQuota"
# From the least severe to the most severe.
SEVERITY = ("", WAITING_FOR_QUOTA, EXCEEDS_MAX_QUOTA, NO_MATCHING_FLAVOR)


class Mode(IntEnum):
    """What must happen before a flavor can be used; the later ones are better."""

    NO_FIT = 0
    PREEMPT = 1
    # It fits once others' victims are gone.
    DEFERRED_FIT = 2
    FIT = 3


class Fine(IntEnum):
    """The same in finer steps, in which flavors are compared."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    # With a victim of the own queue.
    PREEMPT = 2
    # With victims of other queues only.
    RECLAIM = 3
    FIT = 4


def find_mode(fine: Fine) -> Mode:
    if fine in {Fine.NO_FIT, Fine.FIT}:
        return Mode.FIT if fine == Fine.FIT else Mode.NO_FIT
    return Mode.PREEMPT


@dataclass
class FlavorChoice:
    """The flavor of one resource: how it stands, where the search stopped, and how far away it borrows."""

    flavor: str
    mode: Mode
    borrow: int = 0
    tried: int = 0


@dataclass
class Attempt:
    """A flavor that was looked at: how it stands, and why it cannot be used."""

    mode: Mode
    reason: str = ""


@dataclass
class PodSetChoice:
    """The flavors of one pod set, and the reasons why some could not be used at once."""

    name: str
    count: int
    requests: Requests
    flavors: dict[str, FlavorChoice] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    attempts: dict[str, Attempt] = field(default_factory=dict)


@dataclass
class Assignment:
    """The flavors of a workload.

    ``borrowing`` is the height of the smallest subtree that has what the workload needs. ``usage`` is what it uses
    beyond the workload whose place it takes.
    """

    progress: Progress
    pod_sets: list[PodSetChoice] = field(default_factory=list)
    borrowing: int = 0
    usage: Amounts = field(default_factory=dict)
    no_fit_reason: str = ""
    is_deferred: bool = False
    # Whose place the workload takes.
    old: Info | None = None


def find_pod_set_mode(choice: PodSetChoice) -> Mode:
    if not choice.reasons:
        return Mode.FIT
    return min((one.mode for one in choice.flavors.values()), default=Mode.NO_FIT)


def find_assignment_mode(assignment: Assignment) -> Mode:
    """Find the worst mode of all pod sets."""
    if assignment.is_deferred:
        return Mode.DEFERRED_FIT
    return min(map(find_pod_set_mode, assignment.pod_sets), default=Mode.NO_FIT)


def write_message(assignment: Assignment) -> str:
    return "; ".join(
        f"couldn't assign flavors to pod set {one.name}: {', '.join(sorted(one.reasons))}"
        for one in assignment.pod_sets
        if one.reasons
    )


def sum_requests(assignment: Assignment, pod_sets: list[PodSet]) -> Amounts:
    """Add up what a preemptor asks. Pods themselves are not in it, even where a queue has a quota of them.

    A slice asks for the pods that it has more of than the one before it, and nothing where it has fewer.
    """
    usage: Amounts = {}
    for choice, pod_set in zip(assignment.pod_sets, pod_sets, strict=False):
        count = count_more(assignment.old, pod_set.name, choice.count)
        for resource, value in scale_pod_set(pod_set, count).requests.items():
            if value:
                fr = (choice.flavors[resource].flavor, resource)
                usage[fr] = add_amounts(usage.get(fr, 0), value)
    return {fr: value for fr, value in usage.items() if value > 0}


def sum_whole(assignment: Assignment) -> Amounts:
    """Add up what the workload uses once it is admitted, all of it."""
    usage: Amounts = {}
    for choice in assignment.pod_sets:
        for resource, one in choice.flavors.items():
            fr = (one.flavor, resource)
            usage[fr] = add_amounts(usage.get(fr, 0), choice.requests.get(resource, 0))
    return usage


def pick_severest(a: str, b: str) -> str:
    return a if SEVERITY.index(a) >= SEVERITY.index(b) else b


def add_attempts(
    known: dict[str, Attempt], more: dict[str, Attempt], group: tuple[str, ...]
) -> None:
    """Add what one resource made of flavors; a flavor of its group that it did not look at does not provide it."""
    for name, one in more.items():
        old = known.get(name)
        if old is None:
            known[name] = Attempt(one.mode, one.reason)
        else:
            known[name] = Attempt(min(old.mode, one.mode), pick_severest(old.reason, one.reason))
    if more:
        for name in known:
            if name in group and name not in more:
                known[name] = Attempt(Mode.NO_FIT, NO_MATCHING_FLAVOR)


def find_no_fit_reason(assignment: Assignment, groups: list[tuple[str, ...]]) -> str:
    """Find why nothing fits: the least severe reason within a group of flavors, the severest across groups and pod sets."""
    if find_assignment_mode(assignment) != Mode.NO_FIT:
        return ""
    overall = ""
    for choice in assignment.pod_sets:
        if find_pod_set_mode(choice) != Mode.NO_FIT:
            continue
        if not choice.attempts:
            overall = pick_severest(overall, NO_MATCHING_FLAVOR)
        least: dict[object, str] = {}
        for name, attempt in sorted(choice.attempts.items()):
            if attempt.mode != Mode.NO_FIT:
                continue
            where: list[object] = [i for i, group in enumerate(groups) if name in group]
            for key in where or [name]:
                old = least.get(key)
                if old is None or SEVERITY.index(attempt.reason) < SEVERITY.index(old):
                    least[key] = attempt.reason
        for reason in least.values():
            overall = pick_severest(overall, reason)
    return overall
