"""kube-scheduler's plugins, the extension points of each, and the plugins that are on at each point of a profile.

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
# The points of each plugin. All plugins are on, in this order, unless a file says otherwise.
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
    """What a file says about one point: the plugins that are on, with their weights if given, and those that are off."""

    enabled: tuple[tuple[str, int | None], ...] = ()
    disabled: frozenset[str] = frozenset()


class On(NamedTuple):
    """The plugins that are on in a profile.

    Attributes:
        at: the plugins by point.
        weights: (score, weight) of the scores that a file enables by name; other scores have their own weights.
    """

    at: Mapping[str, frozenset[str]]
    weights: tuple[tuple[str, int], ...]


def read_points(raw: Any, field: str) -> On:
    """Read ``plugins`` of a profile, merged with the defaults.

    Raises:
        BadInput: a plugin or a point does not exist, or a plugin does not have the point; the error names the field.
    """
    given = values.read_mapping(raw, field)
    values.refuse_unknown(given, field, (MULTI_POINT, *POINTS))
    sets = {
        point: _read_plugin_set(given.get(point), f"{field}.{point}", point)
        for point in (MULTI_POINT, *POINTS)
    }
    everywhere = _list_everywhere(sets[MULTI_POINT])
    at = {point: _list_at(point, sets[point], everywhere) for point in POINTS}
    # What is said of the point itself goes first. A weight that is absent or 0 is 1.
    said = {**dict(sets[MULTI_POINT].enabled), **dict(sets["score"].enabled)}
    weights = tuple(sorted((name, said[name] or 1) for name in said.keys() & at["score"]))
    return On(at, weights)


def _list_everywhere(given: PluginSet) -> tuple[str, ...]:
    """List the plugins that are on at all their points."""
    named = [name for name, _ in given.enabled]
    if _ALL in given.disabled:
        return tuple(named)
    kept = [name for name in PLUGINS if name not in given.disabled]
    return tuple(dict.fromkeys((*kept, *named)))


def _list_at(point: str, given: PluginSet, everywhere: tuple[str, ...]) -> frozenset[str]:
    named = frozenset(name for name, _ in given.enabled)
    if _ALL in given.disabled:
        return named
    return named | {
        name for name in everywhere if point in PLUGINS[name] and name not in given.disabled
    }


def _read_plugin_set(raw: Any, field: str, point: str) -> PluginSet:
    given = values.read_mapping(raw, field)
    values.refuse_unknown(given, field, ("enabled", "disabled"))
    enabled: dict[str, int | None] = {}
    for i, one in enumerate(values.read_items(given.get("enabled"), f"{field}.enabled", dict)):
        where = f"{field}.enabled[{i}]"
        values.refuse_unknown(one, where, ("name", "weight"))
        name = _read_plugin(one.get("name"), f"{where}.name")
        if name in enabled:
            raise BadInput(f"{where}.name", f"{name} appears twice")
        if point != MULTI_POINT and point not in PLUGINS[name]:
            raise BadInput(f"{where}.name", f"{name} does nothing at {point}")
        enabled[name] = None
        if one.get("weight") is not None:
            enabled[name] = values.read_integer(one["weight"], f"{where}.weight", 0, _WEIGHT_MAX)
    disabled = set()
    for i, one in enumerate(values.read_items(given.get("disabled"), f"{field}.disabled", dict)):
        where = f"{field}.disabled[{i}]"
        values.refuse_unknown(one, where, ("name", "weight"))
        off = one.get("name")
        disabled.add(_ALL if off == _ALL else _read_plugin(off, f"{where}.name"))
    return PluginSet(tuple(enabled.items()), frozenset(disabled))


def _read_plugin(name: Any, field: str) -> str:
    if name not in PLUGINS:
        raise BadInput(
            field, f"{name!r} is not a plugin that Evenkeel has; allowed are {', '.join(PLUGINS)}"
        )
    return str(name)
