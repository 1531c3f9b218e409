"""The part ``devices`` of the audit: devices of ResourceSlices, those that are stranded, and claims that nobody has reserved.

Devices have money only where the list of prices has a model by which a driver calls them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from scheduler.audit.prices.book import ModelPrice, PriceBook
from scheduler.engine.engine import Engine
from scheduler.engine.questions.auditing import UnusedClaimDevices
from scheduler.telling.unused import Unit

Json = dict[str, Any]
_ROUND = 6
# The ids of the attributes by which drivers name models, the best first; and the one that parts of GPUs have.
_MODEL_IDS = ("productName", "product", "modelName", "model")
_PARENT_ID = "parentUUID"
_NAMES = 20


class _Priced(NamedTuple):
    """A unit with the name of its model, empty for none, and its price, None for none."""

    unit: Unit
    model: str
    price: ModelPrice | None

    @property
    def free(self) -> float:
        """How much of it is free, and not tainted."""
        return 0.0 if self.unit.is_tainted else 1.0 - self.unit.used

    def cost(self, part: float) -> float | None:
        """Return what a part of it costs a month; None where that is not known."""
        return None if self.price is None else round(self.price.price * part, _ROUND)


def audit_devices(engine: Engine, prices: PriceBook, unlisted: Sequence[str]) -> Json:
    """Audit the devices of claims; ``unlisted`` are kinds that could not be read, and why."""
    found = engine.ask(UnusedClaimDevices())
    units = [_price(one, prices) for one in found.units]
    stranded = [_describe_stranded(one) for one in units if one.unit.why]
    stranded.sort(key=lambda one: (-(one["money"] or 0.0), -one["free"], one["pool"], one["device"]))  # fmt: skip
    unreserved: list[Json] = [
        {
            "claim": one.claim,
            "devices": round(sum(part for _, part in one.parts), _ROUND),
            "money": _sum_known(units[i].cost(part) for i, part in one.parts),
        }
        for one in found.unreserved
    ]
    return {
        "usual": [one._asdict() for one in found.usual],
        "models": _sum_models(units),
        "stranded": stranded,
        "unreserved": unreserved,
        "money": {
            "stranded": _sum_known(one["money"] for one in stranded) or 0.0,
            "unreserved": _sum_known(one["money"] for one in unreserved) or 0.0,
        },
        "unlisted": list(unlisted),
    }


def _price(unit: Unit, prices: PriceBook) -> _Priced:
    by_id = {name.rpartition("/")[2]: text for name, text in reversed(unit.words)}
    model = next((by_id[one] for one in _MODEL_IDS if one in by_id), "")
    if _PARENT_ID in by_id and not unit.is_cut:
        # A part that somebody else has cut: the driver does not say how much of the GPU it is.
        return _Priced(unit, model, None)
    texts = [*filter(None, (model,)), *(text for _, text in unit.words)]
    found = ((text, prices.find_model(text)) for text in texts)
    called, price = next(((text, one) for text, one in found if one), (model, None))
    return _Priced(unit, called, price)


def _describe_stranded(one: _Priced) -> Json:
    unit = one.unit
    return {
        "nodes": list(unit.nodes[:_NAMES]),
        "driver": unit.driver,
        "pool": unit.pool,
        "device": unit.name,
        "model": one.model or None,
        "free": round(one.free, _ROUND),
        "why": unit.why,
        "money": one.cost(one.free),
    }


def _sum_models(units: Sequence[_Priced]) -> list[Json]:
    """Sum up units by driver and model, the most money first."""
    found: dict[tuple[str, str, ModelPrice | None], Json] = {}
    for one in units:
        row = found.setdefault(
            (one.unit.driver, one.model, one.price),
            {
                "driver": one.unit.driver,
                "model": one.model or None,
                "price": one.price.price if one.price else None,
                "source": one.price.source if one.price else None,
            }
            | dict.fromkeys(("devices", "used", "free", "stranded", "tainted"), 0.0),
        )
        row["devices"] += 1
        row["used"] += one.unit.used
        row["free"] += one.free
        row["stranded"] += one.free if one.unit.why else 0.0
        row["tainted"] += 1.0 - one.unit.used if one.unit.is_tainted else 0.0
    rows = [
        {key: round(value, _ROUND) if isinstance(value, float) else value for key, value in row.items()}
        for row in found.values()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-(row["price"] or 0.0) * row["devices"], row["driver"], row["model"] or ""))  # fmt: skip


def _sum_known(money: Iterator[float | None]) -> float | None:
    known = [one for one in money if one is not None]
    return round(sum(known), _ROUND) if known else None
