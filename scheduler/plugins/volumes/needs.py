"""What rules read about a pod's storage; equal for pods whose storage the rules treat alike.

The names of claims are left out as long as only one pod uses each. A claim that waits for its first pod counts by what it
requests, a bound claim by the nodes on which its volume can be used, and drivers by how many volumes the pod brings. So
thousands of pods of a StatefulSet are one kind.

Source: kube-scheduler's volumebinding/volume_binding.go, binder.go, volumezone/volume_zone.go, nodevolumelimits/csi.go,
volumerestrictions/volume_restrictions.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from scheduler.api.in_tree import Handle
from scheduler.api.kube_plugins import DEFAULT, Curve, KubePlugins
from scheduler.api.pods.volumes import Disk, PodVolumes
from scheduler.plugins.refusal import Refusal
from scheduler.plugins.volumes import refusals
from scheduler.plugins.volumes.refusals import BINDING, LIMITS, RESTRICTIONS, ZONE
from scheduler.state.pods import PodRecord
from scheduler.state.volumes.objects import Claim, ClaimKey, Terms, Wish, Zone
from scheduler.state.volumes.store import Storage


class Bound(NamedTuple):
    """A claim that is bound.

    Attributes:
        affinity: the nodes on which its volume can be used, None for all nodes.
        plugin: the in-tree plugin of a volume that a CSI driver may handle instead; empty for other volumes.
        moved: replaces ``affinity`` on nodes where the CSI driver handles the volume.
        is_missing: the volume does not exist.
    """

    affinity: Terms
    plugin: str = ""
    moved: Terms = None
    is_missing: bool = False


class Unbound(NamedTuple):
    """A claim that waits for its first pod.

    Attributes:
        own: volumes that are reserved for this claim.
        selected: the node for which the claim is to be provisioned, None if there is none yet.
    """

    wish: Wish
    own: tuple[str, ...]
    selected: str | None


class Needs(NamedTuple):
    """Everything that rules read about a pod's storage.

    Attributes:
        refusal: why the pod cannot go to any node, whatever the nodes are; None otherwise. With it, all else is empty.
        uncounted: why no volume can be counted, reported for every node; empty if volumes can be counted.
        disks: disks that the pod may be unable to share with other pods.
        exclusive: claims that only one pod may use, and that other pods name as well.
        brought: for each driver with limits, how many volumes the pod brings that no other pod has.
        shared: volumes of such drivers that other pods use or may use.
        drivers: the drivers that must run on the pod's node, each with whether only nodes that report drivers are checked.
        bound, unbound: the pod's claims, in order.
        zones: the zones in the labels of its volumes.
        curve: points by how much of a volume, or of the room for volumes, the unbound claims take.
        is_single: placing one pod of the kind may change nodes for the next pod in ways that no tally counts.
    """

    refusal: Refusal | None = None
    uncounted: str = ""
    disks: tuple[Disk, ...] = ()
    exclusive: tuple[ClaimKey, ...] = ()
    brought: tuple[tuple[str, int], ...] = ()
    shared: tuple[Handle, ...] = ()
    drivers: tuple[tuple[str, bool], ...] = ()
    bound: tuple[Bound, ...] = ()
    unbound: tuple[Unbound, ...] = ()
    zones: tuple[Zone, ...] = ()
    curve: Curve = DEFAULT.volume_binding.shape
    is_single: bool = False


def find_needs(pod: PodRecord, storage: Storage, plugins: KubePlugins) -> Needs | None:
    """Find what the enabled rules of a profile read about a pod's storage now; None for a pod without storage.

    No rule relies on the refusals of another rule: if VolumeBinding is disabled, a claim may be missing.
    """
    volumes, not_asked = pod.volumes, plugins.not_asked
    if volumes is None:
        return None
    refusal = refusals.find_refusal(pod, volumes, storage, not_asked)
    if refusal is not None:
        return Needs(refusal)
    needs = Needs()
    for rule, add in _ADDED:
        if rule not in not_asked:
            needs = add(needs, pod, volumes, storage)
    if BINDING not in not_asked:
        needs = needs._replace(curve=plugins.volume_binding.shape)
    return needs


def _add_restrictions(needs: Needs, pod: PodRecord, volumes: PodVolumes, storage: Storage) -> Needs:
    """Add disks, and claims for one pod only; claims that are made for this pod are left out: no other pod uses them."""
    keys = {(pod.namespace, one.name) for one in volumes.claims if not one.is_own}
    exclusive = tuple(
        key
        for key in sorted(keys)
        if storage.claims[key].is_for_one_pod and _is_named(key, storage)
    )
    is_single = needs.is_single or bool(exclusive)
    return needs._replace(disks=volumes.disks, exclusive=exclusive, is_single=is_single)


def _add_limits(needs: Needs, pod: PodRecord, volumes: PodVolumes, storage: Storage) -> Needs:
    uncounted = refusals.find_uncounted(pod, volumes, storage)
    if uncounted:
        return needs._replace(uncounted=uncounted)
    claims = _find_claims(pod, volumes, storage)
    brought, shared, drivers = _sort_handles(volumes, claims, storage)
    # On a node to which a volume is already attached, one more pod of the volume adds nothing.
    is_attached = any(storage.uses.is_attached(claim.key) for claim in claims)
    return needs._replace(
        brought=brought,
        shared=shared,
        drivers=drivers,
        is_single=needs.is_single or bool(shared) or is_attached,
    )


def _add_binding(needs: Needs, pod: PodRecord, volumes: PodVolumes, storage: Storage) -> Needs:
    claims = _find_claims(pod, volumes, storage)
    waiting = [claim for claim in claims if not claim.is_bound]
    unbound = tuple(_read_unbound(claim, storage) for claim in waiting)
    bound = (_read_bound(claim, storage) for claim in claims if claim.is_bound)
    kept = (
        one for one in bound if one.is_missing or one.affinity is not None or one.moved is not None
    )
    is_single = (
        needs.is_single
        or any(one.own or storage.list_free(one.wish.of_class) for one in unbound)
        or any(_is_named(claim.key, storage) for claim in waiting)
    )
    return needs._replace(bound=tuple(dict.fromkeys(kept)), unbound=unbound, is_single=is_single)


def _add_zones(needs: Needs, pod: PodRecord, volumes: PodVolumes, storage: Storage) -> Needs:
    """Add the zones in the labels of the claims' volumes; claims that are made for the pod are not checked."""
    zones: dict[Zone, None] = {}
    for one in volumes.claims:
        volume = "" if one.is_own else storage.claims[pod.namespace, one.name].volume
        if volume:
            zones.update(dict.fromkeys(storage.volumes[volume].zones))
    ordered = sorted(zones, key=lambda zone: (zone.key, sorted(zone.values)))
    return needs._replace(zones=tuple(ordered))


# What each rule adds.
_ADDED: tuple[tuple[str, Callable[[Needs, PodRecord, PodVolumes, Storage], Needs]], ...] = (
    (RESTRICTIONS, _add_restrictions),
    (LIMITS, _add_limits),
    (BINDING, _add_binding),
    (ZONE, _add_zones),
)


def _find_claims(pod: PodRecord, volumes: PodVolumes, storage: Storage) -> list[Claim]:
    """Find the pod's claims, in order; the caller knows that all of them exist."""
    return [storage.claims[pod.namespace, one.name] for one in volumes.claims]


def _is_named(claim: ClaimKey, storage: Storage) -> bool:
    """Whether several pods name a claim."""
    return len(storage.list_users(claim)) > 1


def _read_bound(claim: Claim, storage: Storage) -> Bound:
    volume = storage.volumes.get(claim.volume)
    if volume is None:
        return Bound(None, is_missing=True)
    if not volume.plugin or volume.affinity == volume.moved_affinity:
        return Bound(volume.affinity)
    return Bound(volume.affinity, volume.plugin, volume.moved_affinity)


def _read_unbound(claim: Claim, storage: Storage) -> Unbound:
    own = tuple(storage.list_volumes(claim))
    return Unbound(claim.wish, own, storage.find_selected_node(claim))


def _sort_handles(
    volumes: PodVolumes, claims: list[Claim], storage: Storage
) -> tuple[tuple[tuple[str, int], ...], tuple[Handle, ...], tuple[tuple[str, bool], ...]]:
    """Sort the pod's volumes into ``Needs.brought`` and ``Needs.shared``, and list ``Needs.drivers``."""
    uses = storage.uses
    brought: Counter[str] = Counter()
    shared: set[Handle] = set()
    drivers: set[tuple[str, bool]] = {(one.driver, True) for one in volumes.handles}
    shared.update(one for one in volumes.handles if uses.is_limited(one.driver))
    for claim in claims:
        handle = uses.find_handle(claim.key)
        if handle is None:
            continue
        drivers.add((handle.driver, storage.is_moved(claim)))
        if not uses.is_limited(handle.driver):
            continue
        if _is_named(claim.key, storage) or uses.is_shared(handle):
            shared.add(handle)
        else:
            brought[handle.driver] += 1
    return (
        tuple(sorted(brought.items())),
        tuple(sorted(shared)),
        tuple(sorted(one for one in drivers if _must_run(one[0], storage))),
    )


def _must_run(driver: str, storage: Storage) -> bool:
    found = storage.drivers.get(driver)
    return found is not None and found.must_be_there
