"""Which claim of a waiting pod loses its devices, because these can be used on no node that would take the pod.

Source: kube-scheduler 1.37.1, dynamicresources.go, PostFilter. kube-scheduler draws the claim by lot; here it is the first.
"""

from __future__ import annotations

import numpy as np

from scheduler.api.door.decisions import Free
from scheduler.plugins import node_terms
from scheduler.state.claims.objects import Claim
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

_NOTHING: tuple[Free, ...] = ()


def list_freed(pod: PodRecord, cluster: Cluster) -> tuple[Free, ...]:
    """List the claim that loses its devices, which no other pod may use; none if there is none."""
    claims = cluster.claims
    for one in pod.claims:
        claim = claims.claims.get((pod.namespace, one.name or ""))
        if claim is None or claim.given is None or claim.is_deleting:
            continue
        if not is_in_the_way(claim, cluster):
            continue
        if claim.reserved <= {pod.uid} and len(claims.list_users(claim.key)) == 1:
            return (Free(claim.key, claim.uid, claim.version),)
    return _NOTHING


def is_in_the_way(claim: Claim, cluster: Cluster) -> bool:
    """Whether the devices of a claim cannot be used on all nodes, or will not get ready."""
    nodes = cluster.nodes
    rows = np.array(list(nodes.rows.values()), np.int64)
    is_everywhere = claim.terms is None or node_terms.match_any(claim.terms, nodes, rows).all()
    return bool(claim.failure) or not is_everywhere
