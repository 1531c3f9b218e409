"""The choice of flavors (pkg/scheduler/flavorassigner/flavorassigner.go)."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.oracles.kueue.amounts import (
    UNLIMITED,
    Amounts,
    FlavorResource,
    Requests,
    add_amounts,
    order_resources,
    subtract_amounts,
    write_amount,
    write_request,
)
from tests.oracles.kueue.assignments import (
    EXCEEDS_MAX_QUOTA,
    NO_MATCHING_FLAVOR,
    WAITING_FOR_QUOTA,
    Assignment,
    Attempt,
    Fine,
    FlavorChoice,
    Mode,
    PodSetChoice,
    add_attempts,
    find_mode,
    find_no_fit_reason,
    pick_severest,
)
from tests.oracles.kueue.selectors import find_untolerated, match_flavor
from tests.oracles.kueue.slices import count_held, find_held_flavor
from tests.oracles.kueue.tree import (
    find_lowest_fit,
    find_potential,
    find_quota,
    find_unused,
)
from tests.oracles.kueue.workloads import Info, Manifest, Progress, scale_pod_set
from tests.oracles.kueue.world import Group, Queue

# What preemption for one resource would come to, and how far away the workload then borrows.
Oracle = Callable[[Queue, Info, FlavorResource, int], tuple[Fine, int]]
Standing = tuple[Fine, int]


@dataclass
class Assigner:
    """What a search for flavors works with; ``cycle`` is noted in what it finds.

    ``old`` is whose place is taken, and ``keeps`` whose flavors are kept.
    """

    info: Info
    queue: Queue
    flavors: dict[str, Manifest]
    oracle: Oracle
    is_fair: bool = False
    cycle: int = 0
    old: Info | None = None
    keeps: Info | None = None


@dataclass
class _Found:
    """What a group of flavors came to: none when nothing was chosen."""

    choices: dict[str, FlavorChoice]
    reasons: list[str]
    attempts: dict[str, Attempt]
    flavors: tuple[str, ...] = ()


def assign_flavors(a: Assigner, counts: list[int] | None = None) -> Assignment:
    """Choose flavors for each pod set, with other counts if they are given."""
    pod_sets = [
        scale_pod_set(pod_set, counts[i] if counts else pod_set.count)
        for i, pod_set in enumerate(a.info.pod_sets)
    ]
    progress = Progress([], a.queue.generation, a.cycle, a.info.shape)
    assignment = Assignment(progress, old=a.old)
    counts_pods = find_group(a.queue, "pods") is not None
    groups: dict[str, list[int]] = {}
    for i, pod_set in enumerate(pod_sets):
        if counts_pods:
            pod_set.requests["pods"] = pod_set.count
        topology = a.info.manifest["spec"]["podSets"][i].get("topologyRequest") or {}
        groups.setdefault(topology.get("podSetGroupName", str(i)), []).append(i)
    for ids in groups.values():
        choices, reasons, attempts = _assign_group(
            a, ids, [pod_sets[i].requests for i in ids], assignment.usage
        )
        has_failed = False
        for i in ids:
            one = pod_sets[i]
            own = {name: choice for name, choice in choices.items() if name in one.requests}
            choice = PodSetChoice(one.name, one.count, one.requests, own, reasons, attempts)
            _append_choice(assignment, choice)
            has_failed |= bool(one.requests) and not own
        if has_failed:
            break
    names = [group.flavors for group in a.queue.groups]
    assignment.no_fit_reason = find_no_fit_reason(assignment, names)
    return assignment


def _append_choice(assignment: Assignment, choice: PodSetChoice) -> None:
    assignment.pod_sets.append(choice)
    for resource, one in choice.flavors.items():
        assignment.borrowing = max(assignment.borrowing, one.borrow)
        fr = (one.flavor, resource)
        held = count_held(assignment.old, choice.name, resource)
        more = subtract_amounts(choice.requests.get(resource, 0), held)
        assignment.usage[fr] = add_amounts(assignment.usage.get(fr, 0), more)
    assignment.progress.tried.append({name: one.tried for name, one in choice.flavors.items()})


def _assign_group(
    a: Assigner, ids: list[int], many: list[Requests], usage: Amounts
) -> tuple[dict[str, FlavorChoice], list[str], dict[str, Attempt]]:
    """Choose flavors for pod sets that must have the same ones."""
    requests: Requests = {}
    for one in many:
        for resource, value in one.items():
            requests[resource] = add_amounts(requests.get(resource, 0), value)
    choices: dict[str, FlavorChoice] = {}
    attempts: dict[str, Attempt] = {}
    reasons: list[str] = []
    for resource in order_resources(requests):
        if find_group(a.queue, resource) is None and requests[resource] == 0:
            continue
        if resource in choices:
            # It has the flavor of another resource of its group.
            continue
        found = _find_flavor(a, ids, requests, resource, usage)
        add_attempts(attempts, found.attempts, found.flavors)
        if not found.choices:
            return {}, found.reasons, attempts
        choices |= found.choices
        reasons += found.reasons
    return choices, reasons, attempts


def find_group(queue: Queue, resource: str) -> Group | None:
    return next((group for group in queue.groups if resource in group.resources), None)


def _find_flavor(
    a: Assigner, ids: list[int], requests: Requests, resource: str, usage: Amounts
) -> _Found:
    """Find the flavor that suits best all resources of a group."""
    group = find_group(a.queue, resource)
    if group is None:
        return _Found({}, [f"resource {resource} unavailable in ClusterQueue"], {})
    wanted = {name: value for name, value in requests.items() if name in group.resources}
    found = _Found({}, [], {}, group.flavors)
    best: Standing = (Fine.NO_FIT, UNLIMITED)
    last = -1
    for at in range(find_start(a.info, ids[0], resource), len(group.flavors)):
        last, flavor = at, group.flavors[at]
        if a.info.nominated and not check_nominated(a.info, ids, resource, flavor):
            found.reasons.append(
                f"skipping flavor {flavor} as it is not found in the nomination mapping for resource {resource}"
            )
            continue
        refusal = _refuse_flavor(a, flavor, ids)
        if refusal:
            found.reasons.append(refusal)
            found.attempts[flavor] = Attempt(Mode.NO_FIT, NO_MATCHING_FLAVOR)
            continue
        choices, standing, reasons, reason = _try_flavor(a, flavor, ids, wanted, usage)
        found.reasons += reasons
        found.attempts[flavor] = Attempt(find_mode(standing[0]), reason)
        if not check_next(standing, a.queue):
            found.choices, best = choices, standing
            break
        if check_preferred(standing, best, a.queue):
            found.choices, best = choices, standing
    for choice in found.choices.values():
        # Behind the last flavor the search begins again.
        choice.tried = -1 if last == len(group.flavors) - 1 else last
    if best[0] == Fine.FIT:
        found.reasons = []
    return found


def find_start(info: Info, at: int, resource: str) -> int:
    """Find the flavor to begin with: the one behind where the last search stopped."""
    if info.progress is None or at >= len(info.progress.tried):
        return 0
    return info.progress.tried[at].get(resource, -1) + 1


def check_nominated(info: Info, ids: list[int], resource: str, flavor: str) -> bool:
    names = [info.manifest["spec"]["podSets"][i]["name"] for i in ids]
    return any(info.nominated.get(name, {}).get(resource) == flavor for name in names)


def _refuse_flavor(a: Assigner, name: str, ids: list[int]) -> str:
    """Say why the pods may not use the flavor, whatever its quota is."""
    if name not in a.flavors:
        return f"flavor {name} not found"
    flavor = a.flavors[name].get("spec") or {}
    for i in ids:
        spec = a.info.manifest["spec"]["podSets"][i].get("template", {}).get("spec", {})
        tolerations = [*spec.get("tolerations", []), *flavor.get("tolerations", [])]
        taint = find_untolerated(flavor.get("nodeTaints", []), tolerations)
        if taint is not None:
            words = f"{taint['key']} {taint.get('value', '')} {taint['effect']} <nil>"
            return f"untolerated taint {{{words}}} in flavor {name}"
        if not match_flavor(flavor.get("nodeLabels", {}), spec):
            return f"flavor {name} doesn't match node affinity"
    return ""


def _try_flavor(
    a: Assigner, flavor: str, ids: list[int], wanted: Requests, usage: Amounts
) -> tuple[dict[str, FlavorChoice], Standing, list[str], str]:
    """Try one flavor; it stands as the worst of its resources does."""
    choices: dict[str, FlavorChoice] = {}
    worst: Standing = (Fine.FIT, 0)
    reasons: list[str] = []
    severest = ""
    for resource in order_resources(wanted):
        fr = (flavor, resource)
        if why := _refuse_other_flavor(a, flavor, ids, resource):
            fine, borrow, reason = Fine.NO_FIT, 0, NO_MATCHING_FLAVOR
        else:
            more = wanted[resource]
            for i in ids:
                more = subtract_amounts(more, count_held(a.old, a.info.pod_sets[i].name, resource))
            fine, borrow, why, reason = fit_resource(a, fr, usage.get(fr, 0), more)
        if why:
            reasons.append(why)
            severest = pick_severest(severest, reason)
        if check_preferred(worst, (fine, borrow), a.queue):
            worst = (fine, borrow)
        if worst[0] != Fine.NO_FIT:
            choices[resource] = FlavorChoice(flavor, find_mode(fine), borrow)
    return choices, worst, reasons, severest


def _refuse_other_flavor(a: Assigner, flavor: str, ids: list[int], resource: str) -> str:
    """Say that a slice has to stay with the flavor of the one before it."""
    if a.keeps is None:
        return ""
    for i in ids:
        held = find_held_flavor(a.keeps, a.info.pod_sets[i].name, resource)
        if held != flavor:
            return (
                f"could not assign {flavor} flavor since the original workload is assigned: {held}"
            )
    return ""


def fit_resource(
    a: Assigner, fr: FlavorResource, assumed: int, request: int
) -> tuple[Fine, int, str, str]:
    """Fit one resource: how it stands, how far away it borrows, and why it does not fit, in words and by name."""
    flavor, resource = fr
    available = find_unused(a.queue, fr)
    most = find_potential(a.queue, fr)
    value = add_amounts(assumed, request)
    if value > most:
        why = f"insufficient quota for {resource} in flavor {flavor}, previously considered podsets requests "
        why += f"({write_amount(resource, assumed)}) + current podset request ({write_request(resource, request)}) "
        why += f"> maximum capacity ({write_amount(resource, most)})"
        return Fine.NO_FIT, 0, why, EXCEEDS_MAX_QUOTA
    borrow, may_reclaim = find_lowest_fit(a.queue, fr, value)
    if value <= available:
        return Fine.FIT, borrow, "", ""
    more = write_amount(resource, subtract_amounts(value, available))
    why = f"insufficient unused quota for {resource} in flavor {flavor}, {more} more needed"
    if find_quota(a.queue, fr).nominal >= value or may_reclaim or check_borrower(a):
        fine, borrow = a.oracle(a.queue, a.info, fr, value)
        return fine, borrow, why, ""
    return Fine.NO_FIT, borrow, why, WAITING_FOR_QUOTA


def check_borrower(a: Assigner) -> bool:
    """Check whether the queue may preempt while it borrows."""
    reclaims = a.queue.policy("reclaimWithinCohort") != "Never"
    return a.queue.borrowing is not None or (a.is_fair and reclaims)


def check_next(standing: Standing, queue: Queue) -> bool:
    """Check whether the next flavor is looked at too."""
    fine, borrow = standing
    if fine in {Fine.NO_FIT, Fine.NO_CANDIDATES}:
        return True
    preempts = fine in {Fine.PREEMPT, Fine.RECLAIM}
    if preempts and queue.fungibility("whenCanPreempt", "TryNextFlavor") == "TryNextFlavor":
        return True
    return borrow > 0 and queue.fungibility("whenCanBorrow", "MayStopSearch") == "TryNextFlavor"


def check_preferred(a: Standing, b: Standing, queue: Queue) -> bool:
    """Check whether ``a`` is strictly better than ``b``."""
    if Fine.NO_FIT in {a[0], b[0]}:
        return a[0] != Fine.NO_FIT
    # Without candidates nothing can be admitted now, whatever the preference is.
    if (a[0] == Fine.NO_CANDIDATES) != (b[0] == Fine.NO_CANDIDATES):
        return b[0] == Fine.NO_CANDIDATES
    if queue.fungibility("preference", "BorrowingOverPreemption") == "PreemptionOverBorrowing":
        return (-a[1], a[0]) > (-b[1], b[0])
    return (a[0], -a[1]) > (b[0], -b[1])
