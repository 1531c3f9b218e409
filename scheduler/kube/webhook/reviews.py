"""AdmissionReviews in and out, as the API server sends and reads them.

Whoever may create an object chooses what a review holds: whatever it is, there is an answer.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from scheduler.api import kinds
from scheduler.api.jobs import table
from scheduler.api.jobs.parts import Json
from scheduler.api.kind import Kind
from scheduler.errors import BadInput, make_visible
from scheduler.kube.report.metrics.reviews import Outcome
from scheduler.kube.webhook import checks, defaults, known
from scheduler.kube.webhook.known import Known

_VERSION, _KIND = "admission.k8s.io/v1", "AdmissionReview"
_MESSAGE_MAX = 1000


class _GroupKind(msgspec.Struct):
    kind: str
    group: str = ""


class Request(msgspec.Struct, rename="camel"):
    """What of any request is read."""

    uid: str
    kind: _GroupKind
    namespace: str = ""
    name: str = ""
    sub_resource: str = ""


class _QueueRequest(Request):
    object: Any = None
    old_object: Any = None


R = TypeVar("R", bound=Request)


class Review(msgspec.Struct, Generic[R], rename="camel"):
    """An AdmissionReview; ``R``: what of its request is read."""

    api_version: str
    kind: str
    request: R


class _Row(NamedTuple):
    """What is done about a kind."""

    kind: Kind
    default: Callable[[known.Request, Known], list[Json]]
    check: Callable[[known.Request], None]


_TABLE = (
    *(_Row(one.kind, defaults.default_job, checks.check_job) for one in table.TABLE),
    _Row(kinds.PODS, defaults.default_pod, checks.check_pod),
    *(
        _Row(one, defaults.default_serving, checks.check_serving)
        for one in (kinds.DEPLOYMENTS, kinds.STATEFUL_SETS, kinds.LEADER_WORKER_SETS)
    ),
)
_BY_KIND = {(one.kind.group, one.kind.kind): one for one in _TABLE}


_DECODER = msgspec.json.Decoder(Review[_QueueRequest])


class Answer(NamedTuple):
    """What is sent back, and what it says in one word."""

    body: bytes
    result: Outcome


class NotReview(Exception):  # noqa: N818
    """What has come is no AdmissionReview."""


def answer_defaults(body: bytes, cluster: Known) -> Answer:
    """Answer what an object gets.

    Raises:
        NotReview: the body is none.
    """
    return _answer(body, lambda row, request: row.default(request, cluster))


def answer_checks(body: bytes, cluster: Known) -> Answer:
    """Answer whether an object may be.

    Raises:
        NotReview: the body is none.
    """
    del cluster

    def check(row: _Row, request: known.Request) -> list[Json]:
        row.check(request)
        return []

    return _answer(body, check)


def decode(body: bytes, decoder: msgspec.json.Decoder[Review[R]]) -> R:
    """Decode the request of a review.

    Raises:
        NotReview: the body is no review.
    """
    try:
        review = decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise NotReview(f"no {_KIND} of {_VERSION}: {error}") from error
    if (review.api_version, review.kind) != (_VERSION, _KIND):
        raise NotReview(f"no {_KIND} of {_VERSION}")
    return review.request


def write_allowed(request: Request, patch: list[Json]) -> Answer:
    """Write that an object may be, with the operations of a JSON patch."""
    answer: Json = {"uid": request.uid, "allowed": True}
    if not patch:
        return _write(answer, Outcome.ALLOWED)
    text = base64.b64encode(msgspec.json.encode(patch)).decode()
    return _write(answer | {"patchType": "JSONPatch", "patch": text}, Outcome.CHANGED)


def write_refused(
    request: Request, kind: Kind, status: HTTPStatus, reason: str, problem: str
) -> Answer:
    """Write that an object may not be.

    Args:
        request: that of the object.
        kind: its kind.
        status: what the API server answers then.
        reason: the same as one of Kubernetes' words.
        problem: what is wrong.
    """
    key = make_visible(f"{request.namespace}/{request.name}".rstrip("/"))
    message = f"{kind.kind} {key}: {problem}"[:_MESSAGE_MAX]
    found = {"status": "Failure", "code": status.value, "reason": reason, "message": message}
    return _write({"uid": request.uid, "allowed": False, "status": found}, Outcome.REFUSED)


def _write(answer: Json, outcome: Outcome) -> Answer:
    made = msgspec.json.encode({"apiVersion": _VERSION, "kind": _KIND, "response": answer})
    return Answer(made, outcome)


def _answer(body: bytes, find_patch: Callable[[_Row, known.Request], list[Json]]) -> Answer:
    request = decode(body, _DECODER)
    row = _BY_KIND.get((request.kind.group, request.kind.kind))
    if row is None or request.sub_resource or request.object is None:
        return write_allowed(request, [])
    try:
        return write_allowed(request, find_patch(row, _read_request(row.kind, request)))
    except BadInput as error:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        return write_refused(request, row.kind, status, "Invalid", str(error))


def _read_request(kind: Kind, raw: _QueueRequest) -> known.Request:
    for one, field in ((raw.object, "object"), (raw.old_object, "oldObject")):
        if not (isinstance(one, dict) or (one is None and field == "oldObject")):
            raise BadInput(field, "must be an object")
    return known.Request(kind, raw.namespace, raw.object, raw.old_object)
