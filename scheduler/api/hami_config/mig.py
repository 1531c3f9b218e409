"""Reads how cards may be cut by MIG: the list of allowed profiles, and the geometries of HAMi up to v2.9."""

from __future__ import annotations

import re
from typing import Any

from scheduler.api import values
from scheduler.api.hami_config import fields
from scheduler.api.hami_config.fields import Field
from scheduler.api.hami_config.sections import Geometries, Instances, Profiles
from scheduler.errors import BadInput

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
    return Geometries(
        _read_some(given["models"], f"{where}.models"),
        fields.read_list(
            given["allowedGeometries"],
            f"{where}.allowedGeometries",
            lambda one, at: fields.read_list(one, at, _read_instances),
        ),
    )


def _read_instances(raw: Any, where: str) -> Instances:
    fields.require(raw, where, "name", "memory", "count")
    return fields.read_section(Instances, raw, where, _INSTANCES)
