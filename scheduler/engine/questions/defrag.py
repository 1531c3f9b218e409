"""The question which running pods to move."""

from __future__ import annotations

from scheduler.defrag.contract import Plan, Terms
from scheduler.engine.questions.contract import Foresight


class PlanOfMoves(Foresight[Plan], frozen=True):
    """Which pods to move so that cards and nodes become whole, or a waiting pod finds room.

    Pods that are due are not tried first: those alone wait that were tried in vain.
    """

    terms: Terms
