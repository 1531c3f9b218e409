"""Errors as a kube-apiserver words them: every refusal is a ``Status`` object."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]


class Cause(NamedTuple):
    """One field that was refused, with a reason that clients can branch on."""

    reason: str
    field: str
    message: str

    def write_text(self) -> str:
        """Write the cause as it is in the error's message."""
        return f"{self.field}: {self.message}"


class ApiError(Exception):
    """A refusal that reaches the client as a ``Status`` with this code and reason."""

    def __init__(self, code: int, reason: str, message: str, details: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def make_body(self) -> Json:
        """Return the ``Status`` object."""
        status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def quote(value: object) -> str:
    """Write a value as Go's ``%#v`` and ``%q`` would: JSON is close enough for the values here."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def bad_request(message: str) -> ApiError:
    """400: the request could not be understood."""
    return ApiError(400, "BadRequest", message)


def forbidden(resource: str, name: str, why: str) -> ApiError:
    """403: an admission step refused the request."""
    group_resource, _, group = resource.partition(".")
    return ApiError(
        403,
        "Forbidden",
        f"{resource} {quote(name)} is forbidden: {why}",
        _make_details(name, group_resource, group),
    )


def not_found(resource: str, name: str) -> ApiError:
    """404 for an object; ``resource`` is ``plural`` or ``plural.group``."""
    plural, _, group = resource.partition(".")
    return ApiError(
        404, "NotFound", f"{resource} {quote(name)} not found", _make_details(name, plural, group)
    )


class NoSuchPathError(Exception):
    """No kind serves this path: a 404 in plain text, without a Status."""


def method_not_allowed() -> ApiError:
    """405: the kind exists but not with this verb."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def not_acceptable(accepted: Sequence[str]) -> ApiError:
    """406: the server can write no media type that the client accepts."""
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return ApiError(406, "NotAcceptable", message)


def already_exists(resource: str, name: str) -> ApiError:
    """409 on create."""
    plural, _, group = resource.partition(".")
    return ApiError(
        409,
        "AlreadyExists",
        f"{resource} {quote(name)} already exists",
        _make_details(name, plural, group),
    )


def conflict(resource: str, name: str, why: str) -> ApiError:
    """409 on update, delete or bind."""
    plural, _, group = resource.partition(".")
    return ApiError(
        409,
        "Conflict",
        f"Operation cannot be fulfilled on {resource} {quote(name)}: {why}",
        _make_details(name, plural, group),
    )


def stale(resource: str, name: str) -> ApiError:
    """409 because the sender's resourceVersion is not the newest."""
    return conflict(
        resource,
        name,
        "the object has been modified; please apply your changes to the latest version and"
        " try again",
    )


def expired(message: str) -> ApiError:
    """410: the requested version is no longer in the history."""
    return ApiError(410, "Expired", message)


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    """415: the verb does not read the type of the body."""
    listed = ", ".join(accepted)
    return ApiError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include:"
        f" {listed}",
    )


def invalid(qualified_kind: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """422 with one cause per refused field; ``qualified_kind`` is ``Kind`` or ``Kind.group``."""
    texts = list(dict.fromkeys(cause.write_text() for cause in causes))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    kind, _, group = qualified_kind.partition(".")
    details = _make_details(name, kind, group)
    details["causes"] = [
        {"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes
    ]
    message = f"{qualified_kind} {quote(name)} is invalid: {listed}"
    return ApiError(422, "Invalid", message, details)


def internal(message: str) -> ApiError:
    """500 with the text of the failure."""
    return ApiError(500, "", message)


def too_large_version(asked: int, current: int) -> ApiError:
    """504: the requested version is in the future."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return ApiError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        {"causes": [cause], "retryAfterSeconds": 1},
    )


def required(field: str, why: str = "") -> Cause:
    """Name a field that must be there."""
    return Cause("FieldValueRequired", field, f"Required value: {why}" if why else "Required value")


def invalid_value(field: str, value: object, why: str) -> Cause:
    """Name a field whose value is wrong."""
    return Cause("FieldValueInvalid", field, f"Invalid value: {quote(value)}: {why}")


def unsupported_value(field: str, value: object, allowed: Sequence[object]) -> Cause:
    """Name a field whose value is not in its list."""
    listed = ", ".join(quote(choice) for choice in allowed)
    return Cause(
        "FieldValueNotSupported",
        field,
        f"Unsupported value: {quote(value)}: supported values: {listed}",
    )


def forbidden_field(field: str, why: str) -> Cause:
    """Name a field that may not be set or changed here."""
    return Cause("FieldValueForbidden", field, f"Forbidden: {why}")


def success(name: str, resource: str, uid: str) -> Json:
    """Return the ``Status`` that answers a finished delete."""
    plural, _, group = resource.partition(".")
    details = _make_details(name, plural, group)
    details["uid"] = uid
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }


def _make_details(name: str, kind: str, group: str) -> Json:
    details: Json = {"name": name}
    if group:
        details["group"] = group
    details["kind"] = kind
    return details
