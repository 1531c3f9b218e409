"""Kueue's words for the conditions of Workloads, for the reasons in them, and for the states of admission checks."""

from __future__ import annotations

# Types of conditions.
QUOTA_RESERVED, ADMITTED, EVICTED, FINISHED = "QuotaReserved", "Admitted", "Evicted", "Finished"
REQUEUED, PODS_READY, PREEMPTED = "Requeued", "PodsReady", "Preempted"
DEACTIVATION_TARGET = "DeactivationTarget"
# Why a workload is evicted. By the first two it may lose its place in the order; by all others it keeps it.
PODS_READY_TIMEOUT, BY_CHECK = "PodsReadyTimeout", "AdmissionCheck"
DEACTIVATED = "Deactivated"
NODE_FAILURES = "NodeFailures"
LOCAL_QUEUE_STOPPED, CLUSTER_QUEUE_STOPPED = "LocalQueueStopped", "ClusterQueueStopped"
# Why a workload is deactivated, beside a check that rejects it.
LIMIT_EXCEEDED, TIME_EXCEEDED = "RequeuingLimitExceeded", "MaximumExecutionTimeExceeded"
# Why its pods are not ready.
WAIT_FOR_START, WAIT_FOR_RECOVERY = "WaitForStart", "WaitForRecovery"
# Why a workload that was evicted is put back into its queue.
REACTIVATED, BACKOFF_FINISHED = "Reactivated", "BackoffFinished"
LOCAL_QUEUE_RESTARTED, CLUSTER_QUEUE_RESTARTED = "LocalQueueRestarted", "ClusterQueueRestarted"
# What a check says before it is known, if the workload has to wait for it no longer, and why it may not start at all.
CHECK_PENDING, CHECK_READY, CHECK_RETRY, CHECK_REJECTED = "Pending", "Ready", "Retry", "Rejected"
# Why a workload never starts whose job wants what is not supported: the reason.
NOT_SUPPORTED = "NotSupported"
# Why a workload is not tried yet: somebody has to agree first; or it waits for a time, a check, or its turn.
GATED, EVALUATED_LATER = "AdmissionGated", "PendingEvaluation"
# The condition of a workload for which others would have to be evicted, and may not; its reason, and its message.
BLOCKED, EVICTS_NOBODY = "BlockedOnPreemptionGates", "PreemptionGated"
EVICTS_NOBODY_SAID = "Workload requires preemption, but it's gated"
# Why a slice of a workload is finished: another one has its quota, or its job needs it no longer.
SLICE_REPLACED, OUT_OF_SYNC = "WorkloadSliceReplaced", "OutOfSync"
PAST = frozenset({SLICE_REPLACED, OUT_OF_SYNC})
