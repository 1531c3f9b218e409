"""Who waits where (pkg/cache/queue/cluster_queue.go)."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.oracles.kueue.limits import adjust_workload
from tests.oracles.kueue.order import order_queue
from tests.oracles.kueue.selectors import match_selector
from tests.oracles.kueue.tree import Cohort, find_root, walk_queues
from tests.oracles.kueue.usage import Ledger
from tests.oracles.kueue.victims import Settings
from tests.oracles.kueue.workloads import (
    Info,
    Manifest,
    check_admissible,
    find_condition,
    make_key,
    read_time,
    read_workload,
)
from tests.oracles.kueue.world import Queue, World

GENERIC = ""
FAILED_AFTER_NOMINATION = "FailedAfterNomination"
NAMESPACE_MISMATCH = "NamespaceMismatch"
PENDING_PREEMPTION = "PendingPreemption"
NO_FIT = "NoFit"
NO_CANDIDATES = "PreemptionNoCandidates"


@dataclass
class Waiting:
    """The workloads of a cluster queue: those that take turns, and those that are parked until something happens.

    ``sticky`` is the one that preempts: it stays at the head until it is admitted or gone, or another one preempts.
    Workloads of one of ``refused`` shapes are parked as they come.
    """

    is_strict: bool
    active: dict[str, Info] = field(default_factory=dict)
    parked: dict[str, Info] = field(default_factory=dict)
    sticky: str = ""
    refused: set[str] = field(default_factory=set)


def fill_queues(world: World, workloads: Iterable[Manifest], now: float) -> dict[str, Waiting]:
    """Fill the queues as at a start: everybody takes turns, but for who must wait for a while."""
    queues = {name: Waiting(queue.is_strict) for name, queue in world.queues.items()}
    for manifest in sorted(workloads, key=make_key):
        push_workload(world, queues, manifest, now)
    return queues


def push_workload(world: World, queues: dict[str, Waiting], manifest: Manifest, now: float) -> None:
    name = find_queue(world, manifest)
    if name not in queues or not check_admissible(manifest):
        return
    info = read_workload(adjust_workload(manifest, world.limit_ranges), name)
    waiting = queues[name]
    is_refused = not waiting.is_strict and info.shape in waiting.refused
    if is_refused or not check_backoff(manifest, now):
        waiting.parked[info.key] = info
    else:
        waiting.active[info.key] = info


def find_queue(world: World, manifest: Manifest) -> str:
    """Find the cluster queue of a workload's local queue, unless that is stopped."""
    namespace = manifest["metadata"].get("namespace", "")
    key = f"{namespace}/{manifest['spec'].get('queueName', '')}"
    spec = world.local_queues.get(key, {}).get("spec", {})
    if (spec.get("stopPolicy") or "None") != "None":
        return ""
    return str(spec.get("clusterQueue", ""))


def check_backoff(manifest: Manifest, now: float) -> bool:
    """Check whether the workload has waited long enough since it was put back."""
    requeued = find_condition(manifest, "Requeued")
    if requeued is not None and requeued["status"] == "False":
        return False
    state = manifest.get("status", {}).get("requeueState") or {}
    return now >= read_time(state.get("requeueAt"))


def pop_heads(
    world: World, queues: dict[str, Waiting], settings: Settings, ledger: Ledger | None
) -> list[tuple[Queue, Info]]:
    """Pop the first workload of each queue that may admit."""
    heads = []
    for name, waiting in sorted(queues.items()):
        if name in world.inactive or not waiting.active:
            continue
        queue = world.queues[name]
        counts = ledger if ledger is not None and queue.counts_usage else None
        info = order_queue(waiting.active.values(), settings, waiting.sticky, counts)[0]
        del waiting.active[info.key]
        info.queue = name
        heads.append((queue, info))
    return heads


def requeue_workload(waiting: Waiting, info: Info, requeue: str, now: float) -> None:
    """Put a workload back: to take turns again, or parked, and with it in a lenient queue all of its shape."""
    if requeue == PENDING_PREEMPTION and not waiting.is_strict:
        waiting.sticky = info.key
    if requeue == PENDING_PREEMPTION and waiting.is_strict:
        waiting.sticky = ""
    at_once = requeue in {FAILED_AFTER_NOMINATION, PENDING_PREEMPTION}
    if waiting.is_strict:
        at_once = requeue != NAMESPACE_MISMATCH
    if check_backoff(info.manifest, now) and (at_once or check_pending_flavors(info)):
        waiting.active[info.key] = info
        return
    waiting.parked[info.key] = info
    if requeue not in {NO_FIT, NO_CANDIDATES} or waiting.is_strict:
        return
    waiting.refused.add(info.shape)
    for key, one in list(waiting.active.items()):
        if one.shape == info.shape:
            waiting.parked[key] = waiting.active.pop(key)


def check_pending_flavors(info: Info) -> bool:
    """Check whether the last search stopped before the last flavor of any resource."""
    progress = info.progress
    return progress is not None and any(at != -1 for one in progress.tried for at in one.values())


def free_parked(world: World, queues: dict[str, Waiting], names: Iterable[str], now: float) -> None:
    """Let parked workloads take turns again in all trees in which there may be room now."""
    trees = set()
    for name in names:
        root = find_root(world.queues[name])
        below = list(walk_queues(root)) if isinstance(root, Cohort) else [root]
        trees |= {name, *(one.name for one in below)}
    for name in sorted(trees):
        waiting, selector = queues[name], world.queues[name].spec.get("namespaceSelector")
        waiting.refused.clear()
        for key, info in sorted(waiting.parked.items()):
            namespace = info.manifest["metadata"].get("namespace", "")
            labels = world.namespaces.get(namespace)
            if labels is None or not match_selector(labels, selector):
                continue
            if check_backoff(info.manifest, now):
                waiting.active[key] = waiting.parked.pop(key)
