"""What the rule about ResourceClaims reads of a pod; equal for pods whose claims request the same.

Source: kube-scheduler 1.37.1, dynamicresources.go, PreEnqueue and PreFilter.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api.claims.answers import ClaimKey
from scheduler.api.claims.pods import PodClaim
from scheduler.api.claims.requests import ClaimShape
from scheduler.api.groups.readers.kubernetes import KIND
from scheduler.api.kube_plugins import KubePlugins
from scheduler.api.selectors import NodeTerm
from scheduler.plugins.claims import masks
from scheduler.plugins.refusal import Refusal
from scheduler.state.claims.objects import CONSUMERS_MAX, Claim, read_places
from scheduler.state.claims.store import Claims
from scheduler.state.pods import Life, PodRecord

NAME = "DynamicResources"
NOT_MADE = 'pod "{}/{}": ResourceClaim not created yet'
NOT_FOUND = 'could not find ResourceClaim "{}/{}"'
DELETING = 'resourceclaim "{}" is being deleted'
NOT_OWNER = "ResourceClaim {} was not created for Pod {} (Pod is not owner)"
NOT_OWNERS = (
    "ResourceClaim {} was not created for Pod {} (neither Pod nor PodGroup {} is the owner)"
)
IN_USE = "resourceclaim in use"
IN_FLIGHT = "resource claim {} is in the process of being allocated"
NO_CLASS = "request {}: device class {} does not exist"
PROBLEM = "claim {}, {}"
# Terms that no node matches.
_NOWHERE: tuple[NodeTerm, ...] = ()
LEFT = "cannot schedule extended resource claim"


class Needs(NamedTuple):
    """What is read of a pod's claims.

    Attributes:
        refusal: why the pod cannot go to any node, whatever the nodes are; None otherwise. With it, all else is empty.
        pending: what its claims request that are not allocated yet, in their order.
        terms: for each claim that is allocated the nodes on which its devices can be used, where not on all;
            on none, if they will not get ready.
        preferred: the points of the alternatives that claims have got, see ``LEAF_WORTH``.
        is_single: placing one pod of the kind changes where the next one can go.
        is_bound: devices have to be allocated for its extended resources also where a device plugin serves these.
    """

    refusal: Refusal | None = None
    pending: tuple[ClaimShape, ...] = ()
    terms: tuple[tuple[NodeTerm, ...], ...] = ()
    preferred: int = 0
    is_single: bool = False
    is_bound: bool = False


def find_needs(pod: PodRecord, claims: Claims, plugins: KubePlugins) -> Needs | None:
    """Find what is read of a pod's claims now; None for a pod without claims."""
    entries = claims.list_entries(pod)
    if not entries or NAME in plugins.not_asked:
        return None
    pending: list[ClaimShape] = []
    terms: dict[tuple[NodeTerm, ...], None] = {}
    is_single, preferred = False, 0
    found = [
        (one, claims.claims.get((pod.namespace, one.name)))
        for one in {one.name: one for one in entries}.values()
        if one.name is not None
    ]
    # Whether the pod can have all of its claims comes first.
    if text := next(filter(None, (_find_text(pod, *each) for each in found)), ""):
        return Needs(Refusal(NAME, text))
    for one, claim in found:
        if claim is None:
            continue
        given = claims.get_given(claim)
        if text := _find_refusal(pod, claim, claims, is_given=given is not None):
            return Needs(Refusal(NAME, text))
        if given is None:
            pending.append(claim.shape)
            is_shared = not one.template or len(claims.list_users(claim.key)) > 1
            is_single = is_single or is_shared
        else:
            got = {each.request for each in given}
            leaves = (each for each in claim.shape.leaves if each[1].name in got)
            preferred += sum(each.measure_worth(leaf) for each, leaf in leaves)
            places = _NOWHERE if claim.failure else _find_places(claim, claims)
            if places is not None:
                terms[places] = None
    is_bound = pod.names_claim and any(one.resources for one in pending)
    return Needs(None, tuple(pending), tuple(terms), preferred, is_single, is_bound)


def _find_places(claim: Claim, claims: Claims) -> tuple[NodeTerm, ...] | None:
    """Find the nodes on which the devices can be used that a claim has or was decided to get; None for all."""
    decided = claims.find_decision(claim.key) if claim.given is None else None
    return read_places(decided[0].allocation) if decided is not None else claim.terms


def list_pending(pod: PodRecord, claims: Claims) -> list[Claim]:
    """List the claims of a pod that have nothing yet, in the order of ``Needs.pending``."""
    return [one for one in claims.list_claims(pod) if claims.get_given(one) is None]


def find_group(pod: PodRecord) -> str:
    """Find the name of Kubernetes' PodGroup in which a pod is; empty for none."""
    member = pod.member
    return member.group.name if member is not None and member.group.kind == KIND else ""


def _find_text(pod: PodRecord, one: PodClaim, claim: Claim | None) -> str:
    """Find why a pod cannot have one of its claims at all; empty for no reason."""
    if not one.name:
        return NOT_MADE.format(pod.namespace, pod.name)
    if claim is not None and claim.made is not None and pod.life == Life.PENDING:
        return LEFT
    if claim is None:
        return NOT_FOUND.format(pod.namespace, one.name)
    if claim.is_deleting:
        return DELETING.format(one.name)
    return _find_owner_text(pod, claim) if one.template else ""


def _find_owner_text(pod: PodRecord, claim: Claim) -> str:
    """Find why a claim from a template is not a pod's: it was made neither for the pod nor for its group."""
    group = find_group(pod)
    if claim.owner == pod.uid or (group and claim.owner_group == group):
        return ""
    key = "/".join(claim.key)
    if claim.owner_group and group:
        return NOT_OWNERS.format(key, pod.key, group)
    return NOT_OWNER.format(key, pod.key)


def _find_refusal(pod: PodRecord, claim: Claim, claims: Claims, *, is_given: bool) -> str:
    """Find why no node would do for a claim that the pod can have by itself; empty for no reason.

    ``is_given``: the claim has devices, by the API server or by a decision.
    """
    if claim.given is not None:
        is_reserved = pod.uid in claim.reserved or find_group(pod) in claim.groups
        is_full = not is_reserved and len(claim.reserved) >= CONSUMERS_MAX
        return IN_USE if is_full else ""
    if is_given:
        if claims.find_decision(claim.key) is not None:
            # The pod gets what was decided for another one, whichever of them writes the claim first.
            return ""
        return IN_FLIGHT.format("/".join(claim.key))
    if claim.shape.resources:
        # Where a device plugin serves what it stands for, nothing has to be allocated.
        return ""
    return find_problem(claims, claim.key, claim)


def find_problem(claims: Claims, key: ClaimKey, claim: Claim) -> str:
    """Find why a claim cannot be allocated on any node; empty for no reason."""
    for request, leaf in claim.shape.leaves:
        if leaf.of_class and leaf.of_class not in claims.classes:
            return NO_CLASS.format(leaf.name if request.is_choice else request.name, leaf.of_class)
    if claim.shape.problem:
        return PROBLEM.format("/".join(key), claim.shape.problem)
    return masks.get_masks(claims, claim.shape).problem.replace("{claim}", "/".join(key))
