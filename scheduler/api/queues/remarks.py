"""What is written in a queue or a cohort and means nothing, or not what it seems. Kueue's webhooks refuse such objects.

They are not refused here: what else is written in them is clear.
"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.api.queues.definitions import CohortDefinition, Policy, QueueDefinition, Quota


def list_remarks(defined: QueueDefinition | CohortDefinition) -> Iterator[str]:
    """List what means nothing, field by field."""
    is_queue = isinstance(defined, QueueDefinition)
    above = defined.cohort if isinstance(defined, QueueDefinition) else defined.parent
    missing = "" if above else "a cohort" if is_queue else "a parent"
    seen: set[tuple[str, str]] = set()
    for i, group in enumerate(defined.groups):
        field = f"spec.resourceGroups[{i}]"
        named = {
            *(("resource", one) for one in group.resources),
            *(("flavor", one.flavor) for one in group.flavors),
        }
        for what, name in sorted(named & seen):
            yield f"{field}: {what} {name} is in another group, too, which Kueue refuses"
        seen |= named
        quotas = [quota for flavor in group.flavors for quota in flavor.quotas]
        for text in _list_limits(quotas, missing, is_queue=is_queue):
            yield f"{field}: {text}"
    if isinstance(defined, QueueDefinition) and defined.preemption.borrows and defined.preemption.reclaim == Policy.NEVER:  # fmt: skip
        yield "spec.preemption: borrowWithinCohort has no effect with reclaimWithinCohort: Never"


def _list_limits(quotas: list[Quota], missing: str, *, is_queue: bool) -> Iterator[str]:
    """List limits that mean nothing; ``missing``: with whom there is nothing to share, empty for nobody."""
    if missing and any(one.borrowing is not None for one in quotas):
        yield f"borrowingLimit has no effect without {missing}"
    if missing and any(one.lending is not None for one in quotas):
        yield f"lendingLimit has no effect without {missing}"
    # A cohort may also lend what is below it.
    if is_queue and any(one.lending is not None and one.lending > one.nominal for one in quotas):
        yield "a lendingLimit above nominalQuota has no effect"
