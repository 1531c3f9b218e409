"""What autoscalers read of a pod that waits, written down a second time from their sources.

- Cluster Autoscaler, kubernetes/autoscaler, branch cluster-autoscaler-release-1.37:
  ``ArrangePodsBySchedulability`` in cluster-autoscaler/utils/kubernetes/listers.go, and ``IsExpendablePod`` in
  cluster-autoscaler/core/utils/expendable.go.
- Karpenter, kubernetes-sigs/karpenter at 2266468104f3: ``IsProvisionable`` in pkg/utils/pod/scheduling.go.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

Json = dict[str, Any]

# --expendable-pods-priority-cutoff
_EXPENDABLE_BELOW = -10


def cluster_autoscaler(pod: Json) -> str:
    """What Cluster Autoscaler takes a pod for: only an unschedulable one makes it add nodes.

    As with its defaults: all schedulers allowed, none bypassed, whose pods it would not wait to see judged.
    """
    spec, status = pod["spec"], pod["status"]
    if spec.get("nodeName"):
        return "scheduled"
    if "deletionTimestamp" in pod["metadata"]:
        return "ignored"
    if status.get("nominatedNodeName"):
        return "counted on its nominated node"
    said = [one for one in status.get("conditions", ()) if one["type"] == "PodScheduled"]
    if not said or (said[0]["status"], said[0].get("reason")) != ("False", "Unschedulable"):
        return "ignored"
    return "expendable" if spec.get("priority", 0) < _EXPENDABLE_BELOW else "unschedulable"


def karpenter(pod: Json) -> bool:
    """Whether Karpenter looks for a node for a pod. Of the condition it reads the reason alone."""
    owners = {
        (one["apiVersion"], one["kind"]) for one in pod["metadata"].get("ownerReferences", ())
    }
    return (
        any(
            one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable"
            for one in pod["status"].get("conditions", ())
        )
        and not pod["spec"].get("nodeName")
        and not pod["status"].get("nominatedNodeName")
        and not owners & {("apps/v1", "DaemonSet"), ("v1", "Node")}
    )


def fits_new_node(pod: Json, model: Json) -> bool:
    """Whether a pod without other wishes fits on an empty node like a present one: its resources suffice for all requests.

    Source: NodeResourcesFit, which Cluster Autoscaler runs on a copy of a node of the group.
    """
    there = {key: parse_amount(text) for key, text in model["status"]["allocatable"].items()}
    wanted: dict[str, Fraction] = {}
    for container in pod["spec"]["containers"]:
        resources = container.get("resources", {})
        for key, text in {**resources.get("limits", {}), **resources.get("requests", {})}.items():
            wanted[key] = wanted.get(key, Fraction(0)) + parse_amount(text)
    return all(amount <= there.get(key, 0) for key, amount in wanted.items())


def parse_amount(text: str | int) -> Fraction:
    """A quantity with the suffixes of these tests."""
    one = Fraction(1)
    units = {"m": one / 1000, "Ki": one * 2**10, "Mi": one * 2**20, "Gi": one * 2**30}
    found = next((unit for unit in units if str(text).endswith(unit)), "")
    return Fraction(str(text).removesuffix(found)) * units.get(found, one)
