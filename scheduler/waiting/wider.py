"""What may help several pods beyond what helps one of them: room for more of them on one node, and nodes of a domain."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.plugins.contract import Change, Hint
from scheduler.state.entities import Entity

# Of entities with more different amounts than this the others are tried when they have waited for long.
_AMOUNTS_MAX = 256


def widen_hints(entity: Entity, hints: Iterable[Hint]) -> list[Hint]:
    """What may help an entity, beside what may help the member that these hints are of."""
    resources = dict.fromkeys(resource for hint in hints for resource, _ in hint.amounts)
    wider = [Hint(amounts=_list_amounts(entity, resource)) for resource in resources]
    if entity.domain is not None:
        # A node that gets the label is one on which nothing that keeps the pod off has been looked at.
        wider.append(Hint(here=((Change.NODE_LABELS, tuple(entity.domain)),)))
    return wider


def _list_amounts(entity: Entity, resource: str) -> tuple[tuple[str, int], ...]:
    """What any of the members ask together."""
    sums = {0: None}
    for pod in entity.members:
        asked = dict(pod.template.requests.amounts).get(resource, 0)
        if asked and len(sums) <= _AMOUNTS_MAX:
            sums |= dict.fromkeys(amount + asked for amount in list(sums))
    return tuple((resource, amount) for amount in sums if amount)
