"""How much the metrics tell, as the configuration file says it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from scheduler.api import values
from scheduler.errors import BadInput


class HamiMetrics(StrEnum):
    """Which of the names that HAMi's scheduler has for its metrics are written as well."""

    NONE = "none"
    CURRENT = "current"
    LEGACY = "legacy"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig:
    """How much the metrics tell; these are series by the number of nodes, cards and pods.

    Attributes:
        per_node: what each node has of devices, and what of it is allocated and stranded.
        per_card: what each card has, and what of it is allocated.
        hami: what each card has, and what of it is allocated, under HAMi's names.
        hami_per_pod: what each pod holds on each card, under HAMi's names.
    """

    per_node: bool = True
    per_card: bool = True
    hami: HamiMetrics = HamiMetrics.NONE
    hami_per_pod: bool = True


def read_settings(given: Any) -> MetricsConfig:
    """Read the settings.

    Raises:
        BadInput: a field is unknown or not what is allowed; names it.
    """
    settings = values.read_mapping(given, "metrics")
    known = {values.write_camel(f.name): f.name for f in fields(MetricsConfig)}
    values.refuse_unknown(settings, "metrics", tuple(known))
    changes: dict[str, Any] = {
        known[key]: values.read_flag(one, f"metrics.{key}")
        for key, one in settings.items()
        if key != "hami"
    }
    if "hami" in settings:
        named = settings["hami"]
        if named not in [*HamiMetrics]:
            allowed = ", ".join(HamiMetrics)
            raise BadInput("metrics.hami", f"{named!r} is not one of {allowed}")
        changes["hami"] = HamiMetrics(named)
    return MetricsConfig(**changes)
