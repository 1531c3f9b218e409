"""Requests for shares of GPUs in neutral words: a pod that still has them when it is placed can be served by no node."""

from __future__ import annotations

from scheduler.api import names
from scheduler.api.pods.requests import Requests
from scheduler.errors import Mistake


def refuse_untranslated(asked: Requests) -> Mistake | None:
    """Say why a pod with such requests is not placed; None for a pod without them."""
    found = {one for one, _ in asked.amounts}.intersection((names.SHARE_MEMORY, names.SHARE_CORES))
    if not found:
        return None
    text = (
        "is not translated: the webhook for pods with devices writes such requests as what shares GPUs in the cluster when "
        "a pod is created; turn it on, and create the pod anew"
    )
    return Mistake(f"spec.containers[].resources.limits[{min(found)}]", text)
