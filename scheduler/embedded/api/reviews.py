"""Questions about rights and identity: on this cluster everyone may do everything."""

from typing import Any

from scheduler.embedded.api import bodies
from scheduler.embedded.api.discovery import REVIEWS

Json = dict[str, Any]

_PLURALS = {(group, plural): kind for group, _, plural, kind, _ in REVIEWS if group}


def answer_review(group: str, rest: list[str], method: str, raw: bytes) -> Json | None:
    """Return the answered review, or None if the path is not one."""
    kind = _PLURALS.get((group, rest[-1]))
    if kind is None or method != "POST":
        return None
    # kubectl asks in protobuf, which is not read here; the answer to every question is the same.
    sent = bodies.read_object(raw, bodies.JSON) if raw.startswith(b"{") else {}
    status: Json
    match kind:
        case "SelfSubjectRulesReview":
            everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
            status = {
                "resourceRules": [everything],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": False,
            }
        case "SelfSubjectReview":
            status = {"userInfo": {"username": "embedded", "groups": ["system:masters"]}}
        case _:
            status = {"allowed": True}
    return {**sent, "apiVersion": f"{group}/v1", "kind": kind, "status": status}
