"""ResourceClaims as the state knows them: parsed, small and immutable."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import msgspec

from scheduler.api import kinds, names, selectors, wire
from scheduler.api.claims import extended, objects
from scheduler.api.claims.answers import ClaimKey, DeviceKey, Given
from scheduler.api.claims.devices import read_quantity
from scheduler.api.claims.requests import ClaimShape, ClaimShapes
from scheduler.api.selectors import NodeTerm
from scheduler.errors import BadInput

# The most consumers that the API lets a claim have.
CONSUMERS_MAX = 256
_READY = "True"
# How the API version of a PodGroup begins.
_GROUPS = f"{kinds.POD_GROUPS.group}/"


class Claim(NamedTuple):
    """A ResourceClaim.

    Attributes:
        version: its ``resourceVersion``.
        given: the devices that it has; None for a claim that is not allocated.
        terms: the nodes on which these can be used; None for all.
        reserved: the uids of those that may use it.
        owner: the uid of the object that it was made for; empty for none.
        is_deleting: it has a deletion timestamp.
        is_guarded: it has the finalizer that keeps it as long as it is allocated.
        is_late, failure: of devices that have to get ready first: not all are yet, or why they will not.
        groups: the names of the PodGroups that may use it.
        owner_group: the name of the PodGroup that it was made for; empty for none.
        made: of a claim that stands for extended resources, whose key and uid are its pod's: the name and the uid of
            the object; None before it is made.
    """

    key: ClaimKey
    uid: str
    version: str
    shape: ClaimShape
    given: tuple[Given, ...] | None
    terms: tuple[NodeTerm, ...] | None
    reserved: frozenset[str]
    owner: str
    is_deleting: bool
    is_guarded: bool
    is_late: bool
    failure: str
    groups: frozenset[str] = frozenset()
    owner_group: str = ""
    made: tuple[str, str] | None = None

    @property
    def name(self) -> str:
        """The name of the object."""
        return self.key[1] if self.made is None else self.made[0]

    @property
    def object_uid(self) -> str:
        """The uid of the object."""
        return self.uid if self.made is None else self.made[1]

    @property
    def path_key(self) -> ClaimKey:
        """Namespace and name of the object."""
        return self.key[0], self.name


def read_claim(found: objects.ResourceClaim, shapes: ClaimShapes) -> Claim:
    """Parse a claim."""
    meta, status = found.metadata, found.status
    allocation = status.allocation
    given, terms = None, None
    if allocation is not None:
        given = tuple(map(_read_given, allocation.devices.results or ()))
        terms = _read_terms(allocation.node_selector)
    owners = meta.owner_references or ()
    is_late, failure = _read_conditions(found)
    key, uid, made = (meta.namespace, meta.name), meta.uid, None
    owner = next((one for one in owners if one.controller), wire.Owner())
    if owner.kind == "Pod" and (meta.annotations or {}).get(names.EXTENDED_CLAIM) == "true":
        key, uid, made = extended.make_key(meta.namespace, owner.uid), owner.uid, (meta.name, uid)
    return Claim(
        key,
        uid,
        meta.resource_version,
        shapes.get_shape(found.spec),
        given,
        terms,
        frozenset(one.uid for one in status.reserved_for or ()),
        owner.uid,
        meta.deletion_timestamp is not None,
        objects.FINALIZER in (meta.finalizers or ()),
        is_late,
        failure,
        frozenset(one.name for one in status.reserved_for or () if _is_group(one)),
        owner.name if owner.kind == "PodGroup" and owner.api_version.startswith(_GROUPS) else "",
        made,
    )


def _is_group(one: objects.Consumer) -> bool:
    return (one.api_group, one.resource) == (kinds.POD_GROUPS.group, kinds.POD_GROUPS.plural)


class _Placed(msgspec.Struct, rename="camel"):
    node_selector: wire.NodeTerms | None = None


_decoder = msgspec.json.Decoder(_Placed)


@lru_cache(maxsize=1024)
def read_places(allocation: bytes) -> tuple[NodeTerm, ...] | None:
    """Read where the devices of an allocation can be used, as ``Claim.terms``."""
    return _read_terms(_decoder.decode(allocation).node_selector)


def _read_terms(selector: wire.NodeTerms | None) -> tuple[NodeTerm, ...] | None:
    if selector is None:
        return None
    return selectors.read_node_terms(selector.node_selector_terms or ())


def make_unmade(pod: str, key: ClaimKey, shape: ClaimShape) -> Claim:
    """Make the claim that would stand for the extended resources of a pod, by its uid, and is not made yet."""
    return Claim(
        key, pod, "", shape, None, None, frozenset(), pod,
        is_deleting=False, is_guarded=False, is_late=False, failure="",
    )  # fmt: skip


def _read_given(found: objects.AllocatedDevice) -> Given:
    key, is_admin = DeviceKey(found.driver, found.pool, found.device), bool(found.admin_access)
    try:
        consumed = tuple(
            (name, read_quantity(amount, f"consumedCapacity[{name}]"))
            for name, amount in sorted((found.consumed_capacity or {}).items())
        )
    except BadInput:
        # How much is consumed is not known: it may be the whole device.
        return Given(found.request, key, is_admin)
    return Given(found.request, key, is_admin, found.share_id or "", consumed)


def _read_conditions(found: objects.ResourceClaim) -> tuple[bool, str]:
    """Read whether devices of a claim are not ready yet, and why one of them will not be; empty for no reason."""
    allocation, is_late = found.status.allocation, False
    told = {
        (one.driver, one.pool, one.device, one.share_id or ""): one.conditions or ()
        for one in found.status.devices or ()
    }
    for one in (allocation and allocation.devices.results) or ():
        if not one.binding_conditions:
            continue
        conditions = told.get((one.driver, one.pool, one.device, one.share_id or ""), ())
        states = {each.type: each for each in conditions}
        for name in one.binding_failure_conditions or ():
            each = states.get(name)
            if each is not None and each.status == _READY:
                text = (
                    f'claim={found.metadata.name}, reason={each.reason}, message="{each.message}"'
                )
                return is_late, f"device binding failed: {text}"
        met = {each.type for each in conditions if each.status == _READY}
        is_late = is_late or not met.issuperset(one.binding_conditions)
    return is_late, ""
