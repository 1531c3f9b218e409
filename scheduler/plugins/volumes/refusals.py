"""Why rules about volumes refuse a pod for its claims alone. Each rule decides by itself, without the other rules.

Source: PreFilter of kube-scheduler's volumerestrictions/volume_restrictions.go, volumebinding/volume_binding.go and
binder.go, volumezone/volume_zone.go; the part of Filter in nodevolumelimits/csi.go that does not read the node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from scheduler.api.pods.volumes import ClaimName, PodVolumes
from scheduler.plugins.refusal import Refusal
from scheduler.state.pods import PodRecord
from scheduler.state.volumes.objects import Claim
from scheduler.state.volumes.store import Storage

RESTRICTIONS, LIMITS = "VolumeRestrictions", "NodeVolumeLimits"
BINDING, ZONE = "VolumeBinding", "VolumeZone"
NOT_FOUND = 'persistentvolumeclaim "{}" not found'
NOT_MADE = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "{}"'
LOST = 'persistentvolumeclaim "{}" bound to non-existent persistentvolume "{}"'
DELETING = 'persistentvolumeclaim "{}" is being deleted'
OF_OTHERS = "PVC {} was not created for pod {} (pod is not owner)"
IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
NO_VOLUME = 'persistentvolume "{}" not found'
NO_CLASS_NAME = "PersistentVolumeClaim had no pv name and storageClass name"
NO_CLASS = 'storageclass.storage.k8s.io "{}" not found'
NO_MODE = 'VolumeBindingMode not set for StorageClass "{}"'
NO_VOLUME_NAME = "PersistentVolume had no name"
LOOKED_UP = "looking up PVC {}: " + NOT_FOUND


def find_refusal(
    pod: PodRecord, volumes: PodVolumes, storage: Storage, not_asked: Collection[str]
) -> Refusal | None:
    """Find the first refusal of the enabled rules before any node is evaluated; None if nodes are to be evaluated."""
    for rule, find_text in _BEFORE_NODES:
        if rule not in not_asked and (text := find_text(pod, volumes, storage)):
            return Refusal(rule, text)
    return None


def find_uncounted(pod: PodRecord, volumes: PodVolumes, storage: Storage) -> str:
    """Find why NodeVolumeLimits refuses every node: it cannot count a claim; empty if it can count all claims."""
    for one in volumes.claims:
        claim = storage.claims.get((pod.namespace, one.name))
        if claim is None:
            return LOOKED_UP.format(f"{pod.namespace}/{one.name}", one.name)
        if text := _find_stranger(pod, one, claim):
            return text
    return ""


def _find_for_restrictions(pod: PodRecord, volumes: PodVolumes, storage: Storage) -> str:
    for one in volumes.claims:
        if not one.is_own and (pod.namespace, one.name) not in storage.claims:
            return NOT_FOUND.format(one.name)
    return ""


def _find_for_binding(pod: PodRecord, volumes: PodVolumes, storage: Storage) -> str:
    claims: list[Claim] = []
    for one in volumes.claims:
        claim = storage.claims.get((pod.namespace, one.name))
        if claim is None:
            return (NOT_MADE if one.is_own else NOT_FOUND).format(one.name)
        if claim.is_lost:
            return LOST.format(one.name, claim.volume)
        if claim.is_deleting:
            return DELETING.format(one.name)
        if text := _find_stranger(pod, one, claim):
            return text
        claims.append(claim)
    is_late = any(
        not claim.is_bound and (claim.volume or not storage.waits(claim)) for claim in claims
    )
    return IMMEDIATE if is_late else ""


def _find_for_zone(pod: PodRecord, volumes: PodVolumes, storage: Storage) -> str:
    """Find why VolumeZone refuses; it does not check claims that are made for the pod."""
    for one in volumes.claims:
        if one.is_own:
            continue
        claim = storage.claims.get((pod.namespace, one.name))
        if claim is None:
            return NOT_FOUND.format(one.name)
        if not claim.volume:
            if text := _find_in_class(claim.wish.of_class, storage):
                return text
        elif claim.volume not in storage.volumes:
            return NO_VOLUME.format(claim.volume)
    return ""


def _find_in_class(name: str, storage: Storage) -> str:
    """Find why VolumeZone refuses an unbound claim of a class; empty if the claim waits for its first pod."""
    if not name:
        return NO_CLASS_NAME
    found = storage.classes.get(name)
    if found is None:
        return NO_CLASS.format(name)
    if not found.has_mode:
        return NO_MODE.format(name)
    return "" if found.waits else NO_VOLUME_NAME


def _find_stranger(pod: PodRecord, name: ClaimName, claim: Claim) -> str:
    """Find whether a claim that should be made for this pod was made for another; empty if not."""
    if name.is_own and claim.owner != pod.uid:
        return OF_OTHERS.format("/".join(claim.key), pod.key)
    return ""


# In the order in which kube-scheduler evaluates them.
_BEFORE_NODES: tuple[tuple[str, Callable[[PodRecord, PodVolumes, Storage], str]], ...] = (
    (RESTRICTIONS, _find_for_restrictions),
    (BINDING, _find_for_binding),
    (ZONE, _find_for_zone),
)
