"""The requests that send a pod away. Each names the pod's uid: another pod of its name is left alone."""

from __future__ import annotations

from scheduler.api import names
from scheduler.kube import pod_status, wall_clock
from scheduler.kube.client import ApiClient
from scheduler.state.pods import PodRecord
from scheduler.telling.departures import Departure


async def write_condition(api: ApiClient, victim: PodRecord, words: Departure) -> None:
    """Say on a pod why it is about to be deleted: who restarts it does not count that as its failure.

    Raises:
        ApiError: the API server refused.
    """
    said = {
        "type": names.DISRUPTION_TARGET,
        "observedGeneration": victim.generation,
        "status": "True",
        "reason": words.reason,
        "message": words.message,
        "lastTransitionTime": wall_clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    await pod_status.patch_status(api, victim, {"conditions": [said]})


async def delete_pod(api: ApiClient, victim: PodRecord, _: Departure) -> None:
    """Have a pod deleted, with the time that it gives itself.

    Raises:
        ApiError: as ``write_condition``.
    """
    options = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": victim.uid},
    }
    await api.send("DELETE", pod_status.get_path(victim), options)
