"""Metrics of Kueue's queues, with Kueue's names where the meaning is the same.

Source: Kueue (2026-08), ``pkg/metrics/metrics.go``. Its labels ``priority_class`` and ``replica_role`` are left out, and
so are its counters and times of LocalQueues: these would stay after a LocalQueue is gone.
"""

from __future__ import annotations

from scheduler.kube.report.metrics.families import Family, FamilyKind

_COUNTER, _GAUGE, _HISTOGRAM = FamilyKind.COUNTER, FamilyKind.GAUGE, FamilyKind.HISTOGRAM
# As Kueue's: from a second to almost three hours.
_WAIT = (1.0, *(2.5 * 2**i for i in range(13)))
_QUEUE, _QUOTA = ("cluster_queue",), ("cohort", "cluster_queue", "flavor", "resource")
_LOCAL = "name", "namespace"

# How queues are now.
PENDING = Family(
    "kueue_pending_workloads",
    _GAUGE,
    "Workloads that wait in a ClusterQueue, by status: active will be tried, inadmissible wait for a change.",
    ("cluster_queue", "status"),
)
PLACELESS = Family(
    "evenkeel_cluster_queue_placeless_workloads",
    _GAUGE,
    "Workloads that wait in a ClusterQueue although there is quota for them, because no nodes have a place for all their pods.",
    _QUEUE,
)
RESERVING = Family(
    "kueue_reserving_active_workloads", _GAUGE, "Workloads of a ClusterQueue with quota.", _QUEUE
)
ADMITTED_NOW = Family(
    "kueue_admitted_active_workloads", _GAUGE, "Workloads of a ClusterQueue that may run.", _QUEUE
)
STATUS = Family(
    "kueue_cluster_queue_status",
    _GAUGE,
    "1 for the status of a ClusterQueue: active, or pending if it admits nobody.",
    ("cluster_queue", "status"),
)
NOMINAL = Family(
    "kueue_cluster_queue_nominal_quota",
    _GAUGE,
    "Nominal quota of a ClusterQueue, in cores, bytes or counts.",
    _QUOTA,
)
BORROWING_LIMIT = Family(
    "kueue_cluster_queue_borrowing_limit",
    _GAUGE,
    "Borrowing limit of a ClusterQueue, in cores, bytes or counts; infinite if it has none.",
    _QUOTA,
)
LENDING_LIMIT = Family(
    "kueue_cluster_queue_lending_limit",
    _GAUGE,
    "Lending limit of a ClusterQueue, in cores, bytes or counts; infinite if it has none.",
    _QUOTA,
)
RESERVED_AMOUNT = Family(
    "kueue_cluster_queue_resource_reservation",
    _GAUGE,
    "Quota that the workloads of a ClusterQueue have, in cores, bytes or counts.",
    _QUOTA,
)
USED_AMOUNT = Family(
    "kueue_cluster_queue_resource_usage",
    _GAUGE,
    "Quota that the workloads of a ClusterQueue have which may run, in cores, bytes or counts.",
    _QUOTA,
)
BORROWED_AMOUNT = Family(
    "evenkeel_cluster_queue_borrowed",
    _GAUGE,
    "Quota that the workloads of a ClusterQueue have beyond its nominal quota, in cores, bytes or counts.",
    _QUOTA,
)
SHARE = Family(
    "kueue_cluster_queue_weighted_share",
    _GAUGE,
    "Share of a ClusterQueue: 1000 times what it borrows of what could be lent to it, by its weight; NaN if it borrows with the weight 0.",
    ("cluster_queue", "cohort"),
)
COHORT_SHARE = Family(
    "kueue_cohort_weighted_share",
    _GAUGE,
    "Share of a Cohort, as of a ClusterQueue.",
    ("cohort",),
)

LOCAL_PENDING = Family(
    "kueue_local_queue_pending_workloads",
    _GAUGE,
    "Workloads that wait in a LocalQueue, by status: active will be tried, inadmissible wait for a change.",
    (*_LOCAL, "status"),
)
LOCAL_RESERVING = Family(
    "kueue_local_queue_reserving_active_workloads",
    _GAUGE,
    "Workloads of a LocalQueue with quota.",
    _LOCAL,
)
LOCAL_ADMITTED = Family(
    "kueue_local_queue_admitted_active_workloads",
    _GAUGE,
    "Workloads of a LocalQueue that may run.",
    _LOCAL,
)
LOCAL_STATUS = Family(
    "kueue_local_queue_status",
    _GAUGE,
    "1 for whether a LocalQueue is active: True, or False if its workloads are not admitted.",
    (*_LOCAL, "active"),
)
LOCAL_RESERVED_AMOUNT = Family(
    "kueue_local_queue_resource_reservation",
    _GAUGE,
    "Quota that the workloads of a LocalQueue have, in cores, bytes or counts.",
    (*_LOCAL, "flavor", "resource"),
)
LOCAL_USED_AMOUNT = Family(
    "kueue_local_queue_resource_usage",
    _GAUGE,
    "Quota that the workloads of a LocalQueue have which may run, in cores, bytes or counts.",
    (*_LOCAL, "flavor", "resource"),
)

# What happens to workloads.
RESERVED = Family(
    "kueue_quota_reserved_workloads", _COUNTER, "Times that workloads got quota.", _QUEUE
)
RESERVED_WAIT = Family(
    "kueue_quota_reserved_wait_time_seconds",
    _HISTOGRAM,
    "Time from when a workload was created, or came back to its queue, until it got quota.",
    _QUEUE,
    _WAIT,
)
ADMITTED = Family("kueue_admitted_workloads", _COUNTER, "Times that workloads were admitted.", _QUEUE)  # fmt: skip
ADMITTED_WAIT = Family(
    "kueue_admission_wait_time_seconds",
    _HISTOGRAM,
    "Time from when a workload was created, or came back to its queue, until it was admitted.",
    _QUEUE,
    _WAIT,
)
CHECKS_WAIT = Family(
    "kueue_admission_checks_wait_time_seconds",
    _HISTOGRAM,
    "Time from when a workload got quota until it had passed its admission checks.",
    _QUEUE,
    _WAIT,
)
EVICTED = Family(
    "kueue_evicted_workloads",
    _COUNTER,
    "Times that workloads were evicted, by reason, and by what is behind a deactivation.",
    ("cluster_queue", "reason", "underlying_cause"),
)
PREEMPTED = Family(
    "kueue_preempted_workloads",
    _COUNTER,
    "Times that workloads were preempted, by the ClusterQueue that took their quota, and by reason.",
    ("preempting_cluster_queue", "reason"),
)
REPLACED = Family(
    "kueue_replaced_workload_slices",
    _COUNTER,
    "Times that a slice of the workloads of a job took over the quota of another one, by ClusterQueue.",
    ("cluster_queue",),
)

_VALUES = tuple(globals().values())
ALL: tuple[Family, ...] = tuple(one for one in _VALUES if isinstance(one, Family))
