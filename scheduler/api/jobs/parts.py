"""What is read of a job, whatever its kind: the parts that its pods make up, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from scheduler.api import values
from scheduler.api.groups.readers import reading
from scheduler.errors import BadInput

Json = dict[str, Any]
# The keys and numbers that lead from an object to something in it.
Place = tuple[str | int, ...]
# The name of the part of a job that has only one.
MAIN = "main"


class JobPart(NamedTuple):
    """Pods of a job that are alike.

    Attributes:
        name: the name of the pod set of its workload.
        n_pods: how many there are at once.
        template: the template of the pods, with what the kind's own controller adds to it.
        place: where the job has the template.
        least: how many pods may be enough; None: all of them are needed.
        index_label: the label with the number of a pod; empty for none.
        inner: the label with the number of an inner group, and how many of these there are; None for none.
    """

    name: str
    n_pods: int
    template: Json
    place: Place
    least: int | None = None
    index_label: str = ""
    inner: tuple[str, int] | None = None


class JobEnd(NamedTuple):
    """How a job has ended."""

    has_succeeded: bool
    message: str


class JobState(NamedTuple):
    """How far a job is.

    Attributes:
        is_active: whether it has pods that run.
        is_ready: whether all its pods are ready, or have succeeded.
        end: None while it goes on.
        ended: of parts whose pods have ended for good, (name, how many pods).
        is_on_hold: whether it cannot run as it is.
    """

    is_active: bool = False
    is_ready: bool = False
    end: JobEnd | None = None
    ended: tuple[tuple[str, int], ...] = ()
    is_on_hold: bool = False


def get_in(found: Any, place: Place) -> Any:
    """Return what is at a place in an object; None if there is nothing.

    Raises:
        BadInput: what leads there is no object, or no list; names it.
    """
    for i, step in enumerate(place):
        if found is None:
            return None
        if isinstance(step, int):
            if not isinstance(found, list):
                raise BadInput(write_place(place[:i]), "must be a list")
            found = found[step] if step < len(found) else None
        else:
            found = values.read_mapping(found, write_place(place[:i])).get(step)
    return found


def read_object(found: Any, *place: str | int) -> Mapping[str, Any]:
    """Read an object at a place in another one; an absent one is empty.

    Raises:
        BadInput: it is no object; names the place.
    """
    return values.read_mapping(get_in(found, place), write_place(place))


def read_count(found: Any, *place: str | int) -> int | None:
    """Read a number of pods at a place in an object; None for an absent one.

    Raises:
        BadInput: it is no such number; names the place.
    """
    count = get_in(found, place)
    return None if count is None else reading.read_count(count, write_place(place), 0)


def read_list(found: Any, *place: str | int) -> list[Any]:
    """Read a list of objects at a place in an object; an absent one is empty.

    Raises:
        BadInput: it is no list of objects, or a very long one; names the place.
    """
    return reading.read_few(get_in(found, place), write_place(place), dict)


def write_place(place: Place) -> str:
    """Write a place as messages do: ``spec.replicatedJobs[0].name``."""
    text = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in place)
    return text.removeprefix(".")


def find_end(job: Json, *, succeeded: str, failed: str) -> JobEnd | None:
    """Find how a job has ended by its conditions; ``succeeded`` and ``failed``: their types."""
    for one in read_list(job, "status", "conditions"):
        if one.get("type") in {succeeded, failed} and one.get("status") == "True":
            return JobEnd(one["type"] == succeeded, str(one.get("message", "")))
    return None


def has_condition(job: Json, kind: str) -> bool:
    """Whether a condition of a job is true."""
    return any(
        one.get("type") == kind and one.get("status") == "True"
        for one in read_list(job, "status", "conditions")
    )


def sum_counts(found: list[Any] | Mapping[str, Any], key: str) -> int:
    """Sum up a count of each of several objects; one that is not there is 0."""
    items = found.values() if isinstance(found, Mapping) else found
    return sum(read_count(one, key) or 0 for one in items)
