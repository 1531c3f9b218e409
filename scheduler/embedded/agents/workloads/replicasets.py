"""ReplicaSets: so many pods of one template."""

from collections.abc import Sequence
from typing import Any

from scheduler.embedded.agents.workloads import naming, plans

Json = dict[str, Any]


def plan(
    owner: Json, pods: Sequence[Json], now: str, failed: Sequence[plans.Note] = ()
) -> plans.Plan:
    """Return what is missing or too much; ``failed`` says why the last pods could not be made."""
    meta, spec = owner["metadata"], owner["spec"]
    asked = plans.number(spec.get("replicas"), 1)
    wanted, notes = plans.capped("ReplicaSet", asked)
    live = [pod for pod in pods if not plans.going(pod) and not plans.ended(pod)]
    over = [pod for pod in pods if plans.ended(pod) and not plans.going(pod)]
    reference = naming.owner_reference("apps/v1", "ReplicaSet", owner)
    missing = 0 if plans.going(owner) else wanted - len(live)
    create = [
        naming.pod_of(spec["template"], reference, namespace=meta["namespace"])
        for _ in range(max(0, missing))
    ]
    surplus = plans.first_to_go(live)[: max(0, -missing)]
    ready = sum(plans.ready(pod) for pod in live)
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
        "conditions": plans.conditions(owner.get("status") or {}, plans.failure(wrong), now),
    }
    return plans.Plan(create=create, delete=[*over, *surplus], status=status, notes=notes)
