"""Every metric of Evenkeel's own: kube-scheduler's names where the meaning is the same, ``evenkeel_*`` else.

The values of every label are bounded by what administrators and nodes bring: nothing that only pods say is one.
"""

from __future__ import annotations

from scheduler.kube.report.metrics.families import Family, Kind

_COUNTER, _GAUGE, _HISTOGRAM = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM
_FAST = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
_SLOW = (0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
_WAIT = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
# As kube-scheduler's: from 10 ms to 88 minutes.
_SLI = tuple(0.01 * 2**i for i in range(20))

# What happens to pods.
ATTEMPTS = Family(
    "scheduler_schedule_attempts",
    _COUNTER,
    "Attempts to schedule pods: scheduled, unschedulable, error.",
    ("result", "profile"),
)
ATTEMPT_SECONDS = Family(
    "scheduler_scheduling_attempt_duration_seconds",
    _HISTOGRAM,
    "Time to decide for one pod: a batch's time over its pods, once for each of them.",
    ("result", "profile"),
    _FAST,
)
SLI_SECONDS = Family(
    "scheduler_pod_scheduling_sli_duration_seconds",
    _HISTOGRAM,
    "Time from when a pod could be tried first, its scheduling gates gone, to its binding.",
    ("attempts",),
    _SLI,
)
POD_ATTEMPTS = Family(
    "scheduler_pod_scheduling_attempts",
    _HISTOGRAM,
    "Attempts that a pod took until it was bound.",
    (),
    (1, 2, 4, 8, 16),
)
PREEMPTION_ATTEMPTS = Family(
    "scheduler_preemption_attempts",
    _COUNTER,
    "Times that a pod which fitted nowhere looked whose place it could take.",
)
PREEMPTION_VICTIMS = Family(
    "scheduler_preemption_victims",
    _HISTOGRAM,
    "Pods that had to go for one of higher priority, for each that found room so.",
    (),
    (1, 2, 4, 8, 16, 32, 64),
)
PENDING = Family(
    "scheduler_pending_pods",
    _GAUGE,
    "Pending pods, by part of the queue: active, backoff, unschedulable, gated.",
    ("queue",),
)
INCOMING = Family(
    "scheduler_queue_incoming_pods",
    _COUNTER,
    "Times that a pod came to a part of the queue, by why.",
    ("queue", "event"),
)
UNSCHEDULABLE = Family(
    "scheduler_unschedulable_pods",
    _GAUGE,
    "Pods that found no node when they were tried last, by each rule that kept them from one.",
    ("plugin", "profile"),
)
OLDEST_WAIT = Family(
    "evenkeel_oldest_wait_seconds",
    _GAUGE,
    "Time for which the pod has waited that waits longest, 0 when none waits.",
)
NAMESPACE_PENDING = Family(
    "evenkeel_namespace_pending_pods",
    _GAUGE,
    "Pending pods without those that are gated, by namespace.",
    ("namespace",),
)
NAMESPACE_OLDEST_WAIT = Family(
    "evenkeel_namespace_oldest_wait_seconds",
    _GAUGE,
    "Time for which the pod of a namespace has waited that waits longest.",
    ("namespace",),
)
QUEUE_WAIT_SECONDS = Family(
    "evenkeel_queue_wait_seconds",
    _HISTOGRAM,
    "Time that a pod was active in the queue until its turn.",
    (),
    _WAIT,
)
BIND_SECONDS = Family(
    "evenkeel_bind_duration_seconds",
    _HISTOGRAM,
    "Time from a decision to its binding, waits for a node's device plugin included.",
    (),
    _SLOW,
)
PLACEMENTS = Family(
    "evenkeel_placements",
    _COUNTER,
    "Pods bound, by the mode or node policy that placed them and the BalancePolicy that governed them.",
    ("mode", "policy"),
)

# The replica.
LEADER = Family("evenkeel_leader", _GAUGE, "1 on the replica that decides.")
LEASE_HOLDER = Family(
    "evenkeel_lease_holder",
    _GAUGE,
    "1 for who holds the lease: self, another replica, a peer that shares it, a stranger, nobody.",
    ("holder",),
)
LEASE_ERRORS = Family(
    "evenkeel_lease_errors", _COUNTER, "Times that the lease could not be read or written."
)
STREAM_AGE = Family(
    "evenkeel_stream_age_seconds",
    _GAUGE,
    "Seconds since a stream gave a sign of life.",
    ("stream",),
)
STREAM_LISTS = Family(
    "evenkeel_stream_lists", _COUNTER, "Lists a stream made, the first included.", ("stream",)
)
STREAM_REFUSED = Family(
    "evenkeel_stream_refused",
    _GAUGE,
    "1 while the API server refuses a list or watch.",
    ("stream",),
)
MISSING_RIGHT = Family(
    "evenkeel_missing_right", _GAUGE, "1 for each right that is missing.", ("right",)
)
UNFENCED = Family(
    "evenkeel_unfenced_pods",
    _GAUGE,
    "Pods that a new leader still has to fence before it decides.",
)
REPORTS_WAITING = Family(
    "evenkeel_reports_waiting", _GAUGE, "Events and conditions not written yet."
)
REPORTS_DROPPED = Family("evenkeel_reports_dropped", _COUNTER, "Events and conditions given up.")
BUILD = Family(
    "evenkeel_build_info", _GAUGE, "1; which Evenkeel this is.", ("version", "python", "machine")
)

# The cluster.
NODES = Family("evenkeel_nodes", _GAUGE, "Nodes known.")
NODES_CLOSED = Family(
    "evenkeel_nodes_closed",
    _GAUGE,
    "Nodes whose resources or devices are not allocated, by reason: malformed, plugin-silent, over-full-card, cordoned.",
    ("reason",),
)
PLUGIN_SILENCES = Family(
    "evenkeel_device_plugin_silences",
    _COUNTER,
    "Times that the device plugin of a node stopped answering.",
)
_PARTS = "capacity = used + free + closed; stranded and spare are parts of free, dead of stranded"
CPU_CORES = Family(
    "evenkeel_cpu_cores", _GAUGE, f"CPU of all nodes, in cores, by part: {_PARTS}.", ("part",)
)
MEMORY_BYTES = Family(
    "evenkeel_memory_bytes", _GAUGE, f"Memory of all nodes, by part: {_PARTS}.", ("part",)
)
GPUS = Family(
    "evenkeel_gpus", _GAUGE, f"Compute of all GPUs, in GPUs, by part: {_PARTS}.", ("part",)
)
GPU_MEMORY_BYTES = Family(
    "evenkeel_gpu_memory_bytes", _GAUGE, f"Memory of all GPUs, by part: {_PARTS}.", ("part",)
)
MEASURED = Family(
    "evenkeel_measured_timestamp_seconds",
    _GAUGE,
    "When the parts of the cluster were measured, in seconds since 1970.",
)
NODE_STRANDED = Family(
    "evenkeel_node_stranded_gpus",
    _GAUGE,
    "Free compute of a node's GPUs that no pod that comes can use, in GPUs.",
    ("node",),
)

NAMESPACE_GPUS = Family(
    "evenkeel_namespace_gpus_allocated",
    _GAUGE,
    "GPUs that pods with a node hold, by namespace; a share is its part of the compute, or of the memory without a limit on compute.",
    ("namespace",),
)
NODE_MODELS = Family(
    "evenkeel_node_gpu_models",
    _GAUGE,
    "GPUs of a node by model; the model is empty where the node does not report it.",
    ("node", "resource", "model"),
)

# Devices: capacity, and which part of it is allocated.
_OF_NODE, _OF_CARD = ("node", "resource"), ("node", "resource", "card", "uuid", "model")


def _devices(what: str, name: str, meaning: str, labels: tuple[str, ...]) -> tuple[Family, Family]:
    unit = "_bytes" if name.endswith("_bytes") else ""
    stem = name.removesuffix(unit)
    return (
        Family(f"evenkeel_{what}_{name}", _GAUGE, f"{meaning} there are.", labels),
        Family(f"evenkeel_{what}_{stem}_allocated{unit}", _GAUGE, f"{meaning} allocated.", labels),
    )


NODE_DEVICES = _devices("node", "gpus", "Of a node's GPUs, how many", _OF_NODE)
NODE_CORES = _devices(
    "node", "gpu_cores", "Of the compute of a node's shared GPUs, how many percent of a GPU", _OF_NODE
)  # fmt: skip
NODE_MEMORY = _devices(
    "node", "gpu_memory_bytes", "Of the memory of a node's shared GPUs, how many bytes", _OF_NODE
)  # fmt: skip
NODE_SHARERS = _devices(
    "node", "gpu_sharers", "Of the places for sharers on a node's shared GPUs, how many", _OF_NODE
)  # fmt: skip
CARD_CORES = _devices("card", "cores", "Of a card's compute, how many percent of a GPU", _OF_CARD)
CARD_MEMORY = _devices("card", "memory_bytes", "Of a card's memory, how many bytes", _OF_CARD)
CARD_SHARERS = _devices(
    "card", "sharers", "Of the places for sharers on a card, how many", _OF_CARD
)

_TOLD = (one for one in tuple(globals().values()))
ALL: tuple[Family, ...] = tuple(
    family
    for told in _TOLD
    for family in (told if isinstance(told, tuple) else (told,))
    if isinstance(family, Family)
)
