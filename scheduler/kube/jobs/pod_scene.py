"""Pods that wait together, and all on which depends what is done for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.api.jobs import plain_pods
from scheduler.api.jobs.parts import Json, get_in
from scheduler.api.jobs.units import PodUnit


@dataclass(frozen=True, kw_only=True)
class PodScene(PodUnit):
    """Pods that wait together, and all on which depends what is done for them.

    Attributes:
        namespace: theirs.
        workloads: those that stand for them.
        flavors: the specs of flavors, by name.
        now: the time.
        schedulers: the names by which pods are ours: these run only once their workload may, with or without a gate.
        watches_pods: whether it is written on workloads that their pods are ready.
    """

    namespace: str
    workloads: Sequence[Json] = ()
    flavors: Mapping[str, Json] = field(default_factory=dict)
    now: float = 0.0
    schedulers: Sequence[str] = ()
    watches_pods: bool = False

    def is_suspended(self, pod: Json) -> bool:
        """Whether a pod does not run, and cannot begin to."""
        if plain_pods.is_over(pod) or plain_pods.is_gated(pod):
            return True
        is_ours = get_in(pod, ("spec", "schedulerName")) in self.schedulers
        return is_ours and not get_in(pod, ("spec", "nodeName"))
