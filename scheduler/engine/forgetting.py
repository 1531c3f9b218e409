"""Drops what was computed for a template, some time after the last pod of the template is gone."""

from __future__ import annotations

from scheduler.api.pods.templates import PodTemplate
from scheduler.cycle.asking import Answers
from scheduler.state.cluster import Cluster

_NEVER = float("inf")


class Forgetting:
    """Looks now and then which templates have no pod any more; those of the look before may come back."""

    def __init__(self, cluster: Cluster, cycle: Answers, every: float) -> None:
        self._cluster, self._cycle, self._every = cluster, cycle, every
        # The templates of the pods that were there at the look before, by identity, while they may be forgotten.
        self._before: set[int] = set()
        self._looked_at = 0.0
        # How many more looks there are to be, unless pods change.
        self._looks_left = 0

    def pod_changed(self) -> None:
        """A pod came, changed or is gone."""
        self._looks_left = 2

    def due(self) -> float:
        """When to look next."""
        return self._looked_at + self._every if self._looks_left else _NEVER

    def work(self, now: float) -> None:
        """Look, if it is time."""
        if now < self.due():
            return
        self._looked_at = now
        self._looks_left -= 1
        there = self._cluster.template_ids()
        kept = there | self._before
        self._before = there

        def is_there(template: PodTemplate) -> bool:
            return id(template) in kept

        self._cycle.keys.views.forget(is_there)
        self._cycle.boards.forget(is_there)
        self._cycle.attempts.forget(is_there)
