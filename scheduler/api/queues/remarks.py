"""What is written in a queue, a cohort or a flavor and means nothing, or not what it seems. Kueue refuses such objects.

They are not refused here: what else is written in them is clear.
"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.api.queues.definitions import (
    CohortDefinition,
    Flavor,
    Policy,
    QueueDefinition,
    Quota,
)


def list_remarks(defined: QueueDefinition | CohortDefinition | Flavor) -> Iterator[str]:
    """List what means nothing, field by field."""
    if isinstance(defined, Flavor):
        if defined.topology and not defined.labels:
            yield (
                "spec.topologyName: Kueue refuses a topology without nodeLabels; "
                "here the flavor has all nodes of the topology"
            )
        return
    is_queue = isinstance(defined, QueueDefinition)
    above = defined.cohort if isinstance(defined, QueueDefinition) else defined.parent
    alone = "the queue is in no cohort" if is_queue else "the cohort has no parent"
    missing = "" if above else alone
    seen: set[tuple[str, str]] = set()
    for i, group in enumerate(defined.groups):
        field = f"spec.resourceGroups[{i}]"
        named = {
            *(("resource", one) for one in group.resources),
            *(("flavor", one.flavor) for one in group.flavors),
        }
        for what, name in sorted(named & seen):
            yield f"{field}: {what} {name} is in another resource group, too; Kueue refuses that"
        seen |= named
        quotas = [quota for flavor in group.flavors for quota in flavor.quotas]
        for text in _list_limits(quotas, missing, is_queue=is_queue):
            yield f"{field}: {text}"
    if isinstance(defined, QueueDefinition) and defined.preemption.borrows and defined.preemption.reclaim == Policy.NEVER:  # fmt: skip
        yield "spec.preemption: borrowWithinCohort has no effect while reclaimWithinCohort is Never"


def _list_limits(quotas: list[Quota], missing: str, *, is_queue: bool) -> Iterator[str]:
    """List limits that mean nothing; ``missing``: why there is nobody to share with; empty if there is."""
    if missing and any(one.borrowing is not None for one in quotas):
        yield f"borrowingLimit has no effect: {missing}"
    if missing and any(one.lending is not None for one in quotas):
        yield f"lendingLimit has no effect: {missing}"
    # A cohort may also lend what is below it.
    if is_queue and any(one.lending is not None and one.lending > one.nominal for one in quotas):
        yield "lendingLimit has no effect: it is above nominalQuota"
