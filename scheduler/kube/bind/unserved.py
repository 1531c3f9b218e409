"""The step before the bind of a pod whose device plugin has no lock: no other pod of the node may wait for the plugin.

The plugin looks among all pods of the node for the one that it has to serve, by times and sizes. Where two pods wait, it may
take the wrong one, and both get devices of the other. Pods of this process take turns; this step finds those that an
earlier process, or another scheduler, has bound.
"""

from __future__ import annotations

from collections.abc import Callable

from scheduler.api import kinds
from scheduler.kube.bind.holders import limits_any, may_be_admitted, read_holder
from scheduler.kube.bind.jobs import Answer, Contended, Done, Job
from scheduler.kube.client import ApiClient


class UnservedPods:
    """Finds pods that wait for a plugin without a lock; ``api``: the API server."""

    name = "unserved pods"
    is_in_turn, is_final, waiting = True, True, None

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    def is_needed_by(self, job: Job) -> bool:
        """Whether a plugin that has no lock has to serve the pod."""
        return bool(job.list_unlocked())

    async def take(self, job: Job, may_write: Callable[[], bool]) -> Answer:  # noqa: ARG002 - nothing is written
        """Look at the pods of the node; contended while another one waits for a plugin that has to serve this pod.

        Raises:
            ApiError: the pods cannot be listed.
        """
        wanted = {
            resource
            for one in job.list_unlocked()
            for resource in (*one.resources, *one.inner_resources)
        }
        found = await self._api.get(kinds.PODS.path, {"fieldSelector": f"spec.nodeName={job.node}"})
        for pod in map(read_holder, found.get("items") or ()):
            meta = pod.metadata
            if meta.uid != job.uid and may_be_admitted(pod) and limits_any(pod, wanted):
                return Contended(f"{meta.namespace}/{meta.name}", meta.uid)
        return Done()

    async def undo(self, job: Job) -> None:
        """Do nothing: the step writes nothing."""
