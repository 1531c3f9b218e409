"""What the webhook has to know of a cluster, beside the object of a review."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import msgspec

from scheduler.api import wire
from scheduler.api.jobs.owners import JobKey, find_job_key
from scheduler.api.jobs.parts import Json, Place, get_in, write_place
from scheduler.api.kind import Kind
from scheduler.errors import BadInput

T = TypeVar("T")


class Known(NamedTuple):
    """What has to be known of a cluster; another thread calls these functions, so they only read.

    Attributes:
        is_managed: says whether a job has a queue; what such a job makes needs none.
        has_default_queue: says whether a namespace has a LocalQueue for jobs that name none.
    """

    is_managed: Callable[[JobKey | None], bool]
    has_default_queue: Callable[[str], bool]


class Request(NamedTuple):
    """An object that somebody writes.

    Attributes:
        kind: its kind.
        namespace: where it is.
        found: the object, as it would be.
        before: the object as it is; None while it is created.
    """

    kind: Kind
    namespace: str
    found: Json
    before: Json | None = None


def find_owner(request: Request) -> tuple[bool, JobKey | None]:
    """Find whether an object has a controller, and the key of that one if it is a job.

    Raises:
        BadInput: the object's owners are not as the API server has them.
    """
    owners = _convert(request.found, ("metadata", "ownerReferences"), list[wire.Owner]) or []
    has_one = any(one.controller for one in owners)
    return has_one, find_job_key(owners, request.namespace)


def read_texts(found: Json, *place: str | int) -> dict[str, str]:
    """Read labels, annotations or other texts with names at a place in an object; absent ones are none.

    Raises:
        BadInput: they are something else.
    """
    return _convert(found, place, dict[str, str]) or {}


def read_names(found: Json, *place: str | int) -> list[str]:
    """Read a list of texts at a place in an object; an absent one is empty.

    Raises:
        BadInput: it is something else.
    """
    return _convert(found, place, list[str]) or []


def _convert(found: Json, place: Place, wanted: type[T]) -> T | None:
    value = get_in(found, place)
    try:
        return None if value is None else msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        raise BadInput(write_place(place), f"cannot be read: {error}") from error
