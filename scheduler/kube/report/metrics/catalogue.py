"""Every metric of Evenkeel: with kube-scheduler's or Kueue's name if the meaning is the same, else ``evenkeel_*``.

Administrators and nodes bound the values of every label: no text that only pods contain is a label.
"""

from __future__ import annotations

from scheduler.kube.report.metrics import hami_catalogue, queue_catalogue
from scheduler.kube.report.metrics.families import Family, FamilyKind

_COUNTER, _GAUGE, _HISTOGRAM = FamilyKind.COUNTER, FamilyKind.GAUGE, FamilyKind.HISTOGRAM
_FAST = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
_SLOW = (0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
_WAIT = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
# As kube-scheduler's: from 10 ms to 88 minutes.
_SLI = tuple(0.01 * 2**i for i in range(20))

# What happens to pods.
ATTEMPTS = Family(
    "scheduler_schedule_attempts",
    _COUNTER,
    "Attempts to schedule pods, by result: scheduled, unschedulable or error.",
    ("result", "profile"),
)
ATTEMPT_SECONDS = Family(
    "scheduler_scheduling_attempt_duration_seconds",
    _HISTOGRAM,
    "Time to decide about one pod: a batch's time divided by its pods, once for each pod.",
    ("result", "profile"),
    _FAST,
)
SLI_SECONDS = Family(
    "scheduler_pod_scheduling_sli_duration_seconds",
    _HISTOGRAM,
    "Time from when a pod could first be tried, its scheduling gates removed, to its binding.",
    ("attempts",),
    _SLI,
)
POD_ATTEMPTS = Family(
    "scheduler_pod_scheduling_attempts",
    _HISTOGRAM,
    "Number of attempts until a pod was bound.",
    (),
    (1, 2, 4, 8, 16),
)
PREEMPTION_ATTEMPTS = Family(
    "scheduler_preemption_attempts",
    _COUNTER,
    "Times that preemption was tried for a pod that fits nowhere.",
)
PREEMPTION_VICTIMS = Family(
    "scheduler_preemption_victims",
    _HISTOGRAM,
    "Number of victims of each pod that preempted.",
    (),
    (1, 2, 4, 8, 16, 32, 64),
)
PENDING = Family(
    "scheduler_pending_pods",
    _GAUGE,
    "Pending pods, by part of the queue: active, backoff, unschedulable or gated.",
    ("queue",),
)
INCOMING = Family(
    "scheduler_queue_incoming_pods",
    _COUNTER,
    "Times that a pod came to a part of the queue, by the event that brought it there.",
    ("queue", "event"),
)
UNSCHEDULABLE = Family(
    "scheduler_unschedulable_pods",
    _GAUGE,
    "Pods whose last attempt found no node, once for each rule that refused at least one node.",
    ("plugin", "profile"),
)
OLDEST_WAIT = Family(
    "evenkeel_oldest_wait_seconds",
    _GAUGE,
    "Longest wait of all pending pods, 0 if no pod waits.",
)
NAMESPACE_PENDING = Family(
    "evenkeel_namespace_pending_pods",
    _GAUGE,
    "Pending pods by namespace, without gated pods.",
    ("namespace",),
)
NAMESPACE_OLDEST_WAIT = Family(
    "evenkeel_namespace_oldest_wait_seconds",
    _GAUGE,
    "Longest wait of a namespace's pending pods.",
    ("namespace",),
)
QUEUE_WAIT_SECONDS = Family(
    "evenkeel_queue_wait_seconds",
    _HISTOGRAM,
    "Time that a pod was active in the queue until its turn came.",
    (),
    _WAIT,
)
BIND_SECONDS = Family(
    "evenkeel_bind_duration_seconds",
    _HISTOGRAM,
    "Time from a decision to its binding, including waits for a node's device plugin.",
    (),
    _SLOW,
)
PLACEMENTS = Family(
    "evenkeel_placements",
    _COUNTER,
    "Pods bound, by the mode or node policy that placed them and the BalancePolicy that governed them.",
    ("mode", "policy"),
)

# What happens to groups of pods.
GROUPS_PENDING = Family(
    "evenkeel_pending_groups",
    _GAUGE,
    "Groups with pods that wait, by part of the queue: active, backoff, unschedulable or gated.",
    ("queue",),
)
GROUPS_BROKEN = Family(
    "evenkeel_broken_groups",
    _GAUGE,
    "Groups that have pods on nodes, but fewer than their minimum.",
)
GROUP_ATTEMPTS = Family(
    "evenkeel_group_attempts",
    _COUNTER,
    "Attempts to place groups, by result: placed or unschedulable.",
    ("result",),
)
GROUP_START_SECONDS = Family(
    "evenkeel_group_start_seconds",
    _HISTOGRAM,
    "Time from when a group could first be tried to the decision that places its minimum, by the number of its pods that are placed then.",
    ("size",),
    _SLI,
)
GROUP_EVICTIONS = Family(
    "evenkeel_group_evictions",
    _COUNTER,
    "Groups whose pods were sent away together to make room for others.",
)
PROMISES = Family(
    "evenkeel_promises",
    _COUNTER,
    "Promises of room for a later time that ended with the group placed, by whether it was placed in time.",
    ("result",),
)
BACKFILLED_PODS = Family(
    "evenkeel_backfilled_pods",
    _COUNTER,
    "Pods placed where room for a later time is promised to a group that comes before them, without delay for the group.",
)

# The replica.
LEADER = Family("evenkeel_leader", _GAUGE, "1 on the replica that decides, 0 on the others.")
LEASE_HOLDER = Family(
    "evenkeel_lease_holder",
    _GAUGE,
    "1 for the kind of holder that the lease has: self, replica (another one), peer (a scheduler that shares the lease), other (any other program) or nobody.",
    ("holder",),
)
LEASE_ERRORS = Family(
    "evenkeel_lease_errors", _COUNTER, "Reads and writes of the lease that failed."
)
STREAM_AGE = Family(
    "evenkeel_stream_age_seconds",
    _GAUGE,
    "Seconds since the API server last sent something on a stream.",
    ("stream",),
)
STREAM_LISTS = Family(
    "evenkeel_stream_lists",
    _COUNTER,
    "Lists that a stream requested, including the first.",
    ("stream",),
)
STREAM_REFUSED = Family(
    "evenkeel_stream_refused",
    _GAUGE,
    "1 while the API server refuses the list or watch of a stream.",
    ("stream",),
)
MISSING_RIGHT = Family(
    "evenkeel_missing_right",
    _GAUGE,
    "1 for each right that Evenkeel needs and does not have.",
    ("right",),
)
UNFENCED = Family(
    "evenkeel_unfenced_pods",
    _GAUGE,
    "Pods that a new leader must still fence: with devices before it decides, others while it decides.",
)
QUEUES_HELD = Family(
    "evenkeel_queues_held",
    _GAUGE,
    "1 while Kueue's own controller manages the queues that Evenkeel is to manage, so that Evenkeel writes nothing about them.",
)
KAI_QUEUES_HELD = Family(
    "evenkeel_kai_queues_held",
    _GAUGE,
    "1 while KAI-Scheduler itself runs, so that Evenkeel decides and writes nothing in the KAI queues that it is to manage.",
)
# The paths of the webhook.
WEBHOOKS = "mutate", "validate", "mutate-device-pods"
REVIEWS = Family(
    "evenkeel_webhook_requests",
    _COUNTER,
    "Reviews that the webhook got, by its path and by what it answered.",
    ("webhook", "result"),
)
REVIEW_SECONDS = Family(
    "evenkeel_webhook_request_seconds",
    _HISTOGRAM,
    "Time from when a review came to the webhook until it was answered.",
    ("webhook",),
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
REPORTS_WAITING = Family(
    "evenkeel_reports_waiting", _GAUGE, "Events and conditions of pods that are not written yet."
)
REPORTS_DROPPED = Family(
    "evenkeel_reports_dropped",
    _COUNTER,
    "Events and conditions of pods that were never written, because Evenkeel gave up.",
)
BUILD = Family(
    "evenkeel_build_info",
    _GAUGE,
    "Always 1; the labels name the versions of Evenkeel and Python, and the architecture.",
    ("version", "python", "machine"),
)

# The cluster.
NODES = Family("evenkeel_nodes", _GAUGE, "Nodes that the scheduler knows.")
NODES_CLOSED = Family(
    "evenkeel_nodes_closed",
    _GAUGE,
    "Nodes whose resources or devices are not allocated, by reason: malformed, plugin-silent, over-full-card or cordoned.",
    ("reason",),
)
PLUGIN_SILENCES = Family(
    "evenkeel_device_plugin_silences",
    _COUNTER,
    "Times that the device plugin of a node stopped answering.",
)
FOREIGN_WRITES = Family(
    "evenkeel_foreign_writes",
    _COUNTER,
    "Devices of nodes of ours that another scheduler has allocated, and locks of such nodes that it has written.",
    ("kind",),
)
_PARTS = (
    "capacity = used + free + closed (out of service: cordoned or unhealthy); stranded (typical pods cannot use it) and "
    "spare (no loss) are parts of free, dead (no typical pod at all can use it) is a part of stranded"
)
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
    "Time at which the parts of the cluster were last measured, in seconds since 1970.",
)
NODE_STRANDED = Family(
    "evenkeel_node_stranded_gpus",
    _GAUGE,
    "Free compute of a node's GPUs that typical pods cannot use, in GPUs.",
    ("node",),
)

_STATES = "allocated, free, tainted (a taint keeps it from claims) or blocked (too little is left of the counters that it draws on)"
DEVICES = Family(
    "evenkeel_devices",
    _GAUGE,
    f"Devices of ResourceSlices, by driver and state: {_STATES}.",
    ("driver", "state"),
)
CLASS_DEVICES = Family(
    "evenkeel_class_devices",
    _GAUGE,
    f"Devices of a DeviceClass, by state: {_STATES}. A device may be of several classes.",
    ("class", "state"),
)
POOLS = Family(
    "evenkeel_device_pools",
    _GAUGE,
    "Pools of ResourceSlices, by driver and state: whole, incomplete (slices are missing) or invalid (slices contradict each other).",
    ("driver", "state"),
)
CLAIMS = Family(
    "evenkeel_resource_claims",
    _GAUGE,
    "ResourceClaims, by state: reserved, unreserved (it has devices that nobody has reserved) or waiting (it has none).",
    ("state",),
)
NAMESPACE_GPUS = Family(
    "evenkeel_namespace_gpus_allocated",
    _GAUGE,
    "GPUs that the pods on nodes hold, by namespace. A share counts as its part of the compute, or of the memory if the pod has no limit on compute.",
    ("namespace",),
)
NODE_MODELS = Family(
    "evenkeel_node_gpu_models",
    _GAUGE,
    "GPUs of a node, by model; the model is empty if the node does not report it.",
    ("node", "resource", "model"),
)

# Devices: capacity, and which part of it is allocated.
_OF_NODE, _OF_CARD = ("node", "resource"), ("node", "resource", "card", "uuid", "model")


def _make_pair(
    what: str, name: str, meaning: str, labels: tuple[str, ...]
) -> tuple[Family, Family]:
    unit = "_bytes" if name.endswith("_bytes") else ""
    stem = name.removesuffix(unit)
    return (
        Family(f"evenkeel_{what}_{name}", _GAUGE, f"{meaning}: capacity.", labels),
        Family(f"evenkeel_{what}_{stem}_allocated{unit}", _GAUGE, f"{meaning}: allocated.", labels),
    )


NODE_DEVICES = _make_pair("node", "gpus", "GPUs of a node", _OF_NODE)
NODE_CORES = _make_pair(
    "node", "gpu_cores", "Compute of a node's shared GPUs, in percent of one GPU", _OF_NODE
)  # fmt: skip
NODE_MEMORY = _make_pair(
    "node", "gpu_memory_bytes", "Memory of a node's shared GPUs, in bytes", _OF_NODE
)  # fmt: skip
NODE_SHARERS = _make_pair(
    "node", "gpu_sharers", "Places for sharers on a node's shared GPUs", _OF_NODE
)  # fmt: skip
CARD_CORES = _make_pair("card", "cores", "Compute of a card, in percent of one GPU", _OF_CARD)
CARD_MEMORY = _make_pair("card", "memory_bytes", "Memory of a card, in bytes", _OF_CARD)
CARD_SHARERS = _make_pair("card", "sharers", "Places for sharers on a card", _OF_CARD)

_VALUES = (*tuple(globals().values()), queue_catalogue.ALL, hami_catalogue.ALL)
ALL: tuple[Family, ...] = tuple(
    family
    for told in _VALUES
    for family in (told if isinstance(told, tuple) else (told,))
    if isinstance(family, Family)
)
