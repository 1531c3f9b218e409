"""What either side answers to a group, in one form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

_PREEMPTION = ", pod group preemption: "


class Condition(NamedTuple):
    """The condition of a PodGroup."""

    status: str
    reason: str
    message: str


class GroupAnswer(NamedTuple):
    """What a scheduler does with a group.

    Attributes:
        nodes: where its pods go.
        messages: why the others wait; a pod that was not tried has none.
        nominated: the nodes that are being made free for them.
        victims: the pods that are sent away for that.
        conditions: of each PodGroup.
    """

    nodes: Mapping[str, str]
    messages: Mapping[str, str]
    nominated: Mapping[str, str]
    victims: frozenset[str]
    conditions: Mapping[str, Condition]

    def split(self) -> tuple[GroupAnswer, frozenset[str]]:
        """Split it into what is said without preemption, and what is said of preemption: each may be of any domain."""
        said = [*self.messages.values(), *(one.message for one in self.conditions.values())]
        rest = frozenset(text.partition(_PREEMPTION)[2] for text in said)
        messages = {name: text.partition(_PREEMPTION)[0] for name, text in self.messages.items()}
        conditions = {
            name: one._replace(message=one.message.partition(_PREEMPTION)[0])
            for name, one in self.conditions.items()
        }
        return self._replace(messages=messages, conditions=conditions), rest

    def differences(self, other: GroupAnswer) -> dict[str, tuple[object, object]]:
        """What is not the same, field by field, as both say it."""
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in self._fields}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
