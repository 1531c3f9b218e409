"""Drops what was computed for a template, some time after the last pod of the template is gone."""

from __future__ import annotations

from scheduler.api.pods.templates import PodTemplate
from scheduler.cycle.asking import Answers
from scheduler.state.cluster import Cluster

_NEVER = float("inf")


class Forgetting:
    """Looks now and then which templates have no pod any more.

    A template that had pods at the look before is kept once more, as its pods may come back.
    """

    def __init__(self, cluster: Cluster, cycle: Answers, every: float) -> None:
        self._cluster, self._cycle, self._every = cluster, cycle, every
        # The identities of the templates that had pods at the look before.
        self._before: set[int] = set()
        self._looked_at = 0.0
        # How many more looks are needed if no pod changes.
        self._looks_left = 0

    def note_change(self) -> None:
        """Note that a pod came, changed or is gone."""
        self._looks_left = 2

    def find_due(self) -> float:
        """Return the time of the next look; infinite when none is needed."""
        return self._looked_at + self._every if self._looks_left else _NEVER

    def work(self, now: float) -> None:
        """Look, if it is time, and forget what was computed for templates without pods."""
        if now < self.find_due():
            return
        self._looked_at = now
        self._looks_left -= 1
        there = self._cluster.list_template_ids()
        kept = there | self._before
        self._before = there

        def is_there(template: PodTemplate) -> bool:
            return id(template) in kept

        self._cycle.keys.views.forget(is_there)
        self._cycle.boards.forget(is_there)
        self._cycle.attempts.forget(is_there)
