"""Devices of ResourceSlices and ResourceClaims, as they were counted last.

Administrators make classes, and drivers are few. A pool is usually a node's: pools have no series of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import Metric

from scheduler.kube.report.metrics import catalogue
from scheduler.measure import claimed
from scheduler.measure.claimed import ClaimFigures

Values = tuple[str, ...]
# More classes than any cluster has.
_MOST = 1000


def collect(found: ClaimFigures) -> Iterator[Metric]:
    """Yield how many devices, pools and claims are in each state."""
    yield catalogue.DEVICES.make_metric(_list_samples(found.devices, claimed.STATES))
    yield catalogue.CLASS_DEVICES.make_metric(_list_samples(found.classes, claimed.STATES))
    yield catalogue.POOLS.make_metric(_list_samples(found.pools, claimed.POOLS))
    yield catalogue.CLAIMS.make_metric(
        ((state,), n) for state, n in zip(claimed.CLAIMS, found.claims, strict=True)
    )


def _list_samples(
    counts: Mapping[str, Sequence[int]], states: Sequence[str]
) -> Iterator[tuple[Values, float]]:
    for name, figures in sorted(counts.items())[:_MOST]:
        yield from (((name, state), n) for state, n in zip(states, figures, strict=True))
