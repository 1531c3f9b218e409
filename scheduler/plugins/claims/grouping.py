"""Claims of PodGroups: they are reserved for the group, and are there for all its pods with an equal entry.

Source: k8s.io/dynamic-resource-allocation v0.37.1, resourceclaim.go, BindTo; kube-scheduler 1.37.1, PodGroupPostFilter.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.api.claims.answers import Allotment, ClaimKey
from scheduler.api.door.decisions import Free
from scheduler.api.groups.definitions import Definition, GroupClaim
from scheduler.plugins.claims.freeing import is_in_the_way, list_freed
from scheduler.plugins.claims.needs import find_group
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord


def reserve_for_group(
    pod: PodRecord, allotted: tuple[Allotment, ...], cluster: Cluster
) -> tuple[Allotment, ...]:
    """Say of what was decided for a pod which claims are reserved for its group."""
    definition = _find_definition(pod, cluster)
    of_group = _list_keys(pod, definition) if definition is not None else set()
    if definition is None or not of_group:
        # Who decided first may be in a group.
        return tuple(one._replace(group=None) if one.group else one for one in allotted)
    by = definition.key.name, definition.uid
    return tuple(one._replace(group=by if one.key in of_group else None) for one in allotted)


def list_freed_of_group(pods: Sequence[PodRecord], cluster: Cluster) -> tuple[Free, ...]:
    """List the claim that loses its devices because a group cannot be placed with it: of one of its pods, or of the group."""
    for pod in pods:
        if freed := list_freed(pod, cluster):
            return freed
    for pod in pods:
        definition = _find_definition(pod, cluster)
        for key in sorted(_list_keys(pod, definition)) if definition is not None else ():
            if freed := _free_unused(pod, key, cluster):
                return freed
    return ()


def _free_unused(pod: PodRecord, key: ClaimKey, cluster: Cluster) -> tuple[Free, ...]:
    """Free a claim of a group if its devices are elsewhere, and no pod on a node has it, nor any other group."""
    claim = cluster.claims.claims.get(key)
    if claim is None or claim.given is None or claim.is_deleting:
        return ()
    is_alone = not claim.reserved or (
        len(claim.reserved) == 1 and claim.groups == {find_group(pod)}
    )
    users = [cluster.pods[uid] for uid in cluster.claims.list_users(key) if uid in cluster.pods]
    if not is_alone or any(one.node or find_group(one) != find_group(pod) for one in users):
        return ()
    if not is_in_the_way(claim, cluster):
        return ()
    return (Free(claim.key, claim.uid, claim.version),)


def _find_definition(pod: PodRecord, cluster: Cluster) -> Definition | None:
    """Find what the PodGroup of a pod says, if it has claims."""
    if pod.member is None or not pod.claims or not find_group(pod):
        return None
    found = cluster.groups.find_definition(pod.member.group)
    return found if found is not None and found.claims else None


def _list_keys(pod: PodRecord, definition: Definition) -> set[ClaimKey]:
    """List the claims of a pod that are its group's."""
    return {
        (pod.namespace, one.name)
        for one in pod.claims
        if one.name
        and GroupClaim(one.entry, "" if one.template else one.name, one.template)
        in definition.claims
    }
