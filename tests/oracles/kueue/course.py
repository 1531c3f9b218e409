"""What is kept from cycle to cycle."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.oracles.kueue import queues as q
from tests.oracles.kueue.statuses import take_quota
from tests.oracles.kueue.usage import Ledger, read_ledger
from tests.oracles.kueue.victims import Settings, read_settings
from tests.oracles.kueue.workloads import Manifest, check_condition, make_key, read_time
from tests.oracles.kueue.world import build_world


@dataclass
class Course:
    """The objects, who waits where, and what local queues used."""

    objects: list[Manifest]
    workloads: dict[str, Manifest]
    settings: Settings
    now: str
    waiting: dict[str, q.Waiting]
    ledger: Ledger | None
    cycle: int = 0
    generations: dict[str, int] = field(default_factory=dict)


def start_course(objects: Iterable[Manifest], config: dict[str, Any], now: str) -> Course:
    many = list(objects)
    workloads = {make_key(one): one for one in many if one["kind"] == "Workload"}
    rest = [one for one in many if one["kind"] != "Workload"]
    world = build_world(many)
    usage = config.get("admissionFairSharing")
    ledger = None if usage is None else read_ledger(usage, world.local_queues)
    waiting = q.fill_queues(world, workloads.values(), read_time(now))
    return Course(rest, workloads, read_settings(config), now, waiting, ledger)


def list_state(course: Course) -> list[Any]:
    return [
        (
            name,
            sorted(one.active),
            sorted(one.parked),
            one.sticky,
            sorted(one.refused),
            [(key, info.progress and info.progress.tried) for key, info in one.active.items()],
        )
        for name, one in sorted(course.waiting.items())
    ]


def settle_evicted(course: Course) -> bool:
    """Take the quota of who is evicted, as its job has stopped, and let who was parked in its tree take turns again."""
    world = build_world([*course.objects, *course.workloads.values()])
    now, freed = read_time(course.now), set()
    for key, manifest in sorted(course.workloads.items()):
        if not check_condition(manifest, "Evicted") or not check_condition(
            manifest, "QuotaReserved"
        ):
            continue
        name = manifest["status"]["admission"]["clusterQueue"]
        course.workloads[key] = take_quota(manifest, course.now)
        course.generations[name] = course.generations.get(name, 1) + 1
        q.push_workload(world, course.waiting, course.workloads[key], now)
        freed.add(name)
    q.free_parked(world, course.waiting, freed & set(course.waiting), now)
    return bool(freed)
