"""The meaning of the API server's answers. Only this module of the room knows HTTP's status codes."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from scheduler.errors import ApiError

# How much is kept of a message, and of a page that a proxy may have sent.
_MESSAGE_MAX, _PAGE_MAX = 1000, 200


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""


def is_failure(status: int) -> bool:
    """Whether an answer with this status is an error or a redirect; no write follows a redirect."""
    return not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES


def make_error(status: int, payload: bytes) -> ApiError:
    """Return the error of an answer, with the words of its Status object."""
    try:
        answer = msgspec.json.decode(payload, type=_Status)
    except msgspec.MsgspecError:
        answer = _Status(message=payload[:_PAGE_MAX].decode(errors="replace"))
    return ApiError(status, answer.reason, answer.message[:_MESSAGE_MAX])


def is_not_found(error: Exception) -> bool:
    """Whether the object does not exist, or its kind is not served."""
    return _has_status(error, HTTPStatus.NOT_FOUND)


def is_conflict(error: Exception) -> bool:
    """Whether the object is not as the call expected it: it has changed, is another one, or exists already."""
    return _has_status(error, HTTPStatus.CONFLICT)


def is_there_already(error: Exception) -> bool:
    """Whether an object of this name exists already."""
    return is_conflict(error) and isinstance(error, ApiError) and error.reason == "AlreadyExists"


def is_expired(error: Exception) -> bool:
    """Whether the version to go on from is too old for the API server to remember."""
    return _has_status(error, HTTPStatus.GONE)


def make_expired_error(message: str) -> ApiError:
    """Return the error of a list that never came to its end."""
    return ApiError(HTTPStatus.GONE.value, "Expired", message)


def is_invalid(error: Exception) -> bool:
    """Whether the API server understood the request and found that it is not valid."""
    return _has_status(error, HTTPStatus.UNPROCESSABLE_ENTITY)


def is_bound_already(error: Exception) -> bool:
    """Whether the pod has a node, and so may not be nominated to one any more."""
    return (
        is_invalid(error)
        and isinstance(error, ApiError)
        and "already bound to a node" in error.message
    )


def is_too_large(error: Exception) -> bool:
    """Whether the request was too large for the API server, or for etcd behind it."""
    return _has_status(error, HTTPStatus.REQUEST_ENTITY_TOO_LARGE) or (
        isinstance(error, ApiError) and "request is too large" in error.message
    )


def is_eviction_refused(error: Exception) -> bool:
    """Whether the API server does not let a pod go: by its budget, or because it has several."""
    return _has_status(error, HTTPStatus.TOO_MANY_REQUESTS) or _has_status(
        error, HTTPStatus.INTERNAL_SERVER_ERROR
    )


def is_forbidden(error: Exception) -> bool:
    """Whether the API server knows the caller and does not allow the call."""
    return _has_status(error, HTTPStatus.FORBIDDEN)


def is_refused(error: Exception) -> bool:
    """Whether the API server does not allow the call, or does not know the caller."""
    return _has_status(error, HTTPStatus.UNAUTHORIZED) or is_forbidden(error)


def is_transient(error: Exception) -> bool:
    """Whether the same call may succeed later: no answer, too many calls, or the server's own trouble."""
    return is_unknown(error) or _has_status(error, HTTPStatus.TOO_MANY_REQUESTS)


def is_unknown(error: Exception) -> bool:
    """Whether the call may have taken effect all the same: no answer, or trouble on the way to one.

    A 500 too: the API server answers so when etcd was too slow to say whether it wrote.
    """
    return isinstance(error, ApiError) and (
        error.status == 0 or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    )


def _has_status(error: Exception, status: HTTPStatus) -> bool:
    return isinstance(error, ApiError) and error.status == status
