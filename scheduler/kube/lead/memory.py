"""Learnt demand that cannot be read from pods; leaders hand it over with the lease.

A new leader learns the shapes of pods again from the pods that exist, but not how fast pods leave. Without that it would
score as in a cluster that only fills up, until some tens of pods have come.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scheduler.api import names
from scheduler.api.door.events import DemandRecalled
from scheduler.engine.engine import Engine
from scheduler.engine.questions.measures import Departures


class DemandNotes:
    """Departures per arrival, each a mean over so many arrivals, as an annotation of the lease.

    ``0.532/1000,0.910/640`` is for pods with devices, then for pods without. Earlier versions wrote only the first.
    """

    def __init__(
        self,
        engine: Engine,
        put: Callable[[DemandRecalled], None],
        is_deciding: Callable[[], bool],
    ) -> None:
        """``engine`` is only read; ``put`` takes what another leader has left; then ``is_deciding`` becomes true."""
        self._engine, self._put, self._is_deciding = engine, put, is_deciding

    def write_annotations(self) -> dict[str, str]:
        """Return the annotation for the next leader; none before the first decision, so that the lease keeps what it has."""
        if not self._is_deciding():
            return {}
        known = self._engine.ask(Departures())
        means = (
            (known.departures, known.horizon),
            (known.plain_departures, known.plain_horizon),
        )
        return {names.DEPARTURES: ",".join(f"{mean:.3f}/{over}" for mean, over in means)}

    def read_annotations(self, annotations: dict[str, str]) -> None:
        """Take over what another leader has left; anything but one or two such means is ignored."""
        means = [_read_mean(text) for text in annotations.get(names.DEPARTURES, "").split(",")]
        match means:
            case [(departures, horizon)]:
                self._put(DemandRecalled(departures, horizon))
            case [(departures, horizon), (plain, over)]:
                self._put(DemandRecalled(departures, horizon, plain, over))


def _read_mean(text: str) -> tuple[float, int] | None:
    """Return a mean and over how many arrivals it is; None for anything but two numbers of 0 or more."""
    mean, _, over = text.partition("/")
    try:
        departures, horizon = float(mean), int(over)
    except ValueError:
        return None
    return (
        (departures, horizon) if math.isfinite(departures) and departures >= 0 <= horizon else None
    )
