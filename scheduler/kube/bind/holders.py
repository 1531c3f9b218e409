"""What a pod as the API server has it says of the device plugin of its node: whether the plugin still has to serve the pod there.

Plugins with a lock serve the pod that the lock names. Those without one look among all pods of the node.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import Any

import msgspec

from scheduler.api import wire
from scheduler.devices import answers
from scheduler.devices.answers import Drivers

_OVER = frozenset({"Succeeded", "Failed"})
_STARTED = "Running"


class Hold(Enum):
    """What keeps a lock."""

    NOTHING = 1
    """The plugin has nothing more to do for the pod on this node: the lock is over."""
    POD = 2
    """The pod is on the node, and the plugin has to serve it; for how long is up to the plugin."""
    SCHEDULER = 3
    """Another scheduler may be about to bind the pod to the node. If it died instead, nothing will show that."""


class _Meta(msgspec.Struct, rename="camel"):
    uid: str = ""
    name: str = ""
    namespace: str = ""
    deletion_timestamp: str | None = None
    annotations: dict[str, str] | None = None


class _Resources(msgspec.Struct):
    limits: dict[str, Any] | None = None


class _Container(msgspec.Struct):
    resources: _Resources | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str | None = None
    scheduler_name: str | None = None
    init_containers: list[_Container] | None = None
    containers: list[_Container] | None = None


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    start_time: str | None = None


class Holder(msgspec.Struct):
    """The few fields of a pod that say whether it keeps a plugin from serving another one."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


def read_holder(pod: dict[str, Any]) -> Holder:
    """Read the fields out of a pod as the API server has it."""
    return msgspec.convert(pod, Holder)


def judge_hold(
    holder: Holder, node: str, schedulers: Collection[str], locked_for: str, drivers: Drivers
) -> Hold:
    """Say what keeps the lock of a node that names this pod.

    Args:
        holder: the pod that has the name now.
        node: the node.
        schedulers: the scheduler names of this process.
        locked_for: the uid of the pod for which this process has written the lock; empty if it has not.
        drivers: the drivers of cards by name.
    """
    if not holder.spec.node_name:
        # Pods of one node take turns in this process, so an unbound holder of ours was left by a leader that died between
        # its lock and its bind; the bind was fenced since.
        is_ours = holder.spec.scheduler_name in schedulers
        # A pod that came later under the name has no part in the lock.
        is_another = bool(locked_for) and locked_for != holder.metadata.uid
        return Hold.NOTHING if is_ours or is_another else Hold.SCHEDULER
    if holder.spec.node_name != node or holder.status.phase in {*_OVER, _STARTED}:
        return Hold.NOTHING
    is_served = answers.is_served(drivers, holder.metadata.annotations or {})
    return Hold.NOTHING if is_served else Hold.POD


def may_be_admitted(holder: Holder) -> bool:
    """Whether the kubelet has not admitted a pod, and may still do so."""
    is_ending = holder.metadata.deletion_timestamp is not None or holder.status.phase in _OVER
    return not (is_ending or holder.status.start_time)


def limits_any(holder: Holder, resources: Collection[str]) -> bool:
    """Whether a container of a pod has a limit of one of some resources."""
    containers = (*(holder.spec.init_containers or ()), *(holder.spec.containers or ()))
    limits = (one.resources.limits or {} for one in containers if one.resources is not None)
    return any(resource in resources for one in limits for resource in one)


def list_locks(drivers: Drivers) -> frozenset[str]:
    """List the annotations of nodes by which plugins find their pods."""
    locks = (one.lock for one in drivers.values())
    return frozenset(one.key for one in locks if one is not None and one.names_pod)


def has_answer(pod: wire.Pod, drivers: Drivers) -> bool:
    """Whether plugins have nothing more to do for a pod: they have answered, or it has started, so they were called."""
    return has_started(pod) or answers.is_served(drivers, pod.metadata.annotations or {})


def is_admitted(pod: wire.Pod) -> bool:
    """Whether the kubelet has admitted a pod: it calls the plugins for all containers before it says so."""
    return pod.status.start_time is not None


def has_started(pod: wire.Pod) -> bool:
    """Whether a container of a pod has started: by then the kubelet has called the plugin for all of them."""
    return pod.status.phase == _STARTED
