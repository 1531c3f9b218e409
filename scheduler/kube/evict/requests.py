"""The requests that evict a pod. Each names the pod's uid: another pod of the same name is left alone."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.api import names
from scheduler.errors import ApiError
from scheduler.kube import answers, pod_status, wall_clock
from scheduler.kube.client import ApiClient
from scheduler.state.pods import PodRecord
from scheduler.telling.departures import Departure


async def write_condition(api: ApiClient, victim: PodRecord, words: Departure) -> None:
    """Write on a pod why it is about to be deleted, so that its controller does not count this as a failure.

    Raises:
        ApiError: the API server refused.
    """
    condition = {
        "type": names.DISRUPTION_TARGET,
        "observedGeneration": victim.generation,
        "status": "True",
        "reason": words.reason,
        "message": words.message,
        "lastTransitionTime": wall_clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    await pod_status.patch_status(api, victim, {"conditions": [condition]})


async def delete_pod(api: ApiClient, victim: PodRecord, _: Departure) -> None:
    """Delete a pod, with its own grace period.

    Raises:
        ApiError: as ``write_condition``.
    """
    options = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": victim.uid},
    }
    await api.send("DELETE", pod_status.get_path(victim), options)


async def evict_pod(api: ApiClient, victim: PodRecord, _: Departure) -> None:
    """Evict a pod, with its own grace period; a disruption budget may refuse.

    Raises:
        ApiError: as ``write_condition``; 429 if a budget refuses.
    """
    await _send_eviction(api, victim, {})


async def find_refusal(api: ApiClient, victim: PodRecord) -> str:
    """Try an eviction that ends no pod, to see whether it would be refused by now; return why, empty if not.

    Raises:
        ApiError: as ``write_condition``, for any other reason than a budget.
    """
    try:
        await _send_eviction(api, victim, {"dryRun": "All"})
    except ApiError as error:
        if answers.is_eviction_refused(error):
            return str(error)
        raise
    return ""


async def _send_eviction(api: ApiClient, victim: PodRecord, params: Mapping[str, str]) -> None:
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": victim.name, "namespace": victim.namespace},
        "deleteOptions": {"preconditions": {"uid": victim.uid}},
    }
    await api.send("POST", f"{pod_status.get_path(victim)}/eviction", eviction, params=params)
