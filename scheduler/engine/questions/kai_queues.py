"""Questions about the pods and groups in KAI's queues. Amounts are milli-CPU, bytes and millionths of cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scheduler.api.queues.kai import Vector
from scheduler.api.queues.kai_usage import UsageRecord
from scheduler.engine.questions.contract import Fact, Question


class InKaiQueue(NamedTuple):
    """A pod or a group in one of KAI's queues, as far as it holds something there, or as far as it waits.

    Attributes:
        kind: the kind of the object that stands for the group; ``Pod`` for a single pod.
        queue: the queue that it names; there may be none of this name.
        is_waiting: whether these are its pods that wait, or those that hold something.
        n_pods: so many pods these are.
        amounts: what they hold, or what the next turn of those that wait wants.
        position: of those that wait: the place in the order of the queue, from 0; else -1.
        reason: why it may not be tried, in one word, empty if it may; ``message`` says it in full.
        pods: of a group the names of those of its pods that wait, or that hold something; empty for a single pod.
    """

    namespace: str
    name: str
    kind: str
    queue: str
    priority: int
    is_preemptible: bool
    created: str
    is_waiting: bool
    n_pods: int
    amounts: Vector
    position: int = -1
    reason: str = ""
    message: str = ""
    pods: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The namespace and the name."""
        return f"{self.namespace}/{self.name}"


class AllInKaiQueues(Question[Sequence[InKaiQueue]], frozen=True):
    """All that holds something in KAI's queues, by queue and age, then all that waits, by queue and place there."""


class KaiGiver(NamedTuple):
    """Pods that may go for one that waits.

    Attributes:
        pods: their namespaces and names; they go together.
        queue: their queue.
        is_reclaimed: whether they go because their queue holds more than is its own, else because of their priority.
    """

    pods: tuple[str, ...]
    queue: str
    priority: int
    is_reclaimed: bool


class KaiOutlook(NamedTuple):
    """Who may go for a pod or a group that waits, in the order in which they would.

    Attributes:
        may_reclaim: whether its queue stays within its fair share with it, so that other queues may lose pods to it.
        protected_until: when more may go, which have not run for long enough; None: there are none.
    """

    may_reclaim: bool
    givers: tuple[KaiGiver, ...]
    protected_until: float | None


class WhoGivesWay(Question[KaiOutlook | None], frozen=True):
    """Who may go for a pod or group by the rules of KAI's queues; None if it does not wait, or its queue starts no pods.

    Attributes:
        key: its namespace and name.
        most: so many givers at most.
        by_common: as in ``KaiSettings``.
    """

    key: str
    most: int
    by_common: bool


class UsageOfKaiQueues(Fact[Sequence[tuple[str, UsageRecord]]], frozen=True):
    """What each of KAI's queues has used over time, by name, as of the last decision; nothing if that does not count."""
