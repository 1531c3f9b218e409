"""What was learnt of the demand and no pod tells, handed on with the lease.

A new leader finds the shapes of pods again in the pods that are there, but not how fast pods leave. Without
that it would score as in a cluster that only fills up, until some tens of pods have come.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scheduler.api import names
from scheduler.api.door.events import DemandRecalled
from scheduler.engine.engine import Engine


class DemandNotes:
    """Departures per arrival, a mean over so many arrivals, as an annotation of the lease: 0.532/1000."""

    def __init__(self, engine: Engine, put: Callable[[DemandRecalled], None]) -> None:
        """``engine`` is only read; ``put`` takes for it what another leader has left."""
        self._engine, self._put = engine, put

    def write(self) -> dict[str, str]:
        """The annotation for whoever leads next."""
        demand = self._engine.cluster.demand
        return {names.DEPARTURES: f"{demand.departures:.3f}/{demand.horizon}"}

    def read(self, annotations: dict[str, str]) -> None:
        """Take over what another leader has left; anything but two numbers of 0 or more is passed over."""
        mean, _, over = annotations.get(names.DEPARTURES, "").partition("/")
        try:
            departures, horizon = float(mean), int(over)
        except ValueError:
            return
        if math.isfinite(departures) and departures >= 0 and horizon >= 0:
            self._put(DemandRecalled(departures, horizon))
