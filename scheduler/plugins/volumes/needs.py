"""What rules need of a pod's storage: equal for pods whose storage they cannot tell apart.

The names of claims are not in it as long as only one pod has them: of a claim that waits for its first pod there
is only what it wishes, of one that is bound where its volume can be used, and how many volumes the pod brings to
each driver. So thousands of pods of a StatefulSet are one kind.

Source: kube-scheduler's volumebinding/volume_binding.go, binder.go, volumezone/volume_zone.go, nodevolumelimits/csi.go,
volumerestrictions/volume_restrictions.go: what their PreFilter does, in the order of the plugins.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from scheduler.api.in_tree import Handle
from scheduler.api.kube_plugins import DEFAULT, Curve, KubePlugins
from scheduler.api.pods.volumes import ClaimName, Disk, PodVolumes
from scheduler.state.pods import PodRecord
from scheduler.state.volumes.objects import Claim, ClaimKey, Terms, Wish, Zone
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


class Refusal(NamedTuple):
    """Why a pod cannot go anywhere, whatever nodes there are: the rule that says so first, and what it says."""

    rule: str
    text: str


class Bound(NamedTuple):
    """A claim that is bound.

    Attributes:
        affinity: where its volume can be used, None for everywhere.
        plugin: of a volume that a driver looks after in the place of older code, the name of that; else empty.
        moved: where it can be used on nodes of which that is so.
        is_missing: its volume is not there.
    """

    affinity: Terms
    plugin: str = ""
    moved: Terms = None
    is_missing: bool = False


class Unbound(NamedTuple):
    """A claim that waits for its first pod.

    Attributes:
        own: volumes that are for just this claim.
        selected: the node for which it is to be provisioned, None for none yet.
    """

    wish: Wish
    own: tuple[str, ...]
    selected: str | None


class Needs(NamedTuple):
    """All that rules need.

    Attributes:
        refusal: why it cannot go anywhere, None where that hangs on nodes; nothing else is said with it.
        disks: that others may be in the way of.
        exclusive: claims that only one pod may use, and others name as well.
        brought: how many volumes that nobody else has it brings to each driver that has limits.
        shared: volumes of such drivers that others have or may have.
        drivers: those that must run where it goes, and whether that holds only for nodes that say what runs there.
        bound, unbound: its claims, in order.
        zones: where its volumes say that they are.
        curve: points by how much of a volume, or of the room for it, the claims that wait take.
        is_single: another pod of its kind may find nodes otherwise once it is placed, beyond what is counted.
    """

    refusal: Refusal | None = None
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


# Of which rule each is.
_OF_RULES: dict[str, dict[str, Any]] = {
    RESTRICTIONS: {"disks": (), "exclusive": ()},
    LIMITS: {"brought": (), "shared": (), "drivers": ()},
    BINDING: {"bound": (), "unbound": ()},
    ZONE: {"zones": ()},
}


def by_profile(needs: Needs, plugins: KubePlugins) -> Needs:
    """What is left of it by what a profile says."""
    not_asked, curve = plugins.not_asked, plugins.volume_binding.shape
    if curve != needs.curve:
        needs = needs._replace(curve=curve)
    for rule in not_asked & _OF_RULES.keys():
        needs = needs._replace(**_OF_RULES[rule])
    if needs.refusal is not None and needs.refusal.rule in not_asked:
        needs = needs._replace(refusal=None)
    return needs


def of_pod(pod: PodRecord, storage: Storage) -> Needs | None:
    """What rules need of a pod's storage by what is known now; None for a pod that has none."""
    volumes = pod.volumes
    if volumes is None:
        return None
    claims = found(pod, volumes, storage)
    if isinstance(claims, Refusal):
        return Needs(claims)
    unbound = tuple(_unbound(claim, storage) for claim in claims if not claim.is_bound)
    named = [claim for claim in claims if len(storage.users_of(claim.key)) > 1]
    brought, shared, drivers = _handles(volumes, claims, storage)
    exclusive = tuple(sorted(claim.key for claim in named if claim.is_for_one_pod))
    chooses = any(one.own or storage.free(one.wish.of_class) for one in unbound)
    return Needs(
        disks=volumes.disks,
        exclusive=exclusive,
        brought=brought,
        shared=shared,
        drivers=drivers,
        bound=tuple(
            dict.fromkeys(
                one
                for claim in claims
                if claim.is_bound
                for one in (_bound(claim, storage),)
                if one.is_missing or one.affinity is not None or one.moved is not None
            )
        ),
        unbound=unbound,
        zones=_zones(volumes, pod.namespace, storage),
        is_single=bool(
            exclusive
            or shared
            or chooses
            or any(not claim.is_bound for claim in named)
            # Where one is attached already, one more pod adds nothing to what is used.
            or any(storage.uses.is_attached(claim.key) for claim in claims)
        ),
    )


def found(pod: PodRecord, volumes: PodVolumes, storage: Storage) -> list[Claim] | Refusal:
    """The pod's claims in their order, or why it cannot go anywhere."""
    claims: list[Claim] = []
    for one in volumes.claims:
        if not one.is_own and (pod.namespace, one.name) not in storage.claims:
            return Refusal(RESTRICTIONS, NOT_FOUND.format(one.name))
    for one in volumes.claims:
        claim = storage.claims.get((pod.namespace, one.name))
        problem = _problem(pod, one, claim)
        if problem or claim is None:
            return Refusal(BINDING, problem)
        claims.append(claim)
    for claim in claims:
        if not claim.is_bound and (claim.volume or not storage.waits(claim)):
            return Refusal(BINDING, IMMEDIATE)
    for one in volumes.claims:
        claim = storage.claims[pod.namespace, one.name]
        if not one.is_own and claim.volume and claim.volume not in storage.volumes:
            return Refusal(ZONE, NO_VOLUME.format(claim.volume))
    return claims


def _problem(pod: PodRecord, name: ClaimName, claim: Claim | None) -> str:
    if claim is None:
        return NOT_MADE.format(name.name)
    if claim.is_lost:
        return LOST.format(name.name, claim.volume)
    if claim.is_deleting:
        return DELETING.format(name.name)
    if name.is_own and claim.owner != pod.uid:
        return OF_OTHERS.format("/".join(claim.key), pod.key)
    return ""


def _bound(claim: Claim, storage: Storage) -> Bound:
    volume = storage.volumes.get(claim.volume)
    if volume is None:
        return Bound(None, is_missing=True)
    if not volume.plugin or volume.affinity == volume.moved_affinity:
        return Bound(volume.affinity)
    return Bound(volume.affinity, volume.plugin, volume.moved_affinity)


def _unbound(claim: Claim, storage: Storage) -> Unbound:
    own = tuple(storage.volumes_for(claim))
    return Unbound(claim.wish, own, storage.selected(claim))


def _handles(
    volumes: PodVolumes, claims: list[Claim], storage: Storage
) -> tuple[tuple[tuple[str, int], ...], tuple[Handle, ...], tuple[tuple[str, bool], ...]]:
    """Of ``Needs`` what drivers count, and which of them must run."""
    uses = storage.uses
    brought: Counter[str] = Counter()
    shared: set[Handle] = set()
    drivers: set[tuple[str, bool]] = {(one.driver, True) for one in volumes.handles}
    shared.update(one for one in volumes.handles if uses.is_limited(one.driver))
    for claim in claims:
        handle = uses.handle_of(claim.key)
        if handle is None:
            continue
        drivers.add((handle.driver, storage.is_moved(claim)))
        if not uses.is_limited(handle.driver):
            continue
        if len(storage.users_of(claim.key)) > 1 or uses.is_shared(handle):
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


def _zones(volumes: PodVolumes, namespace: str, storage: Storage) -> tuple[Zone, ...]:
    """Where the volumes of claims say that they are; of claims that are made for the pod nothing is asked."""
    zones: dict[Zone, None] = {}
    for one in volumes.claims:
        claim = storage.claims[namespace, one.name]
        if not one.is_own and claim.volume:
            zones.update(dict.fromkeys(storage.volumes[claim.volume].zones))
    return tuple(sorted(zones, key=lambda zone: (zone.key, sorted(zone.values))))
