"""What is wanted of a move and what comes of it: the pods of a controller, and which of them is the successor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from scheduler.api import kinds
from scheduler.kube.client import ApiClient

Json = Mapping[str, Any]


class Came(NamedTuple):
    """Where the successor of a moved pod is.

    Attributes:
        name, node: the successor and its node; empty if there is none.
        notes: its annotations.
        trouble: why the move has come to no end; empty if it has.
        is_evicted: whether the pod was made to go.
        is_taken_back: whether a successor was wanted before the pod was to go, and the pod stays after all.
        way: how the pod was moved, where there was a choice; empty else.
    """

    name: str = ""
    node: str = ""
    notes: Mapping[str, str] = {}
    trouble: str = ""
    is_evicted: bool = True
    is_taken_back: bool = False
    way: str = ""


class Order(NamedTuple):
    """What is known of a move beside its pod.

    Attributes:
        owner: the uid of the pod's controller.
        seconds: how long it may take.
        find_hindrance: says right before the pod is made to go why it may not any more; empty if it may.
        is_planned: whether a successor is where it should be, if it is to come before the pod goes; None if the pod goes first.
    """

    owner: str
    seconds: float
    find_hindrance: Callable[[], str] = str
    is_planned: Callable[[Came], bool] | None = None


async def list_made_by(api: ApiClient, namespace: str, owner: str) -> list[Json]:
    """List the pods of the controller with a uid.

    Raises:
        ApiError: the API server refused, or did not answer.
    """
    listed = await api.get(kinds.PODS.find_list_path(namespace))
    return [one for one in listed["items"] if find_controller(one).get("uid") == owner]


def find_controller(body: Json) -> Json:
    """Find the reference to the controller of an object; empty if it has none."""
    owners = body["metadata"].get("ownerReferences") or ()
    return next((of for of in owners if of.get("controller")), {})


def has_uid(pods: Iterable[Json], uid: str) -> bool:
    """Whether a pod is among others."""
    return any(one["metadata"]["uid"] == uid for one in pods)


def list_new(pods: Iterable[Json], before: Collection[str]) -> list[Json]:
    """List the pods that were not there before, by their uids, and have a node; those that are ready come first."""
    new = (one for one in pods if one["metadata"]["uid"] not in before)
    there = [one for one in new if one["spec"].get("nodeName")]
    return sorted(there, key=lambda one: not is_ready(one))


def is_ready(pod: Json) -> bool:
    """Whether a pod is ready."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def is_ending(pod: Json) -> bool:
    """Whether a pod is on its way out, or has ended."""
    phase = (pod.get("status") or {}).get("phase")
    return "deletionTimestamp" in pod["metadata"] or phase in {"Succeeded", "Failed"}


def describe_successor(pod: Json) -> Came:
    """Say where a successor is."""
    meta = pod["metadata"]
    return Came(meta["name"], pod["spec"].get("nodeName", ""), meta.get("annotations") or {})
