"""Pods that wait together, and all on which depends what is done for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from scheduler.api import names
from scheduler.api.jobs import plain_pods, workloads
from scheduler.api.jobs.parts import JobPart, Json, get_in
from scheduler.kube.jobs.deeds import Ranked


@dataclass(frozen=True, kw_only=True)
class PodScene:
    """Pods that wait together, and all on which depends what is done for them.

    Attributes:
        namespace: theirs.
        group: the name of their group; empty for a pod by itself.
        pods: the pods that exist, the oldest first.
        workloads: those that stand for them.
        flavors: the specs of flavors, by name.
        now: the time.
        schedulers: the names by which pods are ours: these run only once their workload may, with or without a gate.
        watches_pods: whether it is written on workloads that their pods are ready.
    """

    namespace: str
    group: str
    pods: Sequence[Json]
    workloads: Sequence[Json] = ()
    flavors: Mapping[str, Json] = field(default_factory=dict)
    now: float = 0.0
    schedulers: Sequence[str] = ()
    watches_pods: bool = False

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

    def is_suspended(self, pod: Json) -> bool:
        """Whether a pod does not run, and cannot begin to."""
        if plain_pods.is_over(pod) or plain_pods.is_gated(pod):
            return True
        is_ours = get_in(pod, ("spec", "schedulerName")) in self.schedulers
        return is_ours and not get_in(pod, ("spec", "nodeName"))

    @property
    def ranked(self) -> Ranked:
        """By what their priority is found."""
        first = self.pods[0]
        of_pods = str(get_in(first, ("spec", "priorityClassName")) or "")
        return Ranked(workloads.find_class(first), of_pods)

    def list_parts(self) -> list[JobPart]:
        """List the parts of their workload."""
        total = self.total if self.is_fast else None
        return plain_pods.list_parts(self.coming[: self.total], total)
