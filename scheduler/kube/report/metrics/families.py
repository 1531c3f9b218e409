"""Metrics and their samples for the client library: no ``_created`` series, and many observations at once."""

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
# Stands for all label values beyond the most.
OTHER = "other"


class FamilyKind(StrEnum):
    """Kinds of metrics, in the words of the exposition format."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric.

    Attributes:
        name: the name without ``_total``, ``_bucket`` and the like.
        help: the meaning, with the unit.
        labels: the names of the labels.
        buckets: the upper bounds of a histogram, without the last one, infinity.
    """

    name: str
    kind: FamilyKind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def full_name(self) -> str:
        """Name in queries; for a histogram, ``_bucket``, ``_sum`` or ``_count`` follows."""
        return f"{self.name}_total" if self.kind == FamilyKind.COUNTER else self.name

    def make_metric(self, samples: Iterable[tuple[Values, float]]) -> Metric:
        """Make a counter or gauge with samples, by label values."""
        family = CounterMetricFamily if self.kind == FamilyKind.COUNTER else GaugeMetricFamily
        metric = family(self.name, self.help, labels=self.labels)
        for values, figure in samples:
            metric.add_metric(values, figure)
        return metric

    def make_single(self, figure: float) -> Metric:
        """Make a counter or gauge without labels."""
        return self.make_metric([((), figure)])


class CountedFamily:
    """A counter that goes up as things happen.

    Args:
        family: the metric.
        first: label values that have 0 from the start, so that the first event shows as a rise.
        most: the most label values; further ones count as ``other``.
    """

    def __init__(self, family: Family, first: Iterable[Values] = (), most: int = 1000) -> None:
        self._family, self._most = family, most
        self._counts: dict[Values, float] = dict.fromkeys(first, 0)

    def add(self, *values: str, n: float = 1) -> None:
        """Count ``n`` more."""
        if values not in self._counts and len(self._counts) >= self._most:
            values = (OTHER,) * len(values)
        self._counts[values] = self._counts.get(values, 0) + n

    def collect(self) -> Metric:
        """Return the metric as it is now."""
        return self._family.make_metric(self._counts.items())


class Observed:
    """A histogram to which many equal observations can be added at once; arguments as of ``CountedFamily``."""

    def __init__(self, family: Family, first: Iterable[Values] = ()) -> None:
        self._family = family
        self._bounds = [*map(str, map(float, family.buckets)), "+Inf"]
        # By label values: how many observations are in each bucket alone, and their sum.
        self._seen: dict[Values, tuple[list[int], list[float]]] = {}
        for values in first:
            self._get_series(values)

    def _get_series(self, values: Values) -> tuple[list[int], list[float]]:
        return self._seen.setdefault(values, ([0] * len(self._bounds), [0.0]))

    def add(self, observed: float, *values: str, n: int = 1) -> None:
        """Add ``n`` observations of the same figure."""
        counts, total = self._get_series(values)
        counts[bisect_left(self._family.buckets, observed)] += n
        total[0] += n * observed

    def collect(self) -> Metric:
        """Return the metric as it is now."""
        family = self._family
        metric = HistogramMetricFamily(family.name, family.help, labels=family.labels)
        for values, (counts, total) in self._seen.items():
            buckets = list(zip(self._bounds, accumulate(counts), strict=True))
            metric.add_metric(values, buckets, total[0])
        return metric
