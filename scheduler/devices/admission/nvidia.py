"""What a container gets from NVIDIA's part of the webhook.

Source: HAMi (v2.10), ``pkg/device/nvidia/device.go``: ``MutateAdmission``.
"""

from __future__ import annotations

from scheduler.api import plugin_parts
from scheduler.api.admission.settings import (
    DEFAULT_POLICY,
    AdmissionSettings,
    NvidiaAdmission,
)
from scheduler.devices.admission.drafts import ContainerDraft, PodDraft
from scheduler.errors import BadInput

_PRIORITY, _CORE_POLICY = "CUDA_TASK_PRIORITY", "GPU_CORE_UTILIZATION_POLICY"
_VISIBLE, _NONE = "NVIDIA_VISIBLE_DEVICES", "none"
_WHOLE = 100


def mutate_container(container: ContainerDraft, pod: PodDraft, settings: AdmissionSettings) -> bool:
    """Give a container what it lacks; return whether it requests cards.

    Raises:
        BadInput: an amount cannot be.
    """
    nvidia = settings.nvidia
    _check_percent(container, nvidia.memory_percent)
    priority = container.read_limit(nvidia.priority)
    if priority is not None:
        container.add_env(_PRIORITY, str(priority))
    if nvidia.core_policy != DEFAULT_POLICY:
        container.add_env(_CORE_POLICY, nvidia.core_policy)
    asks = _add_count(container, nvidia)
    asks = _add_all_cores(container, nvidia) or asks
    # The webhook itself writes requests for parts that NVIDIA's plugin offers, and that plugin shows them in the same variable.
    has_cards = asks or any(map(plugin_parts.is_part, container.list_resources()))
    if has_cards and nvidia.runtime_class and pod.runtime_class is None:
        pod.runtime_class = nvidia.runtime_class
    if not has_cards and nvidia.hides_cards:
        container.add_env(_VISIBLE, _NONE)
    return asks


def _check_percent(container: ContainerDraft, resource: str) -> None:
    percent = container.read_resource(resource)
    if percent is not None and percent > _WHOLE:
        problem = f"{percent} is not an integer within 0..{_WHOLE}"
        raise BadInput(f"container {container.name}: {resource}", problem)


def _add_count(container: ContainerDraft, nvidia: NvidiaAdmission) -> bool:
    """Add the number of cards where only parts of them are limited; return whether there is a number then.

    What is only requested has no effect: the API server refuses such a pod.
    """
    if container.has_limit(nvidia.count):
        return True
    parts = nvidia.cores, nvidia.memory, nvidia.memory_percent
    if nvidia.count and nvidia.default_count and any(map(container.has_limit, parts)):
        container.add_limit(nvidia.count, nvidia.default_count)
        return True
    return False


def _add_all_cores(container: ContainerDraft, nvidia: NvidiaAdmission) -> bool:
    """Add all cores where whole cards are requested, and nothing is said of cores; return whether they were added."""
    if not nvidia.cores or container.has_resource(nvidia.cores):
        return False
    if not container.has_resource(nvidia.count):
        return False
    percent = container.read_resource(nvidia.memory_percent)
    has_part = container.has_resource(nvidia.memory) if percent is None else percent != _WHOLE
    if not has_part:
        container.add_limit(nvidia.cores, _WHOLE)
    return not has_part
