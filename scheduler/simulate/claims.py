"""ResourceClaims as binds leave them: what the API server would have, so that pods that share a claim follow it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import structs

from scheduler.api import kinds, names, wire
from scheduler.api.claims import extended
from scheduler.api.claims.answers import Allotment
from scheduler.api.claims.objects import (
    Allocation,
    ClaimSpec,
    ClaimStatus,
    Consumer,
    DeviceClaim,
    DeviceObject,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from scheduler.api.door import events
from scheduler.api.door.decisions import Bind, Free
from scheduler.state.pods import PodRecord

_decoder = msgspec.json.Decoder(Allocation)


class _Made(wire.Wire):
    """A claim that is to be made, see ``extended.write_claim``."""

    requests: list[DeviceRequest]


_made = msgspec.json.Decoder(_Made)


def _make_claim(made: bytes, pod: PodRecord) -> ResourceClaim:
    name, _ = extended.make_name(pod.name, pod.uid)
    owner = wire.Owner("Pod", pod.name, "v1", pod.uid, controller=True)
    meta = wire.GuardedMeta(
        name=name,
        namespace=pod.namespace,
        uid=f"{pod.uid}/{name}",
        annotations={names.EXTENDED_CLAIM: "true"},
        owner_references=[owner],
    )
    return ResourceClaim(meta, ClaimSpec(DeviceClaim(_made.decode(made).requests)))


def _make_consumer(bind: Bind, one: Allotment) -> Consumer:
    if one.group is None:
        return Consumer(uid=bind.uid)
    name, uid = one.group
    return Consumer(kinds.POD_GROUPS.group, kinds.POD_GROUPS.plural, name, uid)


class WrittenClaims:
    """The claims of a simulation, as they are by now."""

    def __init__(self, found: Iterable[DeviceObject | ResourceClaimTemplate]) -> None:
        self._by_uid = {one.metadata.uid: one for one in found if isinstance(one, ResourceClaim)}

    def bind_pod(self, bind: Bind, pod: PodRecord) -> Iterator[ResourceClaim]:
        """Give the claims of a pod their devices, and reserve these for the pod; yield the claims.

        What stands for its extended resources is made first.
        """
        for one in bind.allotted:
            claim = _make_claim(one.made, pod) if one.made else self._by_uid[one.uid]
            status = claim.status
            allocation = _decoder.decode(one.allocation) if one.is_new else status.allocation
            users = [*(status.reserved_for or ())]
            if (user := _make_consumer(bind, one)) not in users:
                users.append(user)
            yield self._write(
                claim, structs.replace(status, allocation=allocation, reserved_for=users)
            )

    def free(self, freed: Free) -> events.Event:
        """Take the devices from a claim, or delete it; return the event."""
        if freed.deletes:
            del self._by_uid[freed.uid]
            return events.Gone(kinds.RESOURCE_CLAIMS.name, "/".join(freed.key))
        return events.Seen(self._write(self._by_uid[freed.uid], ClaimStatus()))

    def _write(self, claim: ResourceClaim, status: ClaimStatus) -> ResourceClaim:
        written = self._by_uid[claim.metadata.uid] = structs.replace(claim, status=status)
        return written
