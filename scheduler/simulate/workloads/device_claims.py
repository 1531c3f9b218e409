"""Makes the ResourceClaims that the controller would make for pods from templates."""

from __future__ import annotations

from msgspec import structs

from scheduler.api import kinds, wire
from scheduler.api.claims.objects import ResourceClaim, ResourceClaimTemplate
from scheduler.api.groups.definitions import GroupClaim
from scheduler.api.groups.objects import KubePodGroup
from scheduler.api.groups.readers.kubernetes import read_group
from scheduler.errors import BadInput
from scheduler.simulate.reading.inventory import Inventory

_GROUPS = f"{kinds.POD_GROUPS.group}/{kinds.POD_GROUPS.version}"


def add_resource_claims(inventory: Inventory) -> None:
    """Add the claims of waiting pods that are to be made from templates, and name them in the pods' statuses.

    The pods of a PodGroup get one together if the group has an equal entry. A pod whose template is not there waits, as it
    would in a cluster.
    """
    templates = {
        (one.metadata.namespace, one.metadata.name): one
        for one in inventory.claiming
        if isinstance(one, ResourceClaimTemplate)
    }
    groups = {
        (one.metadata.namespace, one.metadata.name): one
        for one in inventory.grouping
        if isinstance(one, KubePodGroup)
    }
    of_groups: dict[tuple[str, str, str], ResourceClaim] = {}
    for pod in inventory.pods:
        named = {one.name for one in pod.status.resource_claim_statuses or ()}
        for entry in () if pod.spec.node_name else pod.spec.resource_claims or ():
            meta = pod.metadata
            template = templates.get((meta.namespace, entry.resource_claim_template_name))
            if template is None or entry.name in named:
                continue
            group = groups.get((meta.namespace, _find_group(pod)))
            if group is not None and _has_entry(group, entry):
                key = meta.namespace, group.metadata.name, entry.name
                if key not in of_groups:
                    of_groups[key] = _make_claim(group, entry.name, template)
                    inventory.claiming.append(of_groups[key])
                made = of_groups[key]
            else:
                made = _make_claim(pod, entry.name, template)
                inventory.claiming.append(made)
            told = pod.status.resource_claim_statuses or []
            told = [*told, wire.PodClaimStatus(entry.name, made.metadata.name)]
            # Pods of one workload may share their status.
            pod.status = structs.replace(pod.status, resource_claim_statuses=told)


def _find_group(pod: wire.Pod) -> str:
    """Find the name of the PodGroup of a pod; empty for none, and for one that is no name."""
    name = (pod.spec.scheduling_group or {}).get("podGroupName")
    return name if isinstance(name, str) else ""


def _has_entry(group: KubePodGroup, entry: wire.PodClaim) -> bool:
    """Whether a PodGroup has an entry equal to that of a pod, which is made from a template."""
    try:
        claims = read_group(group).claims
    except BadInput:
        # Who reads the group says so.
        return False
    return GroupClaim(entry.name, "", entry.resource_claim_template_name) in claims


def _make_claim(
    of: wire.Pod | KubePodGroup, entry: str, template: ResourceClaimTemplate
) -> ResourceClaim:
    meta, given = of.metadata, template.spec.metadata
    name = f"{meta.name}-{entry}"
    version, kind = ("v1", "Pod") if isinstance(of, wire.Pod) else (_GROUPS, "PodGroup")
    owner = wire.Owner(kind, meta.name, version, meta.uid, controller=True)
    return ResourceClaim(
        metadata=wire.GuardedMeta(
            name=name,
            namespace=meta.namespace,
            uid=f"{meta.uid}/{entry}",
            labels=given.labels,
            annotations=given.annotations,
            owner_references=[owner],
        ),
        spec=template.spec.spec,
    )
