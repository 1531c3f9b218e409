"""Reviews as the API server sends them, and what the webhook answers."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from scheduler.api import names
from scheduler.api.kind import Kind
from scheduler.kube.webhook import reviews
from scheduler.kube.webhook.known import Known
from tests.unit.jsonpatch import apply_patch

Json = dict[str, Any]
QUEUE = {names.KUEUE_QUEUE: "q"}
# A job with a queue is named so, and a namespace with a default queue.
MANAGED, WITH_DEFAULT = "managed", "with-default"
KNOWN = Known(
    lambda key: key is not None and key[2] == MANAGED, lambda namespace: namespace == WITH_DEFAULT
)


def write_review(kind: Kind, found: Any, before: Any = None, namespace: str = "team") -> bytes:
    request = {
        "uid": "u1",
        "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "namespace": namespace,
        "name": "x",
        "operation": "CREATE" if before is None else "UPDATE",
        "object": found,
        "oldObject": before,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return msgspec.json.encode(review)


def find_patch(kind: Kind, found: Json, before: Json | None = None, namespace: str = "team") -> list[Json]:  # fmt: skip
    """What the object gets."""
    made = reviews.answer_defaults(write_review(kind, found, before, namespace), KNOWN)
    answer = msgspec.json.decode(made.body)
    response = answer["response"]
    assert (response["uid"], response["allowed"]) == ("u1", True), response
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    patch: list[Json] = msgspec.json.decode(base64.b64decode(response["patch"]))
    return patch


def default(kind: Kind, found: Json, before: Json | None = None, namespace: str = "team") -> Json:
    """The object with what it gets."""
    return apply_patch(found, find_patch(kind, found, before, namespace))


def find_objection(kind: Kind, found: Json, before: Json | None = None) -> str:
    """Why the object is refused; empty if it is not."""
    made = reviews.answer_checks(write_review(kind, found, before), KNOWN)
    answer = msgspec.json.decode(made.body)
    response = answer["response"]
    assert response["allowed"] is ("status" not in response)
    return str(response.get("status", {}).get("message", ""))
