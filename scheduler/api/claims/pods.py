"""Which ResourceClaims a pod has: by name, or made for it from a template."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api import wire


class PodClaim(NamedTuple):
    """A claim of a pod.

    Attributes:
        entry: the name of its entry in the pod's spec.
        name: the name of the ResourceClaim; empty as long as it was not made, None if the pod needs none.
        template: the ResourceClaimTemplate that it is made from; empty for a claim that others may have, too.
    """

    entry: str
    name: str | None
    template: str


def read_claims(pod: wire.Pod) -> tuple[PodClaim, ...]:
    """Read the claims of a pod, in their order; none for most pods."""
    given = pod.spec.resource_claims
    if not given:
        return ()
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses or ()}
    return tuple(
        PodClaim(
            one.name,
            one.resource_claim_name or made.get(one.name, ""),
            one.resource_claim_template_name,
        )
        for one in given
    )
