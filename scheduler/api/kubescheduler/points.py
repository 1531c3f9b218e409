"""kube-scheduler's plugins, the extension points that each has, and which are on at each point of a profile.

Source: kube-scheduler's default_plugins.go (the merge with the defaults) and framework.go (what ``multiPoint``
comes to at each point, and which weight holds).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from scheduler.api import values
from scheduler.errors import BadInput

MULTI_POINT = "multiPoint"
_FILTER = ("preFilter", "filter")
_SCORE = ("preScore", "score")
# What a plugin does at each point; all of them are on unless a file says otherwise, in this order.
PLUGINS: Mapping[str, tuple[str, ...]] = {
    "SchedulingGates": ("preEnqueue",),
    "PrioritySort": ("queueSort",),
    "NodeName": _FILTER,
    "NodeUnschedulable": _FILTER,
    "TaintToleration": (*_FILTER, *_SCORE),
    "NodeAffinity": (*_FILTER, *_SCORE),
    "NodePorts": _FILTER,
    "NodeResourcesFit": (*_FILTER, *_SCORE, "placementScore"),
    "VolumeRestrictions": _FILTER,
    "NodeVolumeLimits": _FILTER,
    "VolumeBinding": (*_FILTER, *_SCORE, "reserve", "preBind"),
    "VolumeZone": _FILTER,
    "PodTopologySpread": (*_FILTER, *_SCORE),
    "InterPodAffinity": (*_FILTER, *_SCORE),
    "DynamicResources": (
        "preEnqueue", *_FILTER, "postFilter", "score", "reserve", "preBind", "podGroupPostFilter"
    ),
    "DefaultPreemption": ("preEnqueue", "postFilter", "podGroupPostFilter"),
    "NodeResourcesBalancedAllocation": _SCORE,
    "ImageLocality": ("score",),
    "DefaultBinder": ("bind",),
    "NodeDeclaredFeatures": _FILTER,
}  # fmt: skip
POINTS = (
    "preEnqueue",
    "queueSort",
    *_FILTER,
    "postFilter",
    *_SCORE,
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    "placementGenerate",
    "placementScore",
    "podGroupPostFilter",
)
_WEIGHT_MAX = 2**31 - 1
_ALL = "*"


class PluginSet(NamedTuple):
    """What a file says of one point: what is on, with the weight that is given, and what is off."""

    enabled: tuple[tuple[str, int | None], ...] = ()
    disabled: frozenset[str] = frozenset()


class On(NamedTuple):
    """What is on in a profile.

    Attributes:
        at: by point, the plugins.
        weights: (score, weight) of those that a file enables by name; the others have their own.
    """

    at: Mapping[str, frozenset[str]]
    weights: tuple[tuple[str, int], ...]


def read(raw: Any, field: str) -> On:
    """What ``plugins`` of a profile comes to.

    Raises:
        BadInput: a plugin or a point is none, or stands where it cannot; names the field.
    """
    given = values.mapping(raw, field)
    values.known(given, field, (MULTI_POINT, *POINTS))
    sets = {
        point: _plugin_set(given.get(point), f"{field}.{point}", point)
        for point in (MULTI_POINT, *POINTS)
    }
    everywhere = _everywhere(sets[MULTI_POINT])
    at = {point: _at(point, sets[point], everywhere) for point in POINTS}
    # What is said of the point itself comes first. Without a weight it is 1, and so it is for 0.
    said = {**dict(sets[MULTI_POINT].enabled), **dict(sets["score"].enabled)}
    weights = tuple(sorted((name, said[name] or 1) for name in said.keys() & at["score"]))
    return On(at, weights)


def _everywhere(given: PluginSet) -> tuple[str, ...]:
    """The plugins that are on at every point that they have."""
    named = [name for name, _ in given.enabled]
    if _ALL in given.disabled:
        return tuple(named)
    kept = [name for name in PLUGINS if name not in given.disabled]
    return tuple(dict.fromkeys((*kept, *named)))


def _at(point: str, given: PluginSet, everywhere: tuple[str, ...]) -> frozenset[str]:
    named = frozenset(name for name, _ in given.enabled)
    if _ALL in given.disabled:
        return named
    return named | {
        name for name in everywhere if point in PLUGINS[name] and name not in given.disabled
    }


def _plugin_set(raw: Any, field: str, point: str) -> PluginSet:
    given = values.mapping(raw, field)
    values.known(given, field, ("enabled", "disabled"))
    enabled: dict[str, int | None] = {}
    for i, one in enumerate(values.items(given.get("enabled"), f"{field}.enabled", dict)):
        where = f"{field}.enabled[{i}]"
        values.known(one, where, ("name", "weight"))
        name = _plugin(one.get("name"), f"{where}.name")
        if name in enabled:
            raise BadInput(f"{where}.name", f"{name} appears twice")
        if point != MULTI_POINT and point not in PLUGINS[name]:
            raise BadInput(f"{where}.name", f"{name} does nothing at {point}")
        enabled[name] = None
        if one.get("weight") is not None:
            enabled[name] = values.integer(one["weight"], f"{where}.weight", 0, _WEIGHT_MAX)
    disabled = set()
    for i, one in enumerate(values.items(given.get("disabled"), f"{field}.disabled", dict)):
        where = f"{field}.disabled[{i}]"
        values.known(one, where, ("name", "weight"))
        off = one.get("name")
        disabled.add(_ALL if off == _ALL else _plugin(off, f"{where}.name"))
    return PluginSet(tuple(enabled.items()), frozenset(disabled))


def _plugin(name: Any, field: str) -> str:
    if name not in PLUGINS:
        raise BadInput(
            field, f"{name!r} is not a plugin that Evenkeel has; allowed are {', '.join(PLUGINS)}"
        )
    return str(name)
