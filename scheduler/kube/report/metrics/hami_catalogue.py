"""Metrics with the names, labels and units of HAMi's scheduler, so that dashboards made for HAMi go on working.

Source: HAMi (2026-08), ``cmd/scheduler/metrics.go`` and ``pkg/metrics/metrics.go``. Each is there under its present name
and under the one that HAMi writes with ``--legacy-metrics``. Labels are in the order in which HAMi's client library
writes them: by name.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler.kube.report.metrics.families import Family, FamilyKind

_GAUGE = FamilyKind.GAUGE
# HAMi writes one zone, always the same.
ZONE = "vGPU"
_CARD = ("device_index", "device_type", "device_uuid", "node", "zone")
_OLD_CARD = ("deviceidx", "devicetype", "deviceuuid", "nodeid", "zone")
_POD = ("container_index", "device_uuid", "namespace", "node", "pod", "zone")
_OLD_POD = ("containeridx", "deviceuuid", "nodename", "podname", "podnamespace", "zone")


class Named(NamedTuple):
    """One figure under both of its names."""

    current: Family
    legacy: Family


def _name(
    current: str, legacy: str, meaning: str, labels: tuple[str, ...], old_labels: tuple[str, ...]
) -> Named:
    return Named(
        Family(current, _GAUGE, f"{meaning}.", labels),
        Family(legacy, _GAUGE, f"{meaning}; the old name of {current}.", old_labels),
    )


MEMORY_LIMIT = _name(
    "hami_gpu_memory_limit_bytes",
    "GPUDeviceMemoryLimit",
    "Memory of a card that can be allocated, in bytes",
    _CARD,
    _OLD_CARD,
)
CORE_LIMIT = _name(
    "hami_gpu_core_limit_ratio",
    "GPUDeviceCoreLimit",
    "Compute of a card that can be allocated, in percent of one GPU",
    _CARD,
    _OLD_CARD,
)
MEMORY_ALLOCATED = _name(
    "hami_gpu_memory_allocated_bytes",
    "GPUDeviceMemoryAllocated",
    "Memory of a card that is allocated, in bytes",
    ("device_cores", *_CARD),
    ("devicecores", *_OLD_CARD),
)
SHARED = _name(
    "hami_gpu_shared_count",
    "GPUDeviceSharedNum",
    "Containers that share a card",
    _CARD,
    _OLD_CARD,
)
CORE_ALLOCATED = _name(
    "hami_gpu_core_allocated_ratio",
    "GPUDeviceCoreAllocated",
    "Compute of a card that is allocated, in percent of one GPU",
    _CARD,
    _OLD_CARD,
)
OVERVIEW = _name(
    "hami_node_gpu_overview",
    "nodeGPUOverview",
    "Memory of a card that is allocated, in bytes; the labels have what the card has of compute and memory",
    ("device_cores", "device_index", "device_memory_limit", *_CARD[1:]),
    ("devicecores", "deviceidx", "devicememorylimit", *_OLD_CARD[1:]),
)
MEMORY_RATIO = _name(
    "hami_node_gpu_memory_allocated_ratio",
    "nodeGPUMemoryPercentage",
    "Part of a card's memory that is allocated, 0 to 1",
    _CARD,
    ("deviceidx", "deviceuuid", "nodeid", "zone"),
)
POD_MEMORY = _name(
    "hami_vgpu_memory_allocated_bytes",
    "vGPUMemoryAllocated",
    "Memory of a card that a pod holds, in bytes",
    _POD,
    _OLD_POD,
)
POD_CORES = _name(
    "hami_vgpu_core_allocated_ratio",
    "vGPUCoreAllocated",
    "Compute of a card that a pod holds, in percent of one GPU",
    _POD,
    _OLD_POD,
)
MIG_INSTANCE = _name(
    "hami_node_gpu_mig_instance_info",
    "nodeGPUMigInstance",
    "Always 1; the labels name a MIG instance of a pod, and where it is on its card",
    (
        "compute_instance_id",
        "device_index",
        "device_uuid",
        "gpu_instance_id",
        "mig_uuid",
        "node",
        "placement_size",
        "placement_start",
        "profile",
        "zone",
    ),
    ("deviceidx", "deviceuuid", "migname", "nodeid", "zone"),
)
QUOTA_USED = _name(
    "hami_resource_quota_used",
    "QuotaUsed",
    "What is used of a limit of devices in a namespace, in units of its resource, which is the quota_name",
    ("limit", "namespace", "quota_name", "zone"),
    ("limit", "quotaName", "quotanamespace", "zone"),
)
QUOTA_LIMIT = Family(
    "hami_resource_quota_limit",
    _GAUGE,
    "A limit of devices in a namespace, in units of its resource, which is the quota_name.",
    ("namespace", "quota_name", "zone"),
)
BUILD = Family(
    "hami_build_info",
    _GAUGE,
    "Always 1; the labels name the version and the platform of Evenkeel, which stands in for HAMi's scheduler.",
    ("build_date", "compiler", "go_version", "platform", "revision", "version"),
)

NAMED = tuple(one for one in list(globals().values()) if isinstance(one, Named))
ALL: tuple[Family, ...] = (
    *(family for one in NAMED for family in one),
    QUOTA_LIMIT,
    BUILD,
)
