"""The replicas of a Deployment: one more for a while, and one less afterwards.

That the last write of the replicas was ours, and until when it may last, is in the name of its field manager. The API server
writes it beside the replicas in the same step, and removes it as soon as anybody sets another number. So a process that was
killed leaves behind what the next one needs, it cannot be said of an object where it is not so, and the replicas of somebody else
are never touched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scheduler.api import kinds, names
from scheduler.errors import ApiError
from scheduler.kube import answers, client
from scheduler.kube.client import ApiClient
from scheduler.kube.evict.surge.workload import read_deployment

Json = Mapping[str, Any]
_MANAGER = f"{names.SCHEDULER}-surge-"
_RAISED = re.compile(rf"{_MANAGER}(\d{{1,15}})")
# So often a write is tried again because the Deployment has changed, for instance its status.
_TRIES = 20


def find_raised(deployment: Json) -> int | None:
    """Find until when the replicas are one more than they should be, in seconds since 1970; None if they are not."""
    for entry in deployment["metadata"].get("managedFields") or ():
        found = _RAISED.fullmatch(str(entry.get("manager")))
        fields = (entry.get("fieldsV1") or {}).get("f:spec") or {}
        if found and "f:replicas" in fields:
            return int(found[1])
    return None


async def raise_replicas(api: ApiClient, deployment: Json, until: int) -> None:
    """Have one pod more, if it is still as it was read.

    Raises:
        ApiError: the API server refused; a conflict if somebody has written it.
    """
    await _write(api, deployment, +1, f"{_MANAGER}{until}")


async def lower_replicas(api: ApiClient, namespace: str, name: str, until: int) -> bool:
    """Have one pod less again, if it is still one more because of a raise with this end; return whether it was.

    Raises:
        ApiError: the API server refused.
    """
    for left in reversed(range(_TRIES)):
        deployment = await read_deployment(api, namespace, name)
        if deployment is None or find_raised(deployment) != until:
            return False
        try:
            await _write(api, deployment, -1, names.SCHEDULER)
        except ApiError as error:
            if answers.is_not_found(error):
                return False
            if not left or not answers.is_conflict(error):
                raise
        else:
            return True
    return False


async def _write(api: ApiClient, deployment: Json, more: int, manager: str) -> None:
    meta = deployment["metadata"]
    path = kinds.DEPLOYMENTS.find_path(meta["name"], meta["namespace"])
    body = {
        "metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
        "spec": {"replicas": int(deployment["spec"].get("replicas", 1)) + more},
    }
    await api.send(
        "PATCH",
        f"{path}/scale",
        body,
        content_type=client.MERGE_PATCH,
        params={"fieldManager": manager},
    )
