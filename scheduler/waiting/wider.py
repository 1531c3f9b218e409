"""Hints for entities of several pods: what could help them beside what could help one of their pods.

That is room for several members on one node, and nodes that join a domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from scheduler.plugins.contract import Change, Hint
from scheduler.state.entities import Entity

# The most different sums of amounts that are listed. Beyond these a change is missed, and the entity is tried when it
# has waited for long.
_AMOUNTS_MAX = 256


def widen_hints(entity: Entity, hints: Iterable[Hint]) -> list[Hint]:
    """List what may help an entity, beside the hints for the member that fitted nowhere."""
    resources = dict.fromkeys(resource for hint in hints for resource, _ in hint.amounts)
    wider = [Hint(amounts=_list_amounts(entity, resource)) for resource in resources]
    labels = {label for team in entity.team.list_all() if team.where for label in team.where.labels}
    wider += [Hint(here=((Change.NODE_LABELS, label),)) for label in sorted(labels)]
    return wider


def _list_amounts(entity: Entity, resource: str) -> tuple[tuple[str, int], ...]:
    """List the sums that any members may ask together of a resource."""
    templates = {id(pod.template): pod.template for pod in entity.members}
    asked = {key: dict(one.requests.amounts).get(resource, 0) for key, one in templates.items()}
    sums = {0: None}
    for amount, n in Counter(asked[id(pod.template)] for pod in entity.members).items():
        before = list(sums)
        for times in range(1, n + 1) if amount else ():
            if len(sums) > _AMOUNTS_MAX:
                break
            sums |= dict.fromkeys(one + times * amount for one in before)
    return tuple((resource, amount) for amount in sums if amount)
