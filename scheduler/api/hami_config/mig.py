"""Reads how cards may be cut by MIG: the list of allowed profiles, and the geometries of HAMi up to v2.9."""

from __future__ import annotations

import re
from typing import Any

from scheduler.api import values
from scheduler.api.cards import SLOTS_MAX, TEMPLATES_MAX
from scheduler.api.hami_config import fields
from scheduler.api.hami_config.fields import Field
from scheduler.api.hami_config.sections import Geometries, Instances, Profiles
from scheduler.errors import BadInput

# No card has instances of more sizes, and what follows from them is computed for each size.
_SIZES_MAX = 16
# As HAMi checks it: something of two characters or more that ends in g, a dot, and the rest.
_PROFILE = re.compile(r"[^.]+g\..*", re.DOTALL)
_INSTANCES = {
    "profile": Field("name", fields.read_name),
    "mib": Field("memory", fields.read_positive),
    "number": Field("count", fields.read_positive),
    "cores": Field("core", fields.read_percentage),
}


def read_profiles(raw: Any, where: str) -> tuple[Profiles, ...]:
    """Read the allowed profiles by model."""
    return fields.read_list(raw, where, _read_allowed)


def read_geometries(raw: Any, where: str) -> tuple[Geometries, ...]:
    """Read the geometries by model."""
    return fields.read_list(raw, where, _read_geometries)


def _read_allowed(raw: Any, where: str) -> Profiles:
    given = fields.require(raw, where, "models", "profiles")
    return Profiles(
        _read_some(given["models"], f"{where}.models"),
        tuple(
            _check_profile(one, f"{where}.profiles[{i}]")
            for i, one in enumerate(_read_some(given["profiles"], f"{where}.profiles"))
        ),
    )


def _read_some(raw: Any, where: str) -> tuple[str, ...]:
    found = fields.read_texts(raw, where)
    if not found:
        raise BadInput(where, "must not be empty")
    return found


def _check_profile(profile: str, where: str) -> str:
    if not _PROFILE.fullmatch(profile):
        raise BadInput(where, f"{values.quote(profile)} is not a MIG profile, such as 1g.10gb")
    return profile


def _read_geometries(raw: Any, where: str) -> Geometries:
    given = fields.require(raw, where, "models", "allowedGeometries")
    at = f"{where}.allowedGeometries"
    found = fields.read_list(given["allowedGeometries"], at, _read_geometry)
    sizes = {one.mib for geometry in found for one in geometry}
    if len(found) > TEMPLATES_MAX or len(sizes) > _SIZES_MAX:
        problem = (
            f"at most {TEMPLATES_MAX} geometries and {_SIZES_MAX} sizes are allowed for a model"
        )
        raise BadInput(at, f"has {len(found)} geometries with {len(sizes)} sizes; {problem}")
    return Geometries(_read_some(given["models"], f"{where}.models"), found)


def _read_geometry(raw: Any, where: str) -> tuple[Instances, ...]:
    found = fields.read_list(raw, where, _read_instances)
    if (number := sum(one.number for one in found)) > SLOTS_MAX:
        raise BadInput(where, f"has {number} instances; at most {SLOTS_MAX} are allowed on a GPU")
    return found


def _read_instances(raw: Any, where: str) -> Instances:
    fields.require(raw, where, "name", "memory", "count")
    return fields.read_section(Instances, raw, where, _INSTANCES)
