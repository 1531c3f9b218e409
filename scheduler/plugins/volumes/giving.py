"""The volumes that the claims of a pod get on the node that was chosen for the pod."""

from __future__ import annotations

from scheduler.api.storage import Given
from scheduler.plugins.volumes import binding
from scheduler.plugins.volumes.needs import Needs
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

_NOTHING: tuple[Given, ...] = ()


def list_given(
    pod: PodRecord, needs: Needs | None, cluster: Cluster, row: int
) -> tuple[Given, ...]:
    """List the volume of each unbound claim, in order; ``needs`` must be those with which the node was chosen."""
    if needs is None or not needs.unbound or pod.volumes is None:
        return _NOTHING
    choice = binding.get_verdict(cluster, needs.bound, needs.unbound, needs.curve).get_choice(row)
    claims = cluster.storage.claims
    waiting = [
        one.name for one in pod.volumes.claims if not claims[pod.namespace, one.name].is_bound
    ]
    return tuple(Given(*one) for one in zip(waiting, choice.volumes, strict=True))
