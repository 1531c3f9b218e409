"""Deployments: one ReplicaSet for each template; the old ones are emptied before the new one is filled."""

import copy
from collections.abc import Sequence
from typing import Any

from scheduler.embedded.agents.workloads import naming, plans

Json = dict[str, Any]

REVISION = "deployment.kubernetes.io/revision"


def make_plan(owner: Json, owned: Sequence[Json], now: str) -> plans.Plan:
    """Return the plan: the ReplicaSet to make, those to scale, and the Deployment's status."""
    spec = owner["spec"]
    asked = plans.read_number(spec.get("replicas"), 1)
    _, notes = plans.cap_pods("Deployment", asked)
    digest = naming.hash_template(spec["template"])
    by_age = sorted((one for one in owned if not plans.is_going(one)), key=_read_revision)
    current = next((one for one in by_age if _read_hash(one) == digest), None)
    create = [] if current or spec.get("paused") else [digest]
    if current is None and spec.get("paused"):
        current = by_age[-1] if by_age else None
    old = [one for one in by_age if one is not current]
    newest = max(map(_read_revision, old), default=0)
    revision = max(newest + 1, _read_revision(current) if current else 1)
    scales = {} if plans.is_going(owner) else _find_scales(asked, current, old)
    merge = [
        (one, change) for one in by_age if (change := _make_change(one, scales, current, revision))
    ]
    notes += [
        _note_scaling(one, scales[one["metadata"]["uid"]])
        for one, change in merge
        if "spec" in change
    ]
    own = None
    if (owner["metadata"].get("annotations") or {}).get(REVISION) != str(revision):
        own = {"metadata": {"annotations": {REVISION: str(revision)}}}
    return plans.Plan(
        create=[_make_replica_set(owner, name, revision) for name in create],
        delete=_list_forgotten(spec, old),
        merge=merge,
        own=own,
        status=_make_status(owner, current, by_age, now),
        notes=notes,
    )


def _find_scales(asked: int, current: Json | None, old: Sequence[Json]) -> dict[str, int]:
    """Return the new number of pods, by uid, of each ReplicaSet that must be scaled."""
    wanted = {one["metadata"]["uid"]: 0 for one in old if one["spec"].get("replicas")}
    if current is None:
        return wanted
    before = _read_replicas(current)
    # A smaller number is set at once, a larger one when the pods of other templates are gone.
    if asked < before or (asked > before and not any(map(_has_pods, old))):
        wanted[current["metadata"]["uid"]] = asked
    return wanted


def _make_change(one: Json, scales: dict[str, int], current: Json | None, revision: int) -> Json:
    change: Json = {}
    if one["metadata"]["uid"] in scales:
        change["spec"] = {"replicas": scales[one["metadata"]["uid"]]}
    if one is current and _read_revision(one) != revision:
        change["metadata"] = {"annotations": {REVISION: str(revision)}}
    return change


def _read_replicas(one: Json) -> int:
    return plans.read_number(one["spec"].get("replicas"), 1)


def _has_pods(one: Json) -> bool:
    return bool(_read_replicas(one) or (one.get("status") or {}).get("replicas"))


def _read_revision(one: Json) -> int:
    text = (one["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def _read_hash(one: Json) -> str:
    return str((one["metadata"].get("labels") or {}).get(naming.HASH_LABEL, ""))


def _note_scaling(one: Json, after: int) -> plans.Note:
    before, name = _read_replicas(one), one["metadata"]["name"]
    way = "up" if after > before else "down"
    text = f"Scaled {way} replica set {name} from {before} to {after}"
    return plans.Note("ScalingReplicaSet", text)


def _make_replica_set(owner: Json, digest: str, revision: int) -> Json:
    """Return an empty ReplicaSet of the present template: it is filled when the old ones are empty."""
    meta, spec = owner["metadata"], owner["spec"]
    template = copy.deepcopy(spec["template"])
    mark = {naming.HASH_LABEL: digest}
    labels = {**((template.get("metadata") or {}).get("labels") or {}), **mark}
    template["metadata"] = {**(template.get("metadata") or {}), "labels": labels}
    selector = copy.deepcopy(spec.get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **mark}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta['name']}-{digest}",
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": {REVISION: str(revision)},
            "ownerReferences": [naming.make_owner_reference("apps/v1", "Deployment", owner)],
        },
        "spec": {"replicas": 0, "selector": selector, "template": template},
    }


def _list_forgotten(spec: Json, old: Sequence[Json]) -> list[Json]:
    """Return the oldest empty ReplicaSets beyond those that are kept for rollbacks."""
    empty = [one for one in old if not _has_pods(one)]
    kept = plans.read_number(spec.get("revisionHistoryLimit"), 10)
    return empty[: max(0, len(empty) - kept)]


def _make_status(owner: Json, current: Json | None, owned: Sequence[Json], now: str) -> Json:
    asked = plans.read_number(owner["spec"].get("replicas"), 1)
    totals = {
        field: sum(int((one.get("status") or {}).get(field, 0)) for one in owned)
        for field in ("replicas", "readyReplicas", "availableReplicas")
    }
    updated = int(((current or {}).get("status") or {}).get("replicas", 0))
    available = totals["availableReplicas"]
    enough = available >= asked
    done = enough and updated == asked and totals["replicas"] == asked
    name = current["metadata"]["name"] if current else ""
    said = [
        plans.Said(
            "Available",
            status=enough,
            reason=f"MinimumReplicas{'Available' if enough else 'Unavailable'}",
            message=f"Deployment {'has' if enough else 'does not have'} minimum availability.",
        ),
        plans.Said(
            "Progressing",
            status=True,
            reason="NewReplicaSetAvailable" if done else "ReplicaSetUpdated",
            message=f'ReplicaSet "{name}" '
            + ("has successfully progressed." if done else "is progressing."),
        ),
    ]
    said += [
        plans.Said("ReplicaFailure", status=True, reason=one["reason"], message=one["message"])
        for one in ((current or {}).get("status") or {}).get("conditions") or ()
        if one["type"] == "ReplicaFailure"
    ]
    return {
        "observedGeneration": owner["metadata"].get("generation", 1),
        **totals,
        "updatedReplicas": updated,
        "unavailableReplicas": max(0, asked - available),
        "conditions": plans.make_conditions(owner.get("status") or {}, said, now),
    }
