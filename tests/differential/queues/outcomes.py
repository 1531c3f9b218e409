"""What becomes of a world's workloads, in one form for Kueue and whoever is compared with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

ADMITTED, PENDING, FINISHED = "admitted", "pending", "finished"


class PodSet(msgspec.Struct, frozen=True):
    """What a pod set of an admitted workload has got.

    Attributes:
        name: of the pod set.
        count: how many of its pods may run; fewer than it asks for if it was admitted in part.
        flavors: by resource, that of the quota it uses.
    """

    name: str
    count: int
    flavors: Mapping[str, str]


class Fate(msgspec.Struct, frozen=True):
    """Where a workload stands at the end of a step.

    Attributes:
        status: admitted, pending or finished.
        queue: the ClusterQueue that admitted it, "" if it is not admitted.
        pod_sets: in the order of the workload's, none if it is not admitted.
        reason: of the condition that no quota is reserved, in Kueue's words; "" if it has none. Of one whose place
            another has taken, that of the condition that it is finished.
        message: of the same condition.
    """

    status: str
    queue: str = ""
    pod_sets: Sequence[PodSet] = ()
    reason: str = ""
    message: str = ""


class Eviction(msgspec.Struct, frozen=True, order=True):
    """A workload that had to let go of its quota.

    Attributes:
        round: of its step, from 0.
        workload: by name; those of one round are told by name, as Kueue evicts eight at a time.
        reason: of the condition Evicted.
        why: the reason of the condition Preempted, "" if nobody came in its place.
        preemptor: who came in its place, "" if nobody did.
    """

    round: int
    workload: str
    reason: str
    why: str = ""
    preemptor: str = ""


class StepOutcome(msgspec.Struct, frozen=True):
    """What a step came to.

    Attributes:
        fates: of each workload that is there, by name.
        evictions: in order.
        is_endless: it was given up as each round evicted somebody.
    """

    fates: Mapping[str, Fate]
    evictions: Sequence[Eviction] = ()
    is_endless: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """What a world came to, step by step; after a step that does not end there is none."""

    steps: Sequence[StepOutcome]
