"""What is learnt of the demand and stands in no pod, handed on with the lease.

The shapes of pods are found again in the pods that are there; how fast pods leave is not. Without it a new
leader would score for a cluster that only fills up until a thousand pods have come.
"""

from __future__ import annotations

import math

from scheduler.api import names
from scheduler.state.demand import Demand


class DemandNotes:
    """Departures per arrival as an annotation of the lease."""

    def __init__(self, demand: Demand) -> None:
        self._demand = demand

    def write(self) -> dict[str, str]:
        """The annotation for whoever leads next."""
        return {names.DEPARTURES: f"{self._demand.departures:.3f}"}

    def read(self, annotations: dict[str, str]) -> None:
        """Take over what another leader has left; anything but a number of 0 or more is passed over."""
        try:
            departures = float(annotations.get(names.DEPARTURES, ""))
        except ValueError:
            return
        if math.isfinite(departures) and departures >= 0:
            self._demand.recall(departures)
