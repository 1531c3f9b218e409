"""Reads single values of HAMi's files: what Go takes for them, within the bounds that make sense.

HAMi's reader takes a number where a text is wanted, because YAML makes a number of ``resource: 5``, and cuts the fraction
off where an integer is wanted. The former is taken here as well; the latter is refused, since nobody means it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from scheduler.api import values
from scheduler.errors import BadInput

T = TypeVar("T")

INT32_MAX = 2**31 - 1
SCALING_MAX = 1000
# The most entries of one list; HAMi's own lists have about ten.
ITEMS_MAX = 1000
_DOMAIN = re.compile(
    r"(?=.{1,244}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
)
_LOCAL = re.compile(r"(?=.{1,63}$)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
# HAMi makes names of annotations from a word, of which `W-devices-to-allocate` is the longest; they have 63 characters.
_WORD = re.compile(r"(?=.{1,42}$)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


class Field(NamedTuple):
    """A key of a section, and what reads its value from the raw one and the path of the field."""

    key: str
    read: Callable[[Any, str], Any]


Table = Mapping[str, Field]


def read_section(make: Callable[..., T], raw: Any, where: str, table: Table) -> T:
    """Read an object by a table of its fields; what is absent, or null, has the default of what is made."""
    given = values.read_mapping(raw, where)
    return make(
        **{
            name: field.read(given[field.key], f"{where}.{field.key}" if where else field.key)
            for name, field in table.items()
            if given.get(field.key) is not None
        }
    )


def read_list(raw: Any, where: str, read: Callable[[Any, str], T]) -> tuple[T, ...]:
    """Read each entry of a list; an absent list is empty."""
    if raw is None:
        return ()
    if not isinstance(raw, list):
        raise BadInput(where, f"{values.quote(raw)} is not a list")
    if len(raw) > ITEMS_MAX:
        raise BadInput(where, f"has {len(raw)} entries; at most {ITEMS_MAX} are allowed")
    return tuple(read(one, f"{where}[{i}]") for i, one in enumerate(raw))


def read_texts(raw: Any, where: str) -> tuple[str, ...]:
    """Read a list of texts that are not empty."""
    return read_list(raw, where, read_name)


def read_text(raw: Any, where: str) -> str:
    """Read a text; a whole number counts as its digits."""
    if isinstance(raw, int) and not isinstance(raw, bool):
        return str(raw)
    if not isinstance(raw, str):
        raise BadInput(where, f"{values.quote(raw)} is not a text")
    return raw


def read_name(raw: Any, where: str) -> str:
    """Read a text that is not empty."""
    text = read_text(raw, where)
    if not text:
        raise BadInput(where, "must not be empty")
    return text


def read_word(raw: Any, where: str) -> str:
    """Read the word of a chip, of which names of annotations are made."""
    text = read_text(raw, where)
    if not _WORD.fullmatch(text):
        raise BadInput(
            where,
            f"{values.quote(text)} must be 1 to 42 letters, digits, -, _ and ., with a letter or digit at both ends",
        )
    return text


def read_resource(raw: Any, where: str) -> str:
    """Read the name of an extended resource; an empty one stands for none."""
    text = read_text(raw, where)
    domain, _, local = text.partition("/")
    if not text or (
        _DOMAIN.fullmatch(domain)
        and _LOCAL.fullmatch(local)
        and not domain.startswith("requests.")
        and not domain.endswith("kubernetes.io")
    ):
        return text
    raise BadInput(
        where,
        f"{values.quote(text)} is not the name of an extended resource, such as example.com/gpu: a domain other than "
        "kubernetes.io, a slash, and at most 63 letters, digits, -, _ and .",
    )


def read_flag(raw: Any, where: str) -> bool:
    """Read true or false."""
    if not isinstance(raw, bool):
        raise BadInput(where, f"{values.quote(raw)} is neither true nor false")
    return raw


def read_number(raw: Any, where: str) -> int:
    """Read an integer within 0..2147483647."""
    return read_integer(raw, where, 0, INT32_MAX)


def read_positive(raw: Any, where: str) -> int:
    """Read an integer within 1..2147483647."""
    return read_integer(raw, where, 1, INT32_MAX)


def read_percentage(raw: Any, where: str) -> int:
    """Read an integer within 0..100."""
    return read_integer(raw, where, 0, 100)


def read_integer(raw: Any, where: str, low: int, high: int) -> int:
    """Read an integer within bounds; ``1.0`` and ``1e2`` are integers, too."""
    if isinstance(raw, float) and raw.is_integer():
        raw = int(raw)
    return values.read_integer(raw, where, low, high)


def read_scaling(raw: Any, where: str) -> float:
    """Read a factor above 0."""
    found = read_scaling_or_none(raw, where)
    if not found:
        raise BadInput(where, f"0 is not a factor above 0 and up to {SCALING_MAX}")
    return found


def read_scaling_or_none(raw: Any, where: str) -> float:
    """Read a factor; 0 stands for none."""
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise BadInput(where, f"{values.quote(raw)} is not a number")
    if not 0 <= raw <= SCALING_MAX:
        raise BadInput(
            where, f"{values.quote(raw)} is not a factor above 0 and up to {SCALING_MAX}"
        )
    return float(raw)


def require(raw: Any, where: str, *keys: str) -> Mapping[str, Any]:
    """Read an object in which some keys must be present."""
    given = values.read_mapping(raw, where)
    for key in keys:
        if given.get(key) is None:
            raise BadInput(f"{where}.{key}", "is required")
    return given
