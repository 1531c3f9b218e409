"""Constraints among the devices of one claim: attributes that must be alike, or all different, and groups of counters."""

from collections.abc import Sequence
from typing import Any

from tests.oracles.allocator_pools import Device

Json = dict[str, Any]
KINDS = ("string", "int", "bool", "version")
LISTS = ("ints", "bools", "strings", "versions", "int", "bool", "string", "version")


def attribute_of(device: Device, name: str) -> Json | None:
    """By its full name, or by the short one if the domain is the driver."""
    attributes: dict[str, Json] = device.body.get("attributes") or {}
    domain, slash, short = name.partition("/")
    if name in attributes:
        return attributes[name]
    return attributes.get(short) if slash and domain == device.driver else None


def matches(before: Sequence[Json | None], attribute: Json | None, *, is_list: bool) -> bool:
    """Whether it is like all before it; the first one may be anything, even without a value."""
    if attribute is None:
        return False
    if is_list:
        sets = [values(one or {}) for one in [*before, attribute]]
        return all(sets) and bool(frozenset.intersection(*sets))
    if not before:
        return True
    kind = next((kind for kind in KINDS if kind in attribute), None)
    return kind is not None and (before[0] or {}).get(kind) == attribute[kind]


def is_distinct(before: Sequence[Json | None], attribute: Json | None, *, is_list: bool) -> bool:
    """Whether it is like none before it; the first one may be anything, even without a value."""
    if attribute is None:
        return False
    if is_list:
        own = values(attribute)
        return bool(own) and not any(own & values(one or {}) for one in before)
    kind = next((kind for kind in KINDS if kind in attribute), None)
    if kind is None:
        return not before
    return all((one or {}).get(kind) != attribute[kind] for one in before)


def values(attribute: Json) -> frozenset[tuple[str, Any]]:
    """Of a list or of one value, with their type."""
    for kind in LISTS:
        if (found := attribute.get(kind)) not in (None, []):
            all_of_it = found if isinstance(found, list) else [found]
            return frozenset((kind.removesuffix("s"), one) for one in all_of_it)
    return frozenset()


def groups_admit(before: Sequence[set[str]], own: set[str]) -> bool:
    """Devices that name no groups go together; others need one group that all of them name."""
    if not before:
        return True
    if not before[0] or not own:
        return not before[0] and not own
    return bool(own.intersection(*(groups for groups in before if groups)))
