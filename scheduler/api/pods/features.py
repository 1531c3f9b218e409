"""Features of the kubelet that a pod requires, by the names that nodes declare.

Source: component-helpers' nodedeclaredfeatures of Kubernetes 1.37: the features that are inferred for scheduling.
"""

from __future__ import annotations

from scheduler.api import wire

RESTART_ALL = "RestartAllContainersOnContainerExits"
HOST_NETWORK_USERS = "UserNamespacesHostNetworkSupport"
BIND_OPTIONS = "VolumeBindMountOptions"
_RESTART_ALL_ACTION = "RestartAllContainers"


def list_features(spec: wire.PodSpec) -> tuple[str, ...]:
    """List the features, sorted. A pod that has a node may need others by now, which do not matter for scheduling."""
    containers = [*spec.containers, *(spec.init_containers or ())]
    found = []
    if any(
        rule.action == _RESTART_ALL_ACTION
        for one in containers
        for rule in one.restart_policy_rules or ()
    ):
        found.append(RESTART_ALL)
    if spec.host_network and spec.host_users is False:
        found.append(HOST_NETWORK_USERS)
    if any(mount.bind_mount_options for one in containers for mount in one.volume_mounts or ()):
        found.append(BIND_OPTIONS)
    return tuple(found)
