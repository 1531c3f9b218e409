"""The price list: the packaged list, then a user's file, then the flags; each overrides those before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from scheduler.documents import reading
from scheduler.errors import BadInput, explain_unreadable, join_lines

# The order of all arrays of the audit: cpu, memory, compute of GPUs, memory of GPUs.
CPU_CORE, MEMORY_GIB, GPU, GPU_MEMORY_GIB = "cpu-core", "memory-gib", "gpu", "gpu-memory-gib"
UNITS = (CPU_CORE, MEMORY_GIB, GPU, GPU_MEMORY_GIB)
PRICE_MAX = 1e9
FLAG = "--price"
_UNKNOWN_GIB = "gpu-of-unknown-memory-gib"
_UNIT_SOURCE, _LABELS, _MODELS = "unit-source", "model-labels", "gpu-models"
_MATCH_MAX = 200


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """The price of the GPUs of a model.

    Attributes:
        match: a text in the name of the model, see ``prices.yaml``.
        price: the price of a whole GPU, in dollars a month.
        source: where the price is from.
    """

    match: str
    price: float
    source: str

    def matches(self, model: str) -> bool:
        """Whether the price is for a model, as a plugin or a label writes it."""
        words = (re.escape(word) for word in simplify(self.match).split("*"))
        return (
            re.search(rf"(?<![a-z0-9]){'.*'.join(words)}(?![a-z0-9])", simplify(model)) is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBook:
    """All prices, per month.

    Attributes:
        units: the price of each unit, by the names in ``UNITS``.
        sources: where the price of a unit is from, by the same names.
        unknown_gib: the assumed memory of a GPU if neither its model nor its memory is known.
        labels: labels of nodes that name the model of their GPUs.
        models: the models with a known price; the first that matches counts.
    """

    units: Mapping[str, float]
    sources: Mapping[str, str]
    unknown_gib: float
    labels: tuple[str, ...]
    models: tuple[ModelPrice, ...]

    def find_model(self, model: str) -> ModelPrice | None:
        """Find the price of a model; None when the list does not have it."""
        return next((one for one in self.models if one.matches(model)), None) if model else None

    def list_unused(self, models: Iterable[str]) -> list[str]:
        """List prices in flags that match none of ``models``: most likely these are typing errors."""
        there = list(models)
        return [
            one.match
            for one in self.models
            if one.source == FLAG and not any(one.matches(model) for model in there)
        ]

    def find_memory_price(self, gib: float) -> float:
        """Find the price of a whole GPU by its memory; 0 for unknown."""
        return self.units[GPU] + self.units[GPU_MEMORY_GIB] * (gib or self.unknown_gib)


def read_packaged() -> PriceBook:
    """Read the list that comes with Evenkeel."""
    file = resources.files("scheduler.audit.prices") / "prices.yaml"
    empty = PriceBook(units={}, sources={}, unknown_gib=0.0, labels=(), models=())
    return _override(empty, reading.read_first(file.read_text(encoding="utf-8")), file.name)


def read_flags(file: Path | None, flags: Sequence[str]) -> PriceBook:
    """Read the packaged list, then override it by the file, and then by each ``name=price``.

    A name that is no unit is the name of a GPU model.

    Raises:
        BadInput: a name is unknown, or a price is no number of 0 or more; the error names the file or flag.
    """
    book = read_packaged()
    if file is not None:
        book = _override(book, _read_file(file), f"--prices {file}")
    for flag in flags:
        name, equals, text = flag.rpartition("=")
        if not equals or not name:
            raise BadInput("--price", f'"{flag}" is not name=price, e.g. {CPU_CORE}=30')
        price = _read_price(f"--price {name}", _read_number(text))
        if name in UNITS:
            book = _set_unit(book, name, price, FLAG)
        else:
            match = _read_match(f"--price {name}", name)
            book = replace(book, models=(ModelPrice(match, price, FLAG), *book.models))
    return book


def _read_file(path: Path) -> Mapping[str, Any]:
    try:
        raw = reading.read_first(reading.decode(path.read_bytes()))
    except (OSError, UnicodeError) as error:
        raise BadInput(f"--prices {path}", explain_unreadable(error)) from error
    except ValueError as error:
        raise BadInput(f"--prices {path}", join_lines(error)) from error
    if not isinstance(raw, Mapping):
        raise BadInput(f"--prices {path}", f"must hold a mapping of {', '.join(_KEYS)}")
    return raw


def _override(book: PriceBook, raw: Mapping[str, Any], where: str) -> PriceBook:
    """Override prices by those in a file."""
    source = _read_text(f"{where}: {_UNIT_SOURCE}", raw.get(_UNIT_SOURCE, where))
    for key, value in raw.items():
        field = f"{where}: {key}"
        if key in UNITS:
            book = _set_unit(book, key, _read_price(field, value), source)
        elif key == _UNIT_SOURCE:
            continue
        elif key == _UNKNOWN_GIB:
            book = replace(book, unknown_gib=_read_price(field, value))
        elif key == _LABELS:
            if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                raise BadInput(field, "must be a list of labels")
            book = replace(book, labels=tuple(value))
        elif key == _MODELS:
            if not isinstance(value, list):
                raise BadInput(field, "must be a list of match, price and source")
            models = (_read_model(f"{field}[{i}]", one, where) for i, one in enumerate(value))
            book = replace(book, models=(*models, *book.models))
        else:
            raise BadInput(field, f"is not known; allowed are {', '.join(_KEYS)}")
    return book


_KEYS = (*UNITS, _UNIT_SOURCE, _UNKNOWN_GIB, _LABELS, _MODELS)


def _set_unit(book: PriceBook, name: str, price: float, source: str) -> PriceBook:
    units, sources = {**book.units, name: price}, {**book.sources, name: source}
    return replace(book, units=units, sources=sources)


def _read_model(field: str, raw: Any, where: str) -> ModelPrice:
    if not isinstance(raw, Mapping) or not {"match", "price"} <= raw.keys() <= {
        "match", "price", "source"
    }:  # fmt: skip
        raise BadInput(field, "must have match and price; the only other key allowed is source")
    source = _read_text(f"{field}.source", raw.get("source", where))
    match = _read_match(f"{field}.match", raw["match"])
    return ModelPrice(match, _read_price(f"{field}.price", raw["price"]), source)


def _read_text(field: str, given: Any) -> str:
    if not isinstance(given, str):
        raise BadInput(field, "must be text")
    return given


def _read_match(field: str, given: Any) -> str:
    if not isinstance(given, str) or len(given) > _MATCH_MAX or not re.search("[A-Za-z0-9]", given):
        raise BadInput(
            field,
            f"{given!r} is neither a unit ({', '.join(UNITS)}) nor part of the name of a GPU model, "
            "such as A100*80GB",
        )
    return given


def _read_number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _read_price(field: str, given: Any) -> float:
    # This refuses .inf and .nan, too: no comparison is true for nan.
    if (
        not isinstance(given, (int, float))
        or isinstance(given, bool)
        or not 0 <= given <= PRICE_MAX
    ):
        raise BadInput(field, f"{given!r} is not a price per month within 0..{PRICE_MAX:.0f}")
    return float(given)


def simplify(text: str) -> str:
    """Simplify a name: no capitals, and one sign between words."""
    return re.sub(r"[\s_-]+", "-", text.strip().lower())
