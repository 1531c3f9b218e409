"""Differences that stay, each with its reason; any other fails a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tests.differential import known_claims
from tests.differential.compare import Difference, Known
from tests.oracles import filters

Json = dict[str, Any]
_LIMITS_FAIL = 'error: running "NodeVolumeLimits" filter plugin: PVC '
_NOT_OWNER = "(pod is not owner)"


def _is_of_shared_volumes(difference: Difference, objects: Sequence[Json]) -> bool:
    """Only who is evicted, only of a pod with volumes, and only where pods of one node share one that counts."""
    if not _is_of_who_goes(difference):
        return False
    return bool(objects[-1]["spec"].get("volumes")) and _is_shared(objects)


def _is_of_who_goes(difference: Difference) -> bool:
    """Whether both say the same of all but who is evicted."""
    if difference.what != "message":
        return difference.what in {"nominated", "victims"}
    theirs, ours = (str(one).partition(" preemption: ") for one in difference[1:])
    return theirs[:2] == ours[:2] and bool(ours[1])


def _is_shared(objects: Sequence[Json]) -> bool:
    """Whether two pods of a node, or the last and one of a node, have the same volume of a driver with limits."""
    limited = {
        driver["name"]
        for one in objects
        if one["kind"] == "CSINode"
        for driver in one["spec"].get("drivers") or ()
        if driver.get("allocatable")
    }
    volumes = {
        one["metadata"]["name"]: (source["driver"], source["volumeHandle"])
        for one in objects
        if one["kind"] == "PersistentVolume" and (source := one["spec"].get("csi"))
    }
    claims = {
        (one["metadata"]["namespace"], one["metadata"]["name"]): one["spec"].get("volumeName")
        for one in objects
        if one["kind"] == "PersistentVolumeClaim"
    }

    def held(pod: Json) -> Iterator[tuple[str, str]]:
        for claim in _claims(pod):
            found = volumes.get(claims.get((pod["metadata"]["namespace"], claim)) or "")
            if found is not None and found[0] in limited:
                yield found

    pods = [one for one in objects if one["kind"] == "Pod"]
    own = set(held(pods[-1]))
    running = [pod for pod in pods[:-1] if pod["spec"].get("nodeName")]
    on_nodes = Counter((pod["spec"]["nodeName"], one) for pod in running for one in held(pod))
    return any(n > 1 or one in own for (_, one), n in on_nodes.items())


def _is_of_a_namesake(difference: Difference, objects: Sequence[Json]) -> bool:
    """Only who is evicted, and only where a pod elsewhere has a claim by the name of one that the pod may use alone."""
    if not _is_of_who_goes(difference):
        return False
    pod = objects[-1]
    alone = {
        one["metadata"]["name"]
        for one in objects
        if one["kind"] == "PersistentVolumeClaim"
        and one["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and "ReadWriteOncePod" in one["spec"].get("accessModes", ())
    } & set(_claims(pod))
    return any(
        one["metadata"]["namespace"] != pod["metadata"]["namespace"]
        and one["spec"].get("nodeName")
        and not alone.isdisjoint(_claims(one))
        for one in objects
        if one["kind"] == "Pod"
    )


def _is_of_a_strangers_claim(difference: Difference, _: Sequence[Json]) -> bool:
    """Only where NodeVolumeLimits fails: the pod, or one on a node, has a claim that was made for another."""
    theirs = str(difference.theirs)
    is_error = difference.what == "error" and theirs.startswith(_LIMITS_FAIL)
    return is_error and theirs.endswith(_NOT_OWNER)


def _is_of_an_unreadable_wish(_: Difference, objects: Sequence[Json]) -> bool:
    """Only of a pod whose preferred node affinity has a requirement that cannot be read."""
    nodes = objects[-1]["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = nodes.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return not all(
        filters.is_readable(expression)
        for term in terms
        for expression in term["preference"].get("matchExpressions") or ()
    )


def _is_of_shared_ports(difference: Difference, objects: Sequence[Json]) -> bool:
    """Only who is evicted for a host port, and only where pods of one node have the same already."""
    if not (_is_of_who_goes(difference) and filters.ports(objects[-1])):
        return False
    there = Counter(
        (one["spec"]["nodeName"], *port)
        for one in objects[:-1]
        if one["kind"] == "Pod" and one["spec"].get("nodeName")
        for port in filters.ports(one)
    )
    return any(n > 1 for n in there.values())


def _claims(pod: Json) -> Iterator[str]:
    for one in pod["spec"].get("volumes", ()):
        if claim := one.get("persistentVolumeClaim"):
            yield claim["claimName"]


KNOWN: tuple[Known, ...] = (
    Known(
        "who is evicted where pods of a node share a volume that counts against its limit: each pod is looked at"
        " by itself, so that what only several free together is not found (docs/limits.md)",
        _is_of_shared_volumes,
    ),
    Known(
        "who is evicted for a claim of ReadWriteOncePod: kube-scheduler takes a pod of another namespace for its user,"
        " where a claim there has the same name (docs/limits.md)",
        _is_of_a_namesake,
    ),
    Known(
        "a claim that was made for another pod, where VolumeBinding is disabled: in kube-scheduler NodeVolumeLimits fails,"
        " for pods beside it as well; Evenkeel refuses nodes to the pod alone (docs/limits.md)",
        _is_of_a_strangers_claim,
    ),
    Known(
        "a pod whose preferred node affinity cannot be read waits, and says so; kube-scheduler finds it out where two"
        " nodes and more fit, if its profile scores by node affinity (docs/limits.md)",
        _is_of_an_unreadable_wish,
    ),
    Known(
        "who is evicted for a host port that two pods of a node have already: kube-scheduler takes it for free when one"
        " of the two has gone",
        _is_of_shared_ports,
    ),
    *known_claims.KNOWN,
)


def reason(difference: Difference, objects: Sequence[Json]) -> Known | None:
    """Which known difference it is, None when it is another."""
    return next((one for one in KNOWN if one.holds(difference, objects)), None)
