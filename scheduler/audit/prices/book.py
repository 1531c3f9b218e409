"""The price list: the packaged list, then a user's file, then the flags; the later overrides the earlier."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from scheduler.documents import reading
from scheduler.errors import BadInput, explain_unreadable, join_lines

# In the order of all arrays of the audit: cpu, memory, compute of GPUs, memory of GPUs.
CPU_CORE, MEMORY_GIB, GPU, GPU_MEMORY_GIB = "cpu-core", "memory-gib", "gpu", "gpu-memory-gib"
UNITS = (CPU_CORE, MEMORY_GIB, GPU, GPU_MEMORY_GIB)
PRICE_MAX = 1e9
FLAG = "--price"
_UNKNOWN_GIB = "gpu-of-unknown-memory-gib"
_UNIT_SOURCE, _LABELS, _MODELS = "unit-source", "model-labels", "gpu-models"
_MATCH_MAX = 200


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """What GPUs of a model cost.

    Attributes:
        match: looked for in the name of a model, see ``prices.yaml``.
        price: of a whole GPU, in dollars a month.
        source: where it is from.
    """

    match: str
    price: float
    source: str

    def matches(self, model: str) -> bool:
        """Whether a model, as a plugin or a label writes it, is meant."""
        words = (re.escape(word) for word in plain(self.match).split("*"))
        return re.search(rf"(?<![a-z0-9]){'.*'.join(words)}(?![a-z0-9])", plain(model)) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBook:
    """All prices, per month.

    Attributes:
        units: by the names in ``UNITS``.
        sources: where the price of a unit is from, by the same names.
        unknown_gib: assumed memory of a GPU of which neither model nor memory is known.
        labels: of nodes, that tell the model of their GPUs.
        models: those whose price is known; the first that matches counts.
    """

    units: Mapping[str, float]
    sources: Mapping[str, str]
    unknown_gib: float
    labels: tuple[str, ...]
    models: tuple[ModelPrice, ...]

    def of_model(self, model: str) -> ModelPrice | None:
        """The price of a model; None when the list does not know it."""
        return next((one for one in self.models if one.matches(model)), None) if model else None

    def unused(self, models: Iterable[str]) -> list[str]:
        """What flags say of models, where none of ``models`` is meant: most likely an error in typing."""
        there = list(models)
        return [
            one.match
            for one in self.models
            if one.source == FLAG and not any(one.matches(model) for model in there)
        ]

    def of_memory(self, gib: float) -> float:
        """The price of a whole GPU by its memory; 0 for unknown."""
        return self.units[GPU] + self.units[GPU_MEMORY_GIB] * (gib or self.unknown_gib)


def packaged() -> PriceBook:
    """The list that comes with Evenkeel."""
    file = resources.files("scheduler.audit.prices") / "prices.yaml"
    empty = PriceBook(units={}, sources={}, unknown_gib=0.0, labels=(), models=())
    return _over(empty, reading.read(file.read_text(encoding="utf-8")), file.name)


def of_flags(file: Path | None, flags: Sequence[str]) -> PriceBook:
    """The packaged list, then the file's prices over it, then each ``name=price`` over these.

    A name that is no unit is that of a GPU model.

    Raises:
        BadInput: an unknown name, or a price that is no number of 0 or more; names the file or flag.
    """
    book = packaged()
    if file is not None:
        book = _over(book, _read(file), f"--prices {file}")
    for flag in flags:
        name, equals, text = flag.rpartition("=")
        if not equals or not name:
            raise BadInput("--price", f'"{flag}" is not name=price, e.g. {CPU_CORE}=30')
        price = _price(f"--price {name}", _number(text))
        if name in UNITS:
            book = _with_unit(book, name, price, FLAG)
        else:
            match = _match(f"--price {name}", name)
            book = replace(book, models=(ModelPrice(match, price, FLAG), *book.models))
    return book


def _read(path: Path) -> Mapping[str, Any]:
    try:
        raw = reading.read(reading.decoded(path.read_bytes()))
    except (OSError, UnicodeError) as error:
        raise BadInput(f"--prices {path}", explain_unreadable(error)) from error
    except ValueError as error:
        raise BadInput(f"--prices {path}", join_lines(error)) from error
    if not isinstance(raw, Mapping):
        raise BadInput(f"--prices {path}", f"must hold a mapping of {', '.join(_KEYS)}")
    return raw


def _over(book: PriceBook, raw: Mapping[str, Any], where: str) -> PriceBook:
    """What a file says over what is known already."""
    source = _text(f"{where}: {_UNIT_SOURCE}", raw.get(_UNIT_SOURCE, where))
    for key, value in raw.items():
        field = f"{where}: {key}"
        if key in UNITS:
            book = _with_unit(book, key, _price(field, value), source)
        elif key == _UNIT_SOURCE:
            continue
        elif key == _UNKNOWN_GIB:
            book = replace(book, unknown_gib=_price(field, value))
        elif key == _LABELS:
            if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                raise BadInput(field, "must be a list of labels")
            book = replace(book, labels=tuple(value))
        elif key == _MODELS:
            if not isinstance(value, list):
                raise BadInput(field, "must be a list of match, price and source")
            models = (_model(f"{field}[{i}]", one, where) for i, one in enumerate(value))
            book = replace(book, models=(*models, *book.models))
        else:
            raise BadInput(field, f"is not known; allowed are {', '.join(_KEYS)}")
    return book


_KEYS = (*UNITS, _UNIT_SOURCE, _UNKNOWN_GIB, _LABELS, _MODELS)


def _with_unit(book: PriceBook, name: str, price: float, source: str) -> PriceBook:
    units, sources = {**book.units, name: price}, {**book.sources, name: source}
    return replace(book, units=units, sources=sources)


def _model(field: str, raw: Any, where: str) -> ModelPrice:
    if not isinstance(raw, Mapping) or not {"match", "price"} <= raw.keys() <= {
        "match", "price", "source"
    }:  # fmt: skip
        raise BadInput(field, "must have match and price; the only other key allowed is source")
    source = _text(f"{field}.source", raw.get("source", where))
    match = _match(f"{field}.match", raw["match"])
    return ModelPrice(match, _price(f"{field}.price", raw["price"]), source)


def _text(field: str, given: Any) -> str:
    if not isinstance(given, str):
        raise BadInput(field, "must be text")
    return given


def _match(field: str, given: Any) -> str:
    if not isinstance(given, str) or len(given) > _MATCH_MAX or not re.search("[A-Za-z0-9]", given):
        raise BadInput(
            field,
            f"{given!r} is neither a unit ({', '.join(UNITS)}) nor part of the name of a GPU model, "
            "such as A100*80GB",
        )
    return given


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _price(field: str, given: Any) -> float:
    # Neither .inf nor .nan is within: no comparison holds for nan.
    if (
        not isinstance(given, (int, float))
        or isinstance(given, bool)
        or not 0 <= given <= PRICE_MAX
    ):
        raise BadInput(field, f"{given!r} is not a price per month within 0..{PRICE_MAX:.0f}")
    return float(given)


def plain(text: str) -> str:
    """Without capitals, and with one sign between words."""
    return re.sub(r"[\s_-]+", "-", text.strip().lower())
