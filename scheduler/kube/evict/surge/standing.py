"""How a move stands while there is one pod more: whether to wait, whether the pod may go, or why it stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from scheduler.kube.evict import successors
from scheduler.kube.evict.successors import Came
from scheduler.kube.evict.surge.marks import find_mark
from scheduler.kube.evict.surge.raising import find_raised
from scheduler.kube.evict.surge.workload import Workload

Json = Mapping[str, Any]


class Raised(NamedTuple):
    """A move whose Deployment wants one pod more.

    Attributes:
        uid: of the pod that is moved.
        before: the uids of the pods that there were.
        generation: of the Deployment after the raise; with any other one, somebody has changed its spec.
        until: until when the move may take, in seconds since 1970.
        is_planned: whether a successor is where it should be.
    """

    uid: str
    before: frozenset[str]
    generation: int
    until: int
    is_planned: Callable[[Came], bool]


class Standing(NamedTuple):
    """How a move stands: the successor that is ready, or what speaks against the move; neither: it goes on."""

    ready: Json | None = None
    trouble: str = ""


def find_standing(raised: Raised, now: Workload) -> Standing:
    """Find how a move stands."""
    if spoiled := _find_spoiler(raised, now):
        return Standing(trouble=spoiled)
    new = list_fresh(raised, now)
    placed = successors.list_new(new, raised.before)
    planned = [one for one in placed if raised.is_planned(successors.describe_successor(one))]
    if placed and not planned and len(placed) == len(new):
        meta, node = placed[0]["metadata"], placed[0]["spec"]["nodeName"]
        return Standing(trouble=f"its successor {meta['name']} went to {node}, and not as planned")
    is_done = bool(planned) and successors.is_ready(planned[0]) and now.is_ready
    return Standing(planned[0]) if is_done else Standing()


def _find_spoiler(raised: Raised, now: Workload) -> str:
    """Find what else has happened, so that the move cannot go on."""
    body = now.deployment
    if body is None:
        return "its Deployment is gone"
    name = f"Deployment {body['metadata']['name']}"
    if find_raised(body) != raised.until:
        return f"somebody else has set the replicas of {name} meanwhile"
    if int(body["metadata"].get("generation", 0)) != raised.generation:
        return f"{name} was changed meanwhile"
    if not successors.has_uid(now.alive, raised.uid):
        return "it went by itself meanwhile"
    if not any(_is_marked(one, raised) for one in now.alive):
        return "somebody has taken its mark away meanwhile"
    refusal = _find_refusal(now)
    return refusal and f"no pod more could be made: {refusal}"


def _is_marked(pod: Json, raised: Raised) -> bool:
    """Whether a pod is the one that is moved, and the controller knows by its mark that it goes."""
    return pod["metadata"]["uid"] == raised.uid and find_mark(pod) == raised.until


def list_fresh(raised: Raised, now: Workload) -> list[Json]:
    """List the pods that have come since, as far as they do not end."""
    return [one for one in now.alive if one["metadata"]["uid"] not in raised.before]


def describe_lack(raised: Raised, now: Workload) -> str:
    """Say what is missing when the time is over."""
    new = list_fresh(raised, now)
    placed = successors.list_new(new, raised.before)
    if not placed:
        return "no successor had a node in time"
    if not successors.is_ready(placed[0]):
        return f"its successor {placed[0]['metadata']['name']} was not ready in time"
    return "not all pods of its Deployment were ready in time"


def _find_refusal(now: Workload) -> str:
    """Find why the API server lets a ReplicaSet make no pod, such as a quota."""
    for one in now.sets:
        for condition in (one.get("status") or {}).get("conditions") or ():
            if (condition["type"], condition["status"]) == ("ReplicaFailure", "True"):
                return str(condition.get("message") or "its ReplicaSet does not say why")
    return ""
