"""The snapshot that one cycle works on (pkg/cache/scheduler/snapshot.go and clusterqueue.go)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.oracles.kueue.amounts import FlavorResource, read_float, read_quota
from tests.oracles.kueue.tree import (
    Cohort,
    Node,
    Quota,
    add_all_usage,
    fill_tree,
    find_root,
    remove_all_usage,
)
from tests.oracles.kueue.workloads import (
    Info,
    Manifest,
    check_condition,
    make_key,
    read_workload,
    sum_usage,
)


@dataclass(frozen=True)
class Group:
    """Resources that must be of one flavor, and the flavors in the order in which they are tried."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


@dataclass(eq=False)
class Queue(Node):
    """A cluster queue."""

    spec: Manifest = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    workloads: dict[str, Info] = field(default_factory=dict)
    # Grows whenever something that may make room happened.
    generation: int = 1

    def policy(self, name: str) -> str:
        return str((self.spec.get("preemption") or {}).get(name) or "Never")

    def fungibility(self, name: str, default: str) -> str:
        return str((self.spec.get("flavorFungibility") or {}).get(name) or default)

    @property
    def is_strict(self) -> bool:
        return bool(self.spec.get("queueingStrategy") == "StrictFIFO")

    @property
    def borrowing(self) -> Manifest | None:
        """How it may preempt while it borrows; None where it may not."""
        policy = (self.spec.get("preemption") or {}).get("borrowWithinCohort") or {}
        return None if policy.get("policy", "Never") == "Never" else policy

    @property
    def counts_usage(self) -> bool:
        """Whether the past usage of local queues orders its workloads."""
        mode = (self.spec.get("admissionScope") or {}).get("admissionMode")
        return bool(mode == "UsageBasedAdmissionFairSharing")


@dataclass
class World:
    """All that a cycle looks at. Queues that may not admit are known by name only."""

    queues: dict[str, Queue] = field(default_factory=dict)
    cohorts: dict[str, Cohort] = field(default_factory=dict)
    inactive: set[str] = field(default_factory=set)
    flavors: dict[str, Manifest] = field(default_factory=dict)
    namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)
    local_queues: dict[str, Manifest] = field(default_factory=dict)
    limit_ranges: list[Manifest] = field(default_factory=list)
    # How much each local queue used, by the weights of its cluster queue.
    used: dict[str, float] = field(default_factory=dict)


def build_world(objects: Iterable[Manifest]) -> World:
    """Build the world from manifests, with what admitted workloads use."""
    by_kind: dict[str, list[Manifest]] = {}
    for one in objects:
        by_kind.setdefault(one["kind"], []).append(one)
    world = World()
    world.flavors = {one["metadata"]["name"]: one for one in by_kind.get("ResourceFlavor", [])}
    world.namespaces = {
        one["metadata"]["name"]: one["metadata"].get("labels") or {}
        for one in by_kind.get("Namespace", [])
    }
    world.local_queues = {make_key(one): one for one in by_kind.get("LocalQueue", [])}
    world.limit_ranges = by_kind.get("LimitRange", [])
    _grow_tree(world, by_kind.get("ClusterQueue", []), by_kind.get("Cohort", []))
    for one in by_kind.get("Workload", []):
        if check_condition(one, "QuotaReserved") and not check_condition(one, "Finished"):
            info = read_workload(one)
            if info.queue in world.queues:
                add_workload(world, info)
    for name in world.inactive:
        # It lends and uses what it has, but nobody sees it any more.
        queue = world.queues[name]
        if queue.parent is not None:
            queue.parent.queues.remove(queue)
    return world


def _grow_tree(world: World, queues: list[Manifest], cohorts: list[Manifest]) -> None:
    specs = {one["metadata"]["name"]: one.get("spec") or {} for one in cohorts}
    parents = {name: spec.get("parentName") or "" for name, spec in specs.items()}
    names = {*specs, *parents.values()}
    names |= {one["spec"].get("cohortName") or "" for one in queues}
    for name in sorted(names - {""}):
        spec = specs.get(name, {})
        quotas = read_quotas(spec.get("resourceGroups") or [])
        world.cohorts[name] = Cohort(name, quotas=quotas, weight=read_weight(spec))
    for name, parent in sorted(parents.items()):
        if parent and not _check_cycle(name, parents):
            world.cohorts[name].parent = world.cohorts[parent]
            world.cohorts[parent].cohorts.append(world.cohorts[name])
    for one in sorted(queues, key=lambda one: str(one["metadata"]["name"])):
        spec, name = one["spec"], one["metadata"]["name"]
        groups = [
            Group(
                tuple(group.get("coveredResources") or ()),
                tuple(f["name"] for f in group.get("flavors") or ()),
            )
            for group in spec.get("resourceGroups") or []
        ]
        cohort = spec.get("cohortName") or ""
        missing = {name for group in groups for name in group.flavors} - set(world.flavors)
        is_stopped = (spec.get("stopPolicy") or "None") != "None"
        if missing or is_stopped or (cohort and _check_cycle(cohort, parents)):
            world.inactive.add(name)
        quotas = read_quotas(spec.get("resourceGroups") or [])
        queue = Queue(name, None, quotas, read_weight(spec), spec=spec, groups=groups)
        if cohort:
            queue.parent = world.cohorts[cohort]
            queue.parent.queues.append(queue)
        world.queues[name] = queue
    for root in {find_root(node) for node in [*world.cohorts.values(), *world.queues.values()]}:
        fill_tree(root)


def _check_cycle(name: str, parents: Mapping[str, str]) -> bool:
    seen = set()
    while name:
        if name in seen:
            return True
        seen.add(name)
        name = parents.get(name, "")
    return False


def read_weight(spec: Manifest) -> float:
    weight = (spec.get("fairSharing") or {}).get("weight")
    return 1.0 if weight is None else read_float(weight)


def read_quotas(groups: Iterable[Mapping[str, Any]]) -> dict[FlavorResource, Quota]:
    quotas = {}
    for group in groups:
        for flavor in group.get("flavors") or ():
            for one in flavor.get("resources") or ():
                name = one["name"]
                limits = [
                    None if one.get(limit) is None else read_quota(name, one[limit])
                    for limit in ("borrowingLimit", "lendingLimit")
                ]
                nominal = read_quota(name, one.get("nominalQuota", 0))
                quotas[flavor["name"], name] = Quota(nominal, *limits)
    return quotas


def add_workload(world: World, info: Info) -> None:
    queue = world.queues[info.queue]
    queue.workloads[info.key] = info
    add_all_usage(queue, sum_usage(info))


def remove_workload(world: World, info: Info) -> None:
    queue = world.queues[info.queue]
    queue.workloads.pop(info.key, None)
    remove_all_usage(queue, sum_usage(info))


def add_usages(world: World, infos: Iterable[Info]) -> None:
    for info in infos:
        add_all_usage(world.queues[info.queue], sum_usage(info))


def remove_usages(world: World, infos: Iterable[Info]) -> None:
    for info in infos:
        remove_all_usage(world.queues[info.queue], sum_usage(info))
