"""Pods that wait together, by themselves or as a group, and the workload that stands for them.

Source: Kueue (2026-08), ``pkg/controller/jobs/pod/pod_controller.go``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from scheduler.api import kinds, names, wire
from scheduler.api.jobs import plain_pods, workloads
from scheduler.api.jobs.importance import Ranked, rank_pod
from scheduler.api.jobs.parts import JobPart, Json, get_in, read_object
from scheduler.errors import BadInput

IS_GROUP = "kueue.x-k8s.io/is-group-workload"


class UnitKey(NamedTuple):
    """Pods that wait together: a group, or a pod by itself."""

    namespace: str
    name: str
    is_group: bool


def name_unit(meta: wire.Meta) -> UnitKey:
    """Name the pods with which a pod waits."""
    group = plain_pods.find_group(meta.labels or {})
    return UnitKey(meta.namespace, group or meta.name, bool(group))


def find_unit(meta: wire.Meta) -> UnitKey | None:
    """Find the pods for which a workload stands; None if it stands for none."""
    owners = [one for one in meta.owner_references or () if one.kind == kinds.PODS.kind]
    if not owners:
        return None
    is_group = not owners[0].controller
    return UnitKey(meta.namespace, meta.name if is_group else owners[0].name, is_group)


@dataclass(frozen=True, kw_only=True)
class PodUnit:
    """Pods that wait together.

    Attributes:
        group: the name of their group; empty for a pod by itself.
        pods: the pods that exist, the oldest first.
    """

    group: str
    pods: Sequence[Json]

    @cached_property
    def total(self) -> int:
        """How many pods there are to be."""
        return plain_pods.read_common_total(self.pods) if self.group else 1

    @cached_property
    def coming(self) -> list[Json]:
        """The pods that run, have succeeded, or can still run, those that should stay first."""
        found = [one for one in self.pods if plain_pods.may_come(one)]
        return sorted(found, key=plain_pods.is_gated)

    @property
    def is_fast(self) -> bool:
        """Whether the first pod is enough to know the group."""
        return bool(self.group) and plain_pods.says(self.pods[0], names.KUEUE_FAST, "true")

    @property
    def serves(self) -> bool:
        """Whether the group has no end."""
        return bool(self.group) and plain_pods.says(self.pods[0], names.KUEUE_SERVES, "true")

    @property
    def is_active(self) -> bool:
        """Whether a pod runs that is not on its way out."""
        return any(
            get_in(one, ("status", "phase")) == "Running" and not plain_pods.is_going(one)
            for one in self.pods
        )

    @property
    def is_known(self) -> bool:
        """Whether all pods are there that a workload takes, and not all of them have ended."""
        n_needed = 1 if self.is_fast else self.total
        return len(self.coming) >= n_needed and not all(map(plain_pods.is_over, self.coming))

    @property
    def ranked(self) -> Ranked:
        """By what their priority is found."""
        return rank_pod(self.pods[0])

    def list_parts(self) -> list[JobPart]:
        """List the parts of their workload."""
        total = self.total if self.is_fast else None
        return plain_pods.list_parts(self.coming[: self.total], total)

    def make_workload(self) -> Json:
        """Make their workload, without its priority.

        Raises:
            BadInput: a pod says something that cannot be.
        """
        for pod in self.coming:
            refuse_prebuilt(pod)
        body = workloads.make_workload(kinds.PODS, self.coming[0], self.list_parts())
        if self.group:
            owners = [
                {key: one for key, one in make_owner(pod).items() if key != "controller"}
                for pod in self.coming
            ]
            body["metadata"] |= {
                "name": self.group,
                "ownerReferences": owners,
                "annotations": body["metadata"]["annotations"] | {IS_GROUP: "true"},
            }
            body["metadata"].pop("labels", None)
        return body


def refuse_prebuilt(pod: Json) -> None:
    """Refuse a pod that names a workload that was made before it: only jobs can.

    Raises:
        BadInput: it names one.
    """
    if workloads.find_prebuilt(pod):
        raise BadInput(
            f"metadata.labels[{names.KUEUE_PREBUILT}]",
            "is only for jobs; pods by themselves get a Workload of their own",
        )


def make_owner(pod: Json) -> Json:
    """Make the reference to a pod that owns a workload."""
    meta, kind = read_object(pod, "metadata"), kinds.PODS
    return {"apiVersion": kind.api_version, "kind": kind.kind, "name": meta["name"], "uid": meta["uid"]}  # fmt: skip
