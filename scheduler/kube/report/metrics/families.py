"""Metrics and their samples, in the client library's terms: no ``_created`` series, and many observations at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from prometheus_client import Metric
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

# Values of the labels, in their order.
Values = tuple[str, ...]
# Stands for whatever is beyond the most label values.
OTHER = "other"


class FamilyKind(StrEnum):
    """What a metric is, by the words of the exposition format."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric.

    Attributes:
        name: without ``_total``, ``_bucket`` and the like.
        help: what it means, with its unit.
        labels: names of its labels.
        buckets: upper bounds, of a histogram; the last, infinity, goes without saying.
    """

    name: str
    kind: FamilyKind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def full_name(self) -> str:
        """As it stands in queries; a histogram's with ``_bucket``, ``_sum`` or ``_count`` behind it."""
        return f"{self.name}_total" if self.kind == FamilyKind.COUNTER else self.name

    def make_metric(self, samples: Iterable[tuple[Values, float]]) -> Metric:
        """A counter or gauge with these samples, by label values."""
        made = CounterMetricFamily if self.kind == FamilyKind.COUNTER else GaugeMetricFamily
        metric = made(self.name, self.help, labels=self.labels)
        for values, figure in samples:
            metric.add_metric(values, figure)
        return metric

    def make_single(self, figure: float) -> Metric:
        """A counter or gauge without labels."""
        return self.make_metric([((), figure)])


class CountedFamily:
    """A counter that goes up as things happen.

    Args:
        family: which.
        first: label values that are there from the start, with 0, so that the first event shows as a rise.
        most: no more label values than this, the rest counts as ``other``.
    """

    def __init__(self, family: Family, first: Iterable[Values] = (), most: int = 1000) -> None:
        self._family, self._most = family, most
        self._counts: dict[Values, float] = dict.fromkeys(first, 0)

    def add(self, *values: str, n: float = 1) -> None:
        """So many more."""
        if values not in self._counts and len(self._counts) >= self._most:
            values = (OTHER,) * len(values)
        self._counts[values] = self._counts.get(values, 0) + n

    def collect(self) -> Metric:
        """As it is now."""
        return self._family.make_metric(self._counts.items())


class Observed:
    """A histogram that many like observations can be added to at once. Arguments as of ``CountedFamily``."""

    def __init__(self, family: Family, first: Iterable[Values] = ()) -> None:
        self._family = family
        self._bounds = [*map(str, map(float, family.buckets)), "+Inf"]
        # By label values: how many in each bucket alone, and their sum.
        self._seen: dict[Values, tuple[list[int], list[float]]] = {}
        for values in first:
            self._get_series(values)

    def _get_series(self, values: Values) -> tuple[list[int], list[float]]:
        return self._seen.setdefault(values, ([0] * len(self._bounds), [0.0]))

    def add(self, observed: float, *values: str, n: int = 1) -> None:
        """So many observations of the same figure."""
        counts, total = self._get_series(values)
        counts[bisect_left(self._family.buckets, observed)] += n
        total[0] += n * observed

    def collect(self) -> Metric:
        """As it is now."""
        family = self._family
        metric = HistogramMetricFamily(family.name, family.help, labels=family.labels)
        for values, (counts, total) in self._seen.items():
            buckets = list(zip(self._bounds, accumulate(counts), strict=True))
            metric.add_metric(values, buckets, total[0])
        return metric
