"""All settings, with every default, frozen and checked once."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler.api import names
from scheduler.api.placement import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the configuration file may set.

    Attributes:
        scheduler_name: pods with this ``spec.schedulerName`` are ours.
        placement: the default for pods that neither an annotation nor a BalancePolicy steers.
        mode_weight: weight of the mode's term beside taints 3 and node affinity 2.
        backoff_seconds, backoff_max_seconds: a pod that failed waits this long, doubling up to the most.
        binds_in_flight: requests to the API server at once.
        slice_pods: most pods decided between two looks at the streams.
        lock_timeout_seconds: age at which a HAMi node lock may be taken over.
    """

    scheduler_name: str = names.SCHEDULER
    placement: Placement = field(default_factory=Placement)
    mode_weight: int = 5
    backoff_seconds: float = 1.0
    backoff_max_seconds: float = 10.0
    binds_in_flight: int = 32
    slice_pods: int = 64
    lock_timeout_seconds: float = 300.0
