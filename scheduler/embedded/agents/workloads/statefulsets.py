"""StatefulSets: numbered pods, which are made upwards and ended downwards, one after the other."""

from collections.abc import Sequence
from typing import Any

from scheduler.embedded.agents.workloads import naming, plans

Json = dict[str, Any]

_REVISION = "controller-revision-hash"
_CLAIMS = "volumeClaimTemplates are not made here: nothing provisions volumes, so no pod is made"


def make_plan(
    owner: Json, pods: Sequence[Json], now: str, failed: Sequence[plans.Note] = ()
) -> plans.Plan:
    """Return the next step; ``failed`` says why the last pod could not be made."""
    spec = owner["spec"]
    revision = f"{owner['metadata']['name']}-{naming.hash_template(spec['template'])}"
    wanted, notes = plans.cap_pods("StatefulSet", plans.read_number(spec.get("replicas"), 1))
    if spec.get("volumeClaimTemplates"):
        wanted, notes = 0, [plans.Note("FailedCreate", _CLAIMS, "Warning")]
    first = plans.read_number((spec.get("ordinals") or {}).get("start"), 0)
    numbers = range(first, first + wanted)
    found = {_read_number(pod): pod for pod in pods}
    create: list[Json] = []
    delete: list[Json] = []
    if not plans.is_going(owner):
        one_by_one = spec.get("podManagementPolicy") != "Parallel"
        create, delete = _find_steps(owner, found, numbers, revision, one_by_one=one_by_one)
    live = [pod for pod in pods if not plans.is_going(pod) and not plans.has_ended(pod)]
    updated = sum(_is_made_from(pod, revision) for pod in live)
    ready = sum(plans.is_ready(pod) for pod in live)
    old = owner.get("status") or {}
    done = updated == len(live)
    status: Json = {
        "observedGeneration": owner["metadata"].get("generation", 1),
        "replicas": len(live),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "currentReplicas": updated,
        "updatedReplicas": updated,
        "currentRevision": revision if done else old.get("currentRevision", revision),
        "updateRevision": revision,
        "collisionCount": 0,
        "conditions": plans.make_conditions(old, plans.make_failure([*failed, *notes]), now),
    }
    return plans.Plan(create=create, delete=delete, status=status, notes=notes)


def _find_steps(
    owner: Json, found: dict[int, Json], numbers: range, revision: str, *, one_by_one: bool
) -> tuple[list[Json], list[Json]]:
    """Return the pods to make and to delete now: all at once, or one by one, each when all before it are ready."""
    over = [pod for pod in found.values() if plans.has_ended(pod) and not plans.is_going(pod)]
    if over:
        return [], over
    missing = [number for number in numbers if number not in found]
    if missing and one_by_one:
        before = (found[number] for number in numbers if number < missing[0])
        missing = missing[:1] if all(plans.is_ready(pod) for pod in before) else []
    create = [_make_pod(owner, number, revision) for number in missing]
    downwards = sorted((number for number in found if number not in numbers), reverse=True)
    if one_by_one:
        downwards = downwards[:1]
    delete = [found[number] for number in downwards if not plans.is_going(found[number])]
    rolling = (owner["spec"].get("updateStrategy") or {}).get("type", "RollingUpdate")
    complete = all(number in found for number in numbers)
    if rolling == "RollingUpdate" and complete and not downwards:
        delete += _find_outdated(found, numbers, revision)
    return create, delete


def _find_outdated(found: dict[int, Json], numbers: range, revision: str) -> list[Json]:
    """Return the highest pod of an older template, if all others are ready."""
    stale = [number for number in reversed(numbers) if not _is_made_from(found[number], revision)]
    others = (pod for number, pod in found.items() if number != stale[0]) if stale else ()
    return [found[stale[0]]] if stale and all(plans.is_ready(pod) for pod in others) else []


def _read_number(pod: Json) -> int:
    number = pod["metadata"]["name"].rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def _is_made_from(pod: Json, revision: str) -> bool:
    return bool((pod["metadata"].get("labels") or {}).get(_REVISION) == revision)


def _make_pod(owner: Json, number: int, revision: str) -> Json:
    meta, spec = owner["metadata"], owner["spec"]
    name = f"{meta['name']}-{number}"
    pod = naming.make_pod(
        spec["template"],
        naming.make_owner_reference("apps/v1", "StatefulSet", owner),
        namespace=meta["namespace"],
        name=name,
        labels={
            "apps.kubernetes.io/pod-index": str(number),
            _REVISION: revision,
            "statefulset.kubernetes.io/pod-name": name,
        },
    )
    pod["spec"]["hostname"] = name
    if spec.get("serviceName"):
        pod["spec"]["subdomain"] = spec["serviceName"]
    return pod
