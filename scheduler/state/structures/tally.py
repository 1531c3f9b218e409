"""A slowly forgetting histogram of arrivals by shape, and the share of departures."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

S = TypeVar("S", bound=Hashable)

# After so many more arrivals an arrival counts half.
HALF_LIFE = 20_000
# Departures are averaged over about so many arrivals; the average begins as if so many pods had come and none left.
HORIZON, _PRIOR = 1000, 20
# A cluster has hundreds of shapes; if every pod asks a figure of its own, the tally must not grow for ever.
_SHAPES_MAX = 4096
_UNIT_MAX = 1e100


class Tally(Generic[S]):
    """Arrivals by shape, and departures of all shapes together. It has one writer.

    Attributes:
        seen: the number of arrivals so far.
        departures: departures per arrival, over about ``horizon`` arrivals.
        horizon: a number of arrivals; it grows with the arrivals up to 1,000.
    """

    def __init__(self) -> None:
        self.seen = 0
        self.departures = 0.0
        self.horizon = _PRIOR
        self._left = self._watched = 0
        self._counts: dict[S, float] = {}
        # Later arrivals count more and more; this has the same effect as shrinking all earlier counts, and is cheaper.
        self._unit = 1.0

    def note_arrival(self, shape: S, *, listed: bool = False) -> None:
        """Note an arrival; ``listed``: it came before the watch began."""
        if shape not in self._counts and len(self._counts) >= _SHAPES_MAX:
            self._drop_rarest()
        self.seen += 1
        self._age()
        if not listed:
            # At first the mean is over the few that came: a small cluster is full after so few.
            mean = self.departures + (self._left - self.departures) / self.horizon
            self.horizon = min(HORIZON, self.horizon + 1)
            # A thousand pods that are deleted at once must not count as the rate of all later arrivals.
            self.departures = min(1.0, mean)
            self._left = 0
            self._watched += 1
        self._counts[shape] = self._counts.get(shape, 0.0) + self._unit

    def note_departure(self) -> None:
        """Note a departure."""
        self._left += 1

    def recall(self, departures: float, horizon: int) -> None:
        """Take over what another tally learnt of departures over so many arrivals, until enough were watched here."""
        if self._watched < HORIZON:
            self.departures = min(1.0, departures)
            self.horizon = max(_PRIOR, min(HORIZON, horizon))

    def list_counts(self) -> dict[S, float]:
        """Return the number of arrivals of each shape; the latest arrival counts 1."""
        return {shape: count / self._unit for shape, count in self._counts.items()}

    def list_known(self) -> dict[str, Any]:
        """Return the whole tally as plain values for ``restore``; shapes stay as they are."""
        return {
            "seen": self.seen,
            "departures": self.departures,
            "left": self._left,
            "watched": self._watched,
            "horizon": self.horizon,
            "unit": self._unit,
            "counts": list(self._counts.items()),
        }

    def restore(self, known: dict[str, Any], shape: Callable[[Any], S]) -> None:
        """Replace the tally by one that ``list_known`` returned; ``shape`` makes a shape of its plain value."""
        self.seen, self.departures = known["seen"], known["departures"]
        self._left, self._watched = known["left"], known["watched"]
        self.horizon, self._unit = known["horizon"], known["unit"]
        self._counts = {shape(kept): count for kept, count in known["counts"]}

    def _age(self) -> None:
        if self._unit > _UNIT_MAX:
            self._counts = self.list_counts()
            self._unit = 1.0
        self._unit *= 2.0 ** (1 / HALF_LIFE)

    def _drop_rarest(self) -> None:
        kept = sorted(self._counts.items(), key=lambda item: -item[1])[: _SHAPES_MAX // 2]
        self._counts = dict(kept)
