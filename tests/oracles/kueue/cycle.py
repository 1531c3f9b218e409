"""One cycle over the heads of the queues, and cycle after cycle (pkg/scheduler/scheduler.go)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.oracles.kueue import queues as q
from tests.oracles.kueue.amounts import Amounts, add_amounts, subtract_amounts
from tests.oracles.kueue.assignments import (
    Assignment,
    Mode,
    find_assignment_mode,
    sum_whole,
    write_message,
)
from tests.oracles.kueue.course import Course, list_state, settle_evicted, start_course
from tests.oracles.kueue.flavors import Assigner, assign_flavors
from tests.oracles.kueue.limits import MISMATCH, refuse_workload
from tests.oracles.kueue.order import Entry, order_entries
from tests.oracles.kueue.partial import check_reducible, search_counts
from tests.oracles.kueue.preemption import find_targets, simulate_preemption
from tests.oracles.kueue.slices import find_old
from tests.oracles.kueue.statuses import (
    finish_old,
    mark_preempted,
    reserve_quota,
    set_condition,
    tell_preemption,
)
from tests.oracles.kueue.tree import add_all_usage, find_quota, find_unused
from tests.oracles.kueue.usage import add_penalty, find_usage
from tests.oracles.kueue.victims import Target
from tests.oracles.kueue.workloads import (
    Info,
    Manifest,
    Progress,
    check_condition,
    find_condition,
    read_time,
    sum_usage,
)
from tests.oracles.kueue.world import (
    Queue,
    World,
    add_usages,
    add_workload,
    build_world,
    remove_usages,
    remove_workload,
)

NO_LONGER_FITS = "Workload no longer fits after processing another workload"
OVERLAPS = "Workload has overlapping preemption targets with another workload"
DEFERRED = f"{OVERLAPS}, but will fit after these preemptions complete"


@dataclass
class Outcome:
    """What became of a cycle.

    ``pending`` is who waits in a queue after it, with what its condition says; None where it says nothing yet. Who is
    in no queue of a cluster queue is not in here. ``replaced`` is who has taken whose place, by the key of the old one.
    """

    admitted: dict[str, dict[str, Any]] = field(default_factory=dict)
    preempted: dict[str, dict[str, str]] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    pending: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass
class Scene:
    """What one cycle works with: the victims of the entries so far, and the slices whose place entries take.

    The latter may be nobody's victims any more.
    """

    course: Course
    world: World
    outcome: Outcome = field(default_factory=Outcome)
    preempted: dict[str, Info] = field(default_factory=dict)
    claimed: set[str] = field(default_factory=set)


def run_cycle(objects: Iterable[Manifest], config: dict[str, Any], now: str) -> Outcome:
    """Run one cycle over the heads of all queues."""
    return run_cycles(objects, config, now, 1)[0]


def run_cycles(
    objects: Iterable[Manifest], config: dict[str, Any], now: str, limit: int
) -> list[Outcome]:
    """Run cycles until one changes nothing; the clock stands still.

    Admitted workloads stay. A preempted one has lost its quota before the next cycle and waits again, as when its job
    stops at once, and those that were parked in its tree take turns again.
    """
    course = start_course(objects, config, now)
    outcomes = []
    for _ in range(limit):
        before = list_state(course)
        outcome = hold_cycle(course)
        outcomes.append(outcome)
        has_freed = settle_evicted(course)
        if not outcome.admitted and not has_freed and list_state(course) == before:
            break
    return outcomes


def hold_cycle(course: Course) -> Outcome:
    """Hold one cycle: heads, flavors, the order, what becomes of each entry, and where the others go."""
    course.cycle += 1
    world = build_world([*course.objects, *course.workloads.values()])
    for name, queue in world.queues.items():
        queue.generation = course.generations.get(name, 1)
    if course.ledger is not None:
        world.used = {key: find_usage(course.ledger, key) for key in _list_local_queues(course)}
    scene = Scene(course, world)
    heads = q.pop_heads(world, course.waiting, course.settings, course.ledger)
    entries, refused = [], []
    for queue, info in heads:
        entry = Entry(info, queue, Assignment(Progress([], 0, 0, "")))
        if _refuse_entry(scene, entry):
            refused.append(entry)
        else:
            _record_assignment(entry, *_find_assignment(scene, info, queue))
            entries.append(entry)
    for entry in order_entries(entries, course.settings):
        _process_entry(scene, entry)
    for entry in [*entries, *refused]:
        if entry.status != "assumed":
            _requeue_entry(course, entry)
    freed = {
        course.workloads[key]["status"]["admission"]["clusterQueue"]
        for key in scene.outcome.replaced
    }
    q.free_parked(world, course.waiting, freed, read_time(course.now))
    _list_pending(scene)
    return scene.outcome


def _list_local_queues(course: Course) -> set[str]:
    return {
        f"{one['metadata'].get('namespace', '')}/{one['spec'].get('queueName', '')}"
        for one in course.workloads.values()
    }


def _refuse_entry(scene: Scene, entry: Entry) -> bool:
    manifest = entry.info.manifest
    checks = manifest.get("status", {}).get("admissionChecks", [])
    if any(one["state"] in {"Retry", "Rejected"} for one in checks):
        entry.message, entry.reason = (
            "The workload has failed admission checks",
            "PendingEvaluation",
        )
        return True
    selector = entry.queue.spec.get("namespaceSelector")
    entry.message = refuse_workload(scene.world, entry.info, selector)
    if entry.message:
        entry.reason = "Misconfigured"
        entry.requeue = q.NAMESPACE_MISMATCH if entry.message == MISMATCH else q.GENERIC
    return bool(entry.message)


def _record_assignment(entry: Entry, assignment: Assignment, targets: list[Target]) -> None:
    entry.assignment, entry.targets = assignment, targets
    entry.message = write_message(assignment)
    entry.info.progress = assignment.progress


def check_outdated(progress: Progress, info: Info, generation: int, cycle: int) -> bool:
    """Check whether how far the last search came says nothing any more: that of the cycle before always counts."""
    if progress.shape != info.shape:
        return True
    return cycle - progress.cycle > 1 and generation > progress.generation


def _find_assignment(scene: Scene, info: Info, queue: Queue) -> tuple[Assignment, list[Target]]:
    """Find flavors and victims, for a slice for what it asks beyond the old one."""
    settings = scene.course.settings
    old = find_old(scene.world, info, may_go=settings.frees_early)
    if old is None or not settings.asks_in_full:
        return _search_assignment(scene, info, queue, old, old)
    remove_workload(scene.world, old)
    assignment, targets = _search_assignment(scene, info, queue, None, old)
    add_workload(scene.world, old)
    held = sum_usage(old)
    assignment.old = old
    assignment.usage = {
        fr: subtract_amounts(amount, held.get(fr, 0)) for fr, amount in assignment.usage.items()
    }
    return assignment, targets


def _search_assignment(
    scene: Scene, info: Info, queue: Queue, old: Info | None, keeps: Info | None
) -> tuple[Assignment, list[Target]]:
    """Search flavors and victims for all pods, or else for fewer pods."""
    course, world = scene.course, scene.world
    settings, now = course.settings, read_time(course.now)
    if info.progress and check_outdated(info.progress, info, queue.generation, course.cycle):
        info.progress = None

    def ask_oracle(of: Queue, one: Info, fr: tuple[str, str], amount: int) -> Any:
        return simulate_preemption(world, settings, now, of, one, fr, amount)

    is_fair = settings.strategies is not None
    assigner = Assigner(info, queue, world.flavors, ask_oracle, is_fair, course.cycle, old, keeps)

    def try_counts(counts: list[int] | None) -> tuple[Assignment, list[Target]] | None:
        assignment = assign_flavors(assigner, counts)
        mode = find_assignment_mode(assignment)
        if mode == Mode.FIT:
            return assignment, []
        targets = []
        if mode == Mode.PREEMPT:
            targets = find_targets(world, settings, now, info, assignment)
        return (assignment, targets) if targets else None

    found = try_counts(None)
    if found is None and check_reducible(info.manifest):
        found = search_counts(info.manifest, try_counts)
    return found or (assign_flavors(assigner), [])


def _process_entry(scene: Scene, entry: Entry) -> None:
    """Admit the entry, preempt for it, or say why not; what it takes or reserves is gone for those behind it."""
    fits = _update_assignment(scene, entry)
    mode = find_assignment_mode(entry.assignment)
    if mode == Mode.NO_FIT:
        entry.requeue, entry.reason = q.NO_FIT, entry.assignment.no_fit_reason
    elif mode == Mode.PREEMPT and not entry.targets:
        entry.requeue, entry.reason = q.NO_CANDIDATES, "WaitingForQuota"
        if entry.queue.policy("reclaimWithinCohort") != "Any":
            # It could not get its quota back from who comes behind it.
            add_all_usage(entry.queue, find_reserve(entry))
    elif mode == Mode.DEFERRED_FIT:
        entry.message, entry.reason = DEFERRED, "WaitingForPreemptedWorkloads"
        entry.requeue, entry.info.progress = q.PENDING_PREEMPTION, None
        add_all_usage(entry.queue, entry.assignment.usage)
    elif _check_overlap(scene, entry):
        entry.status, entry.message, entry.reason = "skipped", OVERLAPS, "WaitingForQuota"
    elif not fits:
        entry.status, entry.message, entry.reason = "skipped", NO_LONGER_FITS, "WaitingForQuota"
    else:
        _commit_entry(scene, entry)


def _commit_entry(scene: Scene, entry: Entry) -> None:
    """Preempt for the entry, or admit it, in the place of an older slice if it is one."""
    old, frees_early = entry.assignment.old, scene.course.settings.frees_early
    scene.preempted |= {target.info.key: target.info for target in entry.targets}
    if old is not None:
        scene.claimed.add(old.key)
        scene.preempted |= {old.key: old} if frees_early else {}
    if find_assignment_mode(entry.assignment) == Mode.PREEMPT:
        add_all_usage(entry.queue, entry.assignment.usage)
        _preempt_targets(scene, entry)
        return
    if old is not None and not frees_early:
        remove_workload(scene.world, old)
        add_all_usage(entry.queue, sum_whole(entry.assignment))
    else:
        add_all_usage(entry.queue, entry.assignment.usage)
    _admit_entry(scene, entry)


def _check_overlap(scene: Scene, entry: Entry) -> bool:
    """Check whether an entry counts on somebody who goes for another one, or whose place another one takes."""
    counted = {target.info.key for target in entry.targets}
    if entry.assignment.old is not None and find_assignment_mode(entry.assignment) != Mode.NO_FIT:
        counted.add(entry.assignment.old.key)
    return not counted.isdisjoint({*scene.preempted, *scene.claimed})


def _update_assignment(scene: Scene, entry: Entry) -> bool:
    """Search again without the victims of others if they are this entry's too; and say whether it fits."""
    if _check_overlap(scene, entry):
        gone = list(scene.preempted.values())
        for info in gone:
            remove_workload(scene.world, info)
        entry.info.progress = None
        entry.info.nominated = {
            one.name: {resource: choice.flavor for resource, choice in one.flavors.items()}
            for one in entry.assignment.pod_sets
        }
        _record_assignment(entry, *_find_assignment(scene, entry.info, entry.queue))
        for info in gone:
            add_workload(scene.world, info)
        entry.info.nominated = {}
        if find_assignment_mode(entry.assignment) == Mode.FIT:
            entry.assignment.is_deferred = True
    gone_by_key = {**scene.preempted, **{one.info.key: one.info for one in entry.targets}}
    old = entry.assignment.old
    if old is not None and scene.course.settings.frees_early:
        gone_by_key[old.key] = old
    remove_usages(scene.world, gone_by_key.values())
    usage = entry.assignment.usage
    fits = all(find_unused(entry.queue, fr) >= amount for fr, amount in usage.items())
    add_usages(scene.world, gone_by_key.values())
    return fits


def find_reserve(entry: Entry) -> Amounts:
    """Find what to keep for who finds no victims: up to the borrowing limit if it borrows, else up to its own quota."""
    reserve = {}
    for fr, amount in entry.assignment.usage.items():
        quota, used = find_quota(entry.queue, fr), entry.queue.usage.get(fr, 0)
        if entry.assignment.borrowing == 0:
            reserve[fr] = max(0, min(amount, subtract_amounts(quota.nominal, used)))
        elif quota.borrowing is None:
            reserve[fr] = amount
        else:
            most = add_amounts(quota.nominal, quota.borrowing)
            reserve[fr] = min(amount, subtract_amounts(most, used))
    return reserve


def _preempt_targets(scene: Scene, entry: Entry) -> None:
    entry.reason = "WaitingForPreemptedWorkloads"
    for target in entry.targets:
        if check_condition(target.info.manifest, "Evicted"):
            continue
        told = {"by": entry.info.key, "reason": target.reason}
        scene.outcome.preempted[target.info.key] = told
        message = tell_preemption(entry, target, scene.world.queues[target.info.queue])
        course = scene.course
        manifest = course.workloads[target.info.key]
        course.workloads[target.info.key] = mark_preempted(
            manifest, target.reason, message, course.now
        )
    entry.info.progress = None
    entry.message += f". Pending the preemption of {len(entry.targets)} workload(s)"
    entry.requeue = q.PENDING_PREEMPTION


def _admit_entry(scene: Scene, entry: Entry) -> None:
    entry.status = "assumed"
    course, key, name = scene.course, entry.info.key, entry.queue.name
    scene.outcome.admitted[key] = {
        "clusterQueue": name,
        "podSets": {
            one.name: {
                "count": one.count,
                "flavors": {resource: choice.flavor for resource, choice in one.flavors.items()},
            }
            for one in entry.assignment.pod_sets
        },
    }
    if course.ledger is not None and entry.queue.counts_usage:
        add_penalty(course.ledger, entry.info)
    course.workloads[key] = reserve_quota(course.workloads[key], name, entry.assignment, course.now)
    old = entry.assignment.old
    if old is not None:
        scene.outcome.replaced[old.key] = key
        course.workloads[old.key] = finish_old(
            course.workloads[old.key], entry.info.manifest, course.now
        )
    course.generations[name] = course.generations.get(name, 1) + 1
    if course.waiting[name].sticky == key:
        course.waiting[name].sticky = ""


def _requeue_entry(course: Course, entry: Entry) -> None:
    if entry.status and entry.requeue == q.GENERIC:
        entry.requeue = q.FAILED_AFTER_NOMINATION
    told = (entry.reason or "Pending", entry.message)
    key, info = entry.info.key, entry.info
    info.manifest = set_condition(info.manifest, "QuotaReserved", "False", told, course.now)
    course.workloads[key] = set_condition(
        course.workloads[key], "QuotaReserved", "False", told, course.now
    )
    now = read_time(course.now)
    q.requeue_workload(course.waiting[entry.queue.name], entry.info, entry.requeue, now)


def _list_pending(scene: Scene) -> None:
    for waiting in scene.course.waiting.values():
        for where, infos in (("queue", waiting.active), ("parked", waiting.parked)):
            for key in infos:
                told = find_condition(scene.course.workloads[key], "QuotaReserved") or {}
                scene.outcome.pending[key] = {
                    "reason": told.get("reason"),
                    "where": where,
                    "message": told.get("message"),
                }
