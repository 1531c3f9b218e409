"""Who goes for whom, by the place in the tree or by shares (pkg/scheduler/preemption)."""

from tests.oracles.kueue import classical, fair
from tests.oracles.kueue.amounts import FlavorResource
from tests.oracles.kueue.assignments import Assignment, Fine, Mode, sum_requests
from tests.oracles.kueue.tree import find_lowest_fit
from tests.oracles.kueue.victims import Hunt, Settings, Target
from tests.oracles.kueue.workloads import Info
from tests.oracles.kueue.world import Queue, World, add_usages, remove_usages


def find_targets(
    world: World, settings: Settings, now: float, info: Info, assignment: Assignment
) -> list[Target]:
    """Find who must go for a workload with these flavors; nobody when it cannot be enough."""
    short = {
        (choice.flavor, resource)
        for one in assignment.pod_sets
        for resource, choice in one.flavors.items()
        if choice.mode == Mode.PREEMPT
    }
    usage = sum_requests(assignment, info.pod_sets)
    return hunt_targets(Hunt(world, settings, now, info, world.queues[info.queue], usage, short))


def hunt_targets(hunt: Hunt) -> list[Target]:
    if hunt.settings.strategies is None:
        return classical.hunt_targets(hunt)
    return fair.hunt_targets(hunt, hunt.settings.strategies)


def simulate_preemption(
    world: World,
    settings: Settings,
    now: float,
    queue: Queue,
    info: Info,
    fr: FlavorResource,
    amount: int,
) -> tuple[Fine, int]:
    """Simulate preemption for one resource of one flavor: what it would come to, and how far away is borrowed then."""
    hunt = Hunt(world, settings, now, info, world.queues[info.queue], {fr: amount}, {fr})
    targets = hunt_targets(hunt)
    if not targets:
        return Fine.NO_CANDIDATES, find_lowest_fit(queue, fr, amount)[0]
    victims = [target.info for target in targets]
    remove_usages(world, victims)
    borrow = find_lowest_fit(queue, fr, amount)[0]
    add_usages(world, victims)
    has_own = any(victim.queue == queue.name for victim in victims)
    return Fine.PREEMPT if has_own else Fine.RECLAIM, borrow
