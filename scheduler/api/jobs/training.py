"""Jobs of Kubeflow's training operators.

Source: Kueue (2026-08), ``pkg/controller/jobs/mpijob`` and ``pkg/controller/jobs/kubeflow``.
"""

from __future__ import annotations

from collections.abc import Callable

from scheduler.api import names
from scheduler.api.jobs.parts import (
    JobPart,
    JobState,
    Json,
    find_end,
    has_condition,
    read_count,
    read_object,
    sum_counts,
)


def make_lister(key: str, order: tuple[str, ...]) -> Callable[[Json], list[JobPart]]:
    """Make the function that lists the parts of a job: one for each of its kinds of replicas, in an order.

    The operators take a kind in any spelling (``ps`` for ``PS``). Kinds that they do not know come last: nothing that may
    become pods is without quota.
    """
    ranks = {name.lower(): i for i, name in enumerate(order)}

    def list_parts(job: Json) -> list[JobPart]:
        replicas = read_object(job, "spec", key)
        parts = []
        for name in sorted(replicas, key=lambda one: (ranks.get(one.lower(), len(ranks)), one)):
            if replicas[name] is None:
                continue
            place = "spec", key, name, "template"
            count = read_count(job, "spec", key, name, "replicas")
            parts.append(
                JobPart(
                    name.lower(),
                    1 if count is None else count,
                    dict(read_object(job, *place)),
                    place,
                    index_label=names.TRAINING_INDEX,
                )
            )
        return parts

    return list_parts


def read_state(job: Json) -> JobState:
    """Read how far a job is."""
    counts = read_object(job, "status", "replicaStatuses")
    return JobState(
        is_active=sum_counts(counts, "active") > 0,
        is_ready=has_condition(job, "Running"),
        end=find_end(job, succeeded="Succeeded", failed="Failed"),
    )


def find_class(job: Json) -> str:
    """Find the priority class that a job has beside those of its templates; empty for none."""
    policy = read_object(job, "spec", "runPolicy", "schedulingPolicy")
    return str(policy.get("priorityClass") or "")
