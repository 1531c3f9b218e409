"""Kueue's objects as they are decoded.

What an administrator writes stays as it is written, and its reader says what is wrong with it. A Workload is typed: there
can be very many of them, and the API server has checked them.
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from scheduler.api.wire import Condition, GuardedMeta, Meta, Object, PodSpec, Quantities, Wire


class _Raw(Object):
    """An object of which the spec and the status are read where they are needed."""

    spec: Any = None
    status: Any = None


class _Guarded(_Raw):
    """One that stays while others use it."""

    metadata: GuardedMeta = msgspec.field(default_factory=GuardedMeta)


class ClusterQueue(_Guarded):
    """A queue of the cluster."""


class Cohort(_Raw):
    """Queues and cohorts that lend to each other."""


class LocalQueue(_Raw):
    """The queue of a namespace."""


class ResourceFlavor(_Guarded):
    """A kind of nodes."""


class AdmissionCheck(_Guarded):
    """What another controller has to say before a workload starts."""


class LimitRange(_Raw):
    """What containers of a namespace may ask for; of Kubernetes itself."""


class WorkloadPriorityClass(Object):
    """A priority of workloads."""

    value: int = 0


class PodTemplate(Wire, weakref=True, gc=True):
    """``spec.podSets[].template``."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class PodSet(Wire):
    """``spec.podSets[]``: pods that are alike."""

    name: str = ""
    count: int = 0
    min_count: int | None = None
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)
    topology_request: dict[str, Any] | None = None


class PriorityClassRef(Wire):
    """``spec.priorityClassRef``."""

    group: str = ""
    kind: str = ""
    name: str = ""


class WorkloadSpec(Wire):
    """``spec`` of a Workload; the class of its priority is written in one of two ways, by the version."""

    pod_sets: list[PodSet] | None = None
    queue_name: str = ""
    priority: int | None = None
    priority_class_ref: PriorityClassRef | None = None
    priority_class_name: str = ""
    priority_class_source: str = ""
    active: bool | None = None
    maximum_execution_time_seconds: int | None = None
    preemption_gates: list[dict[str, Any]] | None = None


class PodSetAssignment(Wire):
    """``status.admission.podSetAssignments[]``."""

    name: str = ""
    flavors: dict[str, str] | None = None
    resource_usage: Quantities | None = None
    count: int | None = None
    topology_assignment: dict[str, Any] | None = None
    delayed_topology_request: str | None = None


class Admission(Wire):
    """``status.admission``."""

    cluster_queue: str = ""
    pod_set_assignments: list[PodSetAssignment] | None = None


class TimedCondition(Condition):
    """``status.conditions[]``."""

    last_transition_time: str = ""
    observed_generation: int = 0


class RequeueState(Wire):
    """``status.requeueState``: how often it was put back into its queue, and when it may be tried again."""

    count: int | None = None
    requeue_at: str | None = None


class ReclaimablePods(Wire):
    """``status.reclaimablePods[]``: pods that have ended and whose quota is free."""

    name: str = ""
    count: int = 0


class CheckState(Wire):
    """``status.admissionChecks[]``."""

    name: str = ""
    state: str = ""
    message: str = ""
    last_transition_time: str = ""
    retry_count: int | None = None
    requeue_after_seconds: int | None = None
    pod_set_updates: list[dict[str, Any]] | None = None


class Evictions(Wire):
    """``status.schedulingStats.evictions[]``: how often a workload was evicted for a reason."""

    reason: str = ""
    underlying_cause: str = ""
    count: int = 0


class SchedulingStats(Wire):
    """``status.schedulingStats``."""

    evictions: list[Evictions] | None = None


class WorkloadStatus(Wire):
    """``status`` of a Workload."""

    admission: Admission | None = None
    conditions: list[TimedCondition] | None = None
    requeue_state: RequeueState | None = None
    reclaimable_pods: list[ReclaimablePods] | None = None
    admission_checks: list[CheckState] | None = None
    unhealthy_nodes: list[dict[str, Any]] | None = None
    preemption_gates: list[dict[str, Any]] | None = None
    scheduling_stats: SchedulingStats | None = None
    accumulated_past_execution_time_seconds: int | None = None


class Workload(Object):
    """What waits for quota, and what has it: one for each job."""

    metadata: GuardedMeta = msgspec.field(default_factory=GuardedMeta)
    spec: WorkloadSpec = msgspec.field(default_factory=WorkloadSpec)
    status: WorkloadStatus = msgspec.field(default_factory=WorkloadStatus)


QueueObject = (
    ClusterQueue
    | Cohort
    | LocalQueue
    | ResourceFlavor
    | AdmissionCheck
    | LimitRange
    | WorkloadPriorityClass
    | Workload
)
QUEUE_KINDS = tuple(str(one.__struct_config__.tag) for one in get_args(QueueObject))
