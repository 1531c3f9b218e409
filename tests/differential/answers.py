"""What either side answers to a pod, in one form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Json = dict[str, Any]
_NOTHING: Mapping[str, Json] = {}


class Answer(NamedTuple):
    """What a scheduler says of one pod.

    Attributes:
        node: where it goes, None when it stays pending.
        feasible: the nodes that it may go to.
        scores: by node and plugin the weighted score, without zeros; kube-scheduler scores nothing where
            only one node will do.
        message: of a pod that stays pending, why.
        nominated: the node that is being made free for it.
        victims: the pods that are sent away for that, by ``namespace/name``.
        allocations: of a pod with a node, what its claims got for it, by the claim's name.
        is_binding: kube-scheduler gave it the node and now waits until its claims have their volumes.
        is_gated: kube-scheduler does not look for a node, and so says nothing of nodes.
    """

    node: str | None
    feasible: frozenset[str]
    scores: Mapping[str, Mapping[str, int]]
    message: str
    nominated: str | None = None
    victims: frozenset[str] = frozenset()
    allocations: Mapping[str, Json] = _NOTHING
    is_binding: bool = False
    is_gated: bool = False

    def total(self, node: str) -> int:
        """The sum of a node's scores."""
        return sum(self.scores.get(node, {}).values())
