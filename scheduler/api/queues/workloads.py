"""Reads Kueue's Workloads: what waits for quota, and what has it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import msgspec

from scheduler.api import kueue, names, selectors, times, values, wire
from scheduler.api.door.workload_decisions import DomainsGiven
from scheduler.api.limits import shorten
from scheduler.api.pods import requests
from scheduler.api.pods.tolerations import TolerationKey
from scheduler.api.queues import amounts, bounds
from scheduler.api.queues.amounts import Amounts
from scheduler.api.queues.chains import find_chain, find_replaced
from scheduler.api.queues.domains import read_domains
from scheduler.api.queues.lifecycles import (
    FRESH,
    Lifecycle,
    find_requeue_time,
    has_closed_gate,
    read_lifecycle,
)
from scheduler.api.queues.run_times import find_run_seconds
from scheduler.api.queues.words import (
    ADMITTED,
    BY_CHECK,
    EVICTED,
    FINISHED,
    PODS_READY_TIMEOUT,
    QUOTA_RESERVED,
    REQUEUED,
)
from scheduler.api.selectors import Requirement
from scheduler.errors import BadInput

_INT32, _SETS_MAX = 2**31, 18
_encoder = msgspec.json.Encoder(order="deterministic")
# The fields of a topology request that ask for a topology; the others only describe the pods.
_ASKS_TOPOLOGY = (
    "required", "preferred", "unconstrained", "podSetSliceRequiredTopology", "podSetSliceSize",
    "podsetSliceRequiredTopologyConstraints",
)  # fmt: skip
# So many bytes of the names of those who have to agree are shown.
_GATES_SHOWN = 1000
_CLASS = str(kueue.WorkloadPriorityClass.__struct_config__.tag)
_CLASS_SOURCE = "kueue.x-k8s.io/workloadpriorityclass"
WORKLOAD = "Workload"
# A kind, a namespace and a name.
OwnerKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PodShape:
    """What pods of a template ask for; interned, so it is compared by identity.

    Attributes:
        requests: (resource, amount) of one pod by name, with those of 0.
        selector: labels that nodes must have.
        required: of each term of required node affinity the requirements on labels; None for no affinity.
        tolerations: (key, operator, value, effect).
        topology: what is asked of a topology; None for nothing.
        asks: what each of its containers asks for.
        problem: what has to be mended before pods of this template can start; empty for nothing.
    """

    requests: Amounts
    selector: tuple[tuple[str, str], ...]
    required: tuple[tuple[Requirement, ...], ...] | None
    tolerations: tuple[TolerationKey, ...]
    topology: Mapping[str, Any] | None
    asks: tuple[bounds.ContainerAsk, ...] = ()
    problem: str = ""

    @property
    def asks_topology(self) -> bool:
        """Whether its pods have to be placed by a topology."""
        return self.topology is not None and any(
            self.topology.get(one) is not None for one in _ASKS_TOPOLOGY
        )

    @property
    def group(self) -> str:
        """The pod sets with which it is placed as one; empty for none."""
        return str((self.topology or {}).get("podSetGroupName") or "")


class PodSet(NamedTuple):
    """Pods of a workload that are alike.

    Attributes:
        least: if it is less than ``n_pods``, so many may be enough.
        mold: the template of its pods if they are ours, so that they can be placed before they exist.
    """

    name: str
    n_pods: int
    least: int
    shape: PodShape
    mold: kueue.PodTemplate | None = None


class Assigned(NamedTuple):
    """What a pod set has been given.

    Attributes:
        name: of the pod set.
        n_pods: for how many pods.
        flavors: (resource, flavor).
        used: what they use in all.
        domains: in which domains of a topology they are; None if nobody says it.
    """

    name: str
    n_pods: int
    flavors: tuple[tuple[str, str], ...]
    used: Amounts
    domains: DomainsGiven | None = None


class Admission(NamedTuple):
    """In which queue of the cluster a workload has quota, for which pods, and since when."""

    queue: str
    assigned: tuple[Assigned, ...]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadDefinition:
    """A Workload as it is written.

    Attributes:
        key: namespace/name.
        local: the name of its queue in its namespace.
        since: its place in the order: when it was created, or when it lost its place.
        reclaimed: how many pods of each pod set have ended for good.
        admission: what it has been given; None while it waits.
        is_admitted: whether all admission checks have let it start.
        evicted: why it has to give up what it was given; empty if it has not.
        not_before: it is not tried before; None: not before somebody says so.
        checks: the state of each admission check.
        owner: whose workload it is; None if nobody owns it.
        priority_class: the WorkloadPriorityClass from which it has its priority; empty for none.
        chain: the namespace and the name of the first slice of the workloads of a job that changes its size while it runs, and the
            job's uid; empty for other workloads.
        replaces: the slice whose quota it takes over once it gets its own; empty for none.
        life: what else its object says of its life.
        gates: who has to agree before it is tried, as a message shows it; empty for nobody.
        evicts_nobody: whether nobody may be evicted for it as it is: one of its preemption gates is closed.
        run_seconds: for so long it runs at most once it is admitted, by what it and its pods say; None if they do not, or it was not read.
    """

    key: str
    uid: str
    local: str
    priority: int
    since: float
    sets: tuple[PodSet, ...]
    reclaimed: tuple[tuple[str, int], ...] = ()
    admission: Admission | None = None
    is_admitted: bool = False
    is_active: bool = True
    is_finished: bool = False
    evicted: str = ""
    not_before: float | None = 0.0
    checks: tuple[tuple[str, str], ...] = ()
    owner: OwnerKey | None = None
    priority_class: str = ""
    chain: str = ""
    replaces: str = ""
    life: Lifecycle = FRESH
    gates: str = ""
    evicts_nobody: bool = False
    run_seconds: float | None = None


class Shapes:
    """The shapes of pod sets, and the templates of those whose pods are ours, each made once."""

    def __init__(self, schedulers: Collection[str] = ()) -> None:
        """``schedulers``: the names by which pods are ours."""
        self._schedulers = schedulers
        self._known: dict[bytes, PodShape] = {}
        self._molds: WeakValueDictionary[bytes, kueue.PodTemplate] = WeakValueDictionary()

    def find_mold(self, found: kueue.PodSet) -> kueue.PodTemplate | None:
        """Return the template of a pod set whose pods are ours; None for others."""
        if found.template.spec.scheduler_name not in self._schedulers:
            return None
        key = _encoder.encode(found.template)
        known = self._molds.get(key)
        if known is None:
            known = self._molds[key] = found.template
        return known

    def find_shape(self, found: kueue.PodSet) -> PodShape:
        """Return the shape of a pod set."""
        key = _encoder.encode(_list_parts(found))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _make_shape(found)
        return known

    def forget_unused(self, used: set[int]) -> None:
        """Forget the shapes whose identity nobody uses."""
        self._known = {key: one for key, one in self._known.items() if id(one) in used}

    def __len__(self) -> int:
        return len(self._known)


def _list_parts(found: kueue.PodSet) -> list[Any]:
    """List the parts of a pod set that a shape is made of: no names and no images."""
    spec = found.template.spec
    nodes = spec.affinity and spec.affinity.node_affinity
    containers = ((one.resources, one.restart_policy) for one in spec.containers)
    before = ((one.resources, one.restart_policy) for one in spec.init_containers or ())
    return [
        list(containers),
        list(before),
        spec.overhead,
        spec.resources,
        spec.node_selector,
        nodes and nodes.required_during_scheduling_ignored_during_execution,
        spec.tolerations,
        found.topology_request,
    ]


def _make_shape(found: kueue.PodSet) -> PodShape:
    spec = found.template.spec
    problem = ""
    asked: Amounts = ()
    asks: tuple[bounds.ContainerAsk, ...] = ()
    try:
        asks = tuple(bounds.list_asks(spec))
        asked = requests.read_quota_amounts(spec)
    except BadInput as error:
        problem = str(error)
    nodes = (spec.affinity and spec.affinity.node_affinity) or wire.NodeAffinity()
    required = nodes.required_during_scheduling_ignored_during_execution
    terms = None
    if required is not None:
        try:
            terms = tuple(
                tuple(
                    selectors.read_label_requirement(one, f"matchExpressions[{i}]")
                    for i, one in enumerate(term.match_expressions or ())
                )
                for term in required.node_selector_terms or ()
            )
        except BadInput as error:
            problem = problem or str(error)
    return PodShape(
        requests=asked,
        selector=tuple(sorted((spec.node_selector or {}).items())),
        required=terms,
        tolerations=tuple(
            (one.key, one.operator or "Equal", one.value, one.effect)
            for one in spec.tolerations or ()
        ),
        topology=found.topology_request,
        asks=asks,
        problem=problem,
    )


def read_workload(
    found: kueue.Workload,
    shapes: Shapes,
    *,
    by_eviction: bool = True,
    with_run_time: bool = False,
) -> WorkloadDefinition:
    """Read a Workload; ``by_eviction`` as in ``QueueSettings``.

    Its run time is read only if it is wanted: its templates may say it, and reading them takes a while.

    Raises:
        BadInput: it has no pod set or too many, a negative number of pods, or a quantity that is none.
    """
    meta, spec, status = found.metadata, found.spec, found.status
    given = spec.pod_sets or []
    if not 0 < len(given) <= _SETS_MAX:
        raise BadInput("spec.podSets", f"has {len(given)} items; 1 to {_SETS_MAX} are allowed")
    sets = []
    for i, one in enumerate(given):
        least = one.count if one.min_count is None else one.min_count
        if not 0 <= one.count < _INT32 or not 0 <= least <= one.count:
            raise BadInput(
                f"spec.podSets[{i}].count",
                f"{one.count} and minCount {least} are not counts of pods",
            )
        shape, mold = shapes.find_shape(one), shapes.find_mold(one)
        sets.append(PodSet(one.name or "main", one.count, least, shape, mold))
    conditions = {one.type: one for one in status.conditions or () if one.status == "True"}
    created = float(times.read_time(meta.creation_timestamp) or 0)
    return WorkloadDefinition(
        key=f"{meta.namespace}/{meta.name}",
        uid=meta.uid or f"{meta.namespace}/{meta.name}",
        local=spec.queue_name,
        priority=values.read_integer(spec.priority or 0, "spec.priority", -_INT32, _INT32 - 1),
        since=_find_place(conditions, created, by_eviction=by_eviction),
        sets=tuple(sets),
        reclaimed=tuple((one.name, one.count) for one in status.reclaimable_pods or ()),
        admission=_read_admission(status, sets, _read_transition(conditions, QUOTA_RESERVED)),
        is_admitted=ADMITTED in conditions,
        is_active=spec.active is not False,
        is_finished=FINISHED in conditions,
        evicted=conditions[EVICTED].reason or EVICTED if EVICTED in conditions else "",
        not_before=_find_wait(status),
        checks=tuple((one.name, one.state) for one in status.admission_checks or ()),
        owner=_find_owner(meta),
        priority_class=_find_class(spec),
        chain=find_chain(meta),
        replaces=find_replaced(meta),
        life=read_lifecycle(found),
        gates=shorten((meta.annotations or {}).get(names.KUEUE_GATED, ""), _GATES_SHOWN),
        evicts_nobody=has_closed_gate(found),
        run_seconds=find_run_seconds(found) if with_run_time else None,
    )


def _find_class(spec: kueue.WorkloadSpec) -> str:
    """Find the WorkloadPriorityClass of a workload, in the words of either version."""
    ref = spec.priority_class_ref
    if ref is not None:
        return ref.name if ref.kind == _CLASS else ""
    return spec.priority_class_name if spec.priority_class_source == _CLASS_SOURCE else ""


def _find_owner(meta: wire.Meta) -> OwnerKey | None:
    """Find whose workload it is."""
    for one in meta.owner_references or ():
        if one.controller:
            return one.kind, meta.namespace, one.name
    return None


def _read_transition(conditions: Mapping[str, kueue.TimedCondition], kind: str) -> float:
    found = conditions.get(kind)
    return float(times.read_time(found.last_transition_time) or 0) if found else 0.0


def _find_place(
    conditions: Mapping[str, kueue.TimedCondition], created: float, *, by_eviction: bool
) -> float:
    """Find a workload's place in the order."""
    evicted = conditions.get(EVICTED)
    loses = {PODS_READY_TIMEOUT, BY_CHECK} if by_eviction else {BY_CHECK}
    if evicted is not None and evicted.reason in loses:
        return _read_transition(conditions, EVICTED) or created
    return created


def _find_wait(status: kueue.WorkloadStatus) -> float | None:
    """Find before when a workload is not tried; None if it is not tried until somebody says so."""
    for one in status.conditions or ():
        if one.type == REQUEUED and one.status == "False":
            return None
    return find_requeue_time(status)


def _read_admission(
    status: kueue.WorkloadStatus, sets: list[PodSet], at: float
) -> Admission | None:
    found = status.admission
    if found is None:
        return None
    counts = {one.name: one.n_pods for one in sets}
    assigned = []
    for i, one in enumerate(found.pod_set_assignments or ()):
        where = f"status.admission.podSetAssignments[{i}].resourceUsage"
        assigned.append(
            Assigned(
                name=one.name,
                n_pods=counts.get(one.name, 0) if one.count is None else one.count,
                flavors=tuple(sorted((one.flavors or {}).items())),
                used=amounts.read_amounts(one.resource_usage, where),
                domains=read_domains(one.topology_assignment),
            )
        )
    return Admission(found.cluster_queue, tuple(assigned), at)


def count_pods(sets: tuple[PodSet, ...], reclaimed: tuple[tuple[str, int], ...]) -> list[int]:
    """Count the pods of each pod set that have not ended for good."""
    ended = dict(reclaimed)
    return [max(0, one.n_pods - ended.get(one.name, 0)) for one in sets]
