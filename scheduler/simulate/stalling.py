"""Notices that a simulation goes on without end: it decides the same again and again, or nothing."""

from __future__ import annotations

from collections import Counter

from scheduler.api.door.decisions import Outcome
from scheduler.api.door.workload_decisions import Admit

# So often a pod or group is decided about in vain, while nothing else is decided, before the simulation ends.
TRIES_MAX = 200
# So many rounds may decide nothing at all.
_EMPTY_ROUNDS_MAX = 20_000
WARNING = "The simulation was ended: it decided the same again and again. This is an error in Evenkeel. Pods that wait may fit."


class Stalling:
    """Counts what is decided in vain between two decisions that change anything."""

    def __init__(self) -> None:
        self._tries: Counter[str] = Counter()
        self._n_empty = 0
        self.is_endless = False

    def note(self, outcome: Outcome) -> None:
        """Note what a round has decided."""
        if outcome.binds or outcome.evicts or any(isinstance(one, Admit) for one in outcome.quotas):
            self._tries.clear()
            self._n_empty = 0
            return
        tried = [plan.entity for plan in outcome.plans] + [one.key for one in outcome.quotas]
        self._n_empty = 0 if tried else self._n_empty + 1
        self._tries.update(tried)
        most = max((self._tries[one] for one in tried), default=0)
        self.is_endless = most > TRIES_MAX or self._n_empty > _EMPTY_ROUNDS_MAX
