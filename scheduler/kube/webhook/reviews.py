"""AdmissionReviews in and out, as the API server sends and reads them.

Whoever may create an object chooses what a review holds: whatever it is, there is an answer.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from scheduler.api import kinds
from scheduler.api.jobs import table
from scheduler.api.jobs.parts import Json
from scheduler.api.kinds import Kind
from scheduler.errors import BadInput, make_visible
from scheduler.kube.report.metrics.reviews import Review
from scheduler.kube.webhook import checks, defaults
from scheduler.kube.webhook.known import Known, Request

_VERSION, _KIND = "admission.k8s.io/v1", "AdmissionReview"
_MESSAGE_MAX = 1000


class _GroupKind(msgspec.Struct):
    kind: str
    group: str = ""


class _Raw(msgspec.Struct, rename="camel"):
    """What of a request is read."""

    uid: str
    kind: _GroupKind
    namespace: str = ""
    name: str = ""
    sub_resource: str = ""
    object: Any = None
    old_object: Any = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _Raw


class _Row(NamedTuple):
    """What is done about a kind."""

    kind: Kind
    default: Callable[[Request, Known], list[Json]]
    check: Callable[[Request], None]


_TABLE = (
    *(_Row(one.kind, defaults.default_job, checks.check_job) for one in table.TABLE),
    _Row(kinds.PODS, defaults.default_pod, checks.check_pod),
    *(
        _Row(one, defaults.default_serving, checks.check_serving)
        for one in (kinds.DEPLOYMENTS, kinds.STATEFUL_SETS, kinds.LEADER_WORKER_SETS)
    ),
)
_BY_KIND = {(one.kind.group, one.kind.kind): one for one in _TABLE}


class Answer(NamedTuple):
    """What is sent back, and what it says in one word."""

    body: bytes
    result: Review


class NotReview(Exception):  # noqa: N818
    """What has come is no AdmissionReview."""


def answer_defaults(body: bytes, known: Known) -> Answer:
    """Answer what an object gets.

    Raises:
        NotReview: the body is none.
    """
    return _answer(body, lambda row, request: row.default(request, known))


def answer_checks(body: bytes, known: Known) -> Answer:
    """Answer whether an object may be.

    Raises:
        NotReview: the body is none.
    """
    del known

    def check(row: _Row, request: Request) -> list[Json]:
        row.check(request)
        return []

    return _answer(body, check)


def _answer(body: bytes, find_patch: Callable[[_Row, Request], list[Json]]) -> Answer:
    try:
        review = msgspec.json.decode(body, type=_Review)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise NotReview(f"no {_KIND} of {_VERSION}: {error}") from error
    if (review.api_version, review.kind) != (_VERSION, _KIND):
        raise NotReview(f"no {_KIND} of {_VERSION}")
    raw = review.request
    row = _BY_KIND.get((raw.kind.group, raw.kind.kind))
    answer: Json = {"uid": raw.uid, "allowed": True}
    result = Review.ALLOWED
    if row is not None and not raw.sub_resource and raw.object is not None:
        try:
            patch = find_patch(row, _read_request(row.kind, raw))
        except BadInput as error:
            result = Review.REFUSED
            answer |= _refuse(row.kind, raw, error)
        else:
            if patch:
                result = Review.CHANGED
                text = base64.b64encode(msgspec.json.encode(patch)).decode()
                answer |= {"patchType": "JSONPatch", "patch": text}
    made = msgspec.json.encode({"apiVersion": _VERSION, "kind": _KIND, "response": answer})
    return Answer(made, result)


def _read_request(kind: Kind, raw: _Raw) -> Request:
    for one, field in ((raw.object, "object"), (raw.old_object, "oldObject")):
        if not (isinstance(one, dict) or (one is None and field == "oldObject")):
            raise BadInput(field, "must be an object")
    return Request(kind, raw.namespace, raw.object, raw.old_object)


def _refuse(kind: Kind, raw: _Raw, error: BadInput) -> Json:
    key = make_visible(f"{raw.namespace}/{raw.name}".rstrip("/"))
    message = f"{kind.kind} {key}: {error}"[:_MESSAGE_MAX]
    code = HTTPStatus.UNPROCESSABLE_ENTITY.value
    status = {"status": "Failure", "code": code, "reason": "Invalid", "message": message}
    return {"allowed": False, "status": status}
