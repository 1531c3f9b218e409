"""KAI's Queues as an API server has to know them: the fields of the spec, of which others are refused.

Source: KAI-Scheduler (2026-03), ``deployments/kai-scheduler/crds/scheduling.run.ai_queues.yaml``.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def _make_fields(**fields: Json) -> Json:
    return {"type": "object", "properties": fields}


_TEXT, _NUMBER = {"type": "string"}, {"type": "number"}
_AMOUNT = _make_fields(quota=_NUMBER, limit=_NUMBER, overQuotaWeight=_NUMBER)
_SPEC = _make_fields(
    displayName=_TEXT,
    parentQueue=_TEXT,
    priority={"type": "integer"},
    preemptMinRuntime=_TEXT,
    reclaimMinRuntime=_TEXT,
    resources=_make_fields(cpu=_AMOUNT, gpu=_AMOUNT, memory=_AMOUNT),
)
_VERSION: Json = {
    "name": "v2",
    "served": True,
    "storage": True,
    "subresources": {"status": {}},
    "schema": {
        "openAPIV3Schema": _make_fields(
            spec=_SPEC, status={"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        )
    },
}
QUEUES_CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "queues.scheduling.run.ai"},
    "spec": {
        "group": "scheduling.run.ai",
        "names": {
            "plural": "queues",
            "singular": "queue",
            "kind": "Queue",
            "listKind": "QueueList",
        },
        "scope": "Cluster",
        "versions": [_VERSION],
    },
}
