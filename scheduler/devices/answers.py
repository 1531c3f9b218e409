"""What shells write on pods and read on pods and nodes for drivers of cards, which are given by their names."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.api import wire
from scheduler.api.cards import Grants
from scheduler.devices.contract import CardDriver, PodMarks, Texts

Drivers = Mapping[str, CardDriver]


def write_answers(drivers: Drivers, node: str, grants: Grants, now: int) -> PodMarks:
    """Write down a decision as marks for the pod; ``now`` is in seconds since 1970."""
    marks = PodMarks({}, {})
    for grant in grants:
        answer = drivers[grant.driver].write_answer(node, grant.slots, now, grant.of_pod)
        marks.annotations.update(answer.annotations)
        marks.labels.update(answer.labels)
    return marks


def are_answered(drivers: Drivers, annotations: Texts, grants: Grants) -> bool:
    """Whether the annotations are those of a pod that was bound with these devices."""
    return all(drivers[one.driver].is_answered(annotations, one.slots) for one in grants)


def is_served(drivers: Drivers, annotations: Texts) -> bool:
    """Whether a plugin has served, or has failed to serve, the pod of these annotations."""
    return any(cards.is_served(annotations) for cards in drivers.values())


def is_locked(drivers: Drivers, annotations: Texts) -> bool:
    """Whether a plugin of the node of these annotations is busy with a pod."""
    return any(cards.is_locked(annotations) for cards in drivers.values())


def sign_node(drivers: Drivers, node: wire.Node, names: tuple[str, ...]) -> wire.Node:
    """Return the node with the marks of the plugins of these drivers."""
    for name in names:
        node = drivers[name].sign_node(node)
    return node
