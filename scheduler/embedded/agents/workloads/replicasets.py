"""ReplicaSets: a number of pods of one template."""

from collections.abc import Sequence
from typing import Any

from scheduler.embedded.agents.workloads import naming, plans

Json = dict[str, Any]


def make_plan(
    owner: Json, pods: Sequence[Json], now: str, failed: Sequence[plans.Note] = ()
) -> plans.Plan:
    """Return the pods to make or delete; ``failed`` says why the last pods could not be made."""
    meta, spec = owner["metadata"], owner["spec"]
    asked = plans.read_number(spec.get("replicas"), 1)
    wanted, notes = plans.cap_pods("ReplicaSet", asked)
    live = [pod for pod in pods if not plans.is_going(pod) and not plans.has_ended(pod)]
    over = [pod for pod in pods if plans.has_ended(pod) and not plans.is_going(pod)]
    reference = naming.make_owner_reference("apps/v1", "ReplicaSet", owner)
    missing = 0 if plans.is_going(owner) else wanted - len(live)
    create = [
        naming.make_pod(spec["template"], reference, namespace=meta["namespace"])
        for _ in range(max(0, missing))
    ]
    surplus = plans.sort_by_deletion(live)[: max(0, -missing)]
    ready = sum(plans.is_ready(pod) for pod in live)
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    wrong = [*failed, *notes]
    status: Json = {
        "observedGeneration": meta.get("generation", 1),
        "replicas": len(live),
        "fullyLabeledReplicas": sum(
            labels.items() <= (pod["metadata"].get("labels") or {}).items() for pod in live
        ),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "conditions": plans.make_conditions(
            owner.get("status") or {}, plans.make_failure(wrong), now
        ),
    }
    return plans.Plan(create=create, delete=[*over, *surplus], status=status, notes=notes)
