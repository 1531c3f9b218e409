"""Figures of the webhook: what it has answered, and how long that took."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from prometheus_client import Metric

from scheduler.kube.report.metrics import catalogue
from scheduler.kube.report.metrics.families import CountedFamily, Observed


class Outcome(StrEnum):
    """What became of a review."""

    ALLOWED = "allowed"
    CHANGED = "changed"
    REFUSED = "refused"
    # It was none, or had no answer.
    FAILED = "failed"


class ReviewCounts:
    """Counts of one replica. Another thread counts than the one that reads, so all label values are there from the start."""

    def __init__(self) -> None:
        first = [(path, result) for path in catalogue.WEBHOOKS for result in Outcome]
        self._n = CountedFamily(catalogue.REVIEWS, first)
        self._seconds = Observed(catalogue.REVIEW_SECONDS, ((path,) for path in catalogue.WEBHOOKS))

    def count(self, webhook: str, result: Outcome, seconds: float) -> None:
        """Count a review; ``webhook``: one of ``WEBHOOKS``."""
        self._n.add(webhook, result)
        self._seconds.add(seconds, webhook)

    def collect(self) -> Iterator[Metric]:
        """Yield all of them, as they are now."""
        yield self._n.collect()
        yield self._seconds.collect()
