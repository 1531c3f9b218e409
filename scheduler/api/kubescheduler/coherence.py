"""Plugins that a profile must not disable: plugins that work only together, and plugins that every pod needs."""

from __future__ import annotations

from scheduler.api.kubescheduler.points import On
from scheduler.errors import BadInput

# Without one of these, kube-scheduler does not start, or would bind pods that an API server refuses to bind.
_NEEDED = (
    ("preEnqueue", "SchedulingGates"),
    ("queueSort", "PrioritySort"),
    ("bind", "DefaultBinder"),
)
# The first point prepares the second. Without the first, kube-scheduler fails on every pod, or may evict for a pod
# again before its victims are gone.
_PREPARED = (
    ("NodePorts", "preFilter", "filter"),
    ("NodeResourcesFit", "preFilter", "filter"),
    ("NodeVolumeLimits", "preFilter", "filter"),
    ("PodTopologySpread", "preFilter", "filter"),
    ("InterPodAffinity", "preFilter", "filter"),
    ("NodeDeclaredFeatures", "preFilter", "filter"),
    ("TaintToleration", "preScore", "score"),
    ("PodTopologySpread", "preScore", "score"),
    ("InterPodAffinity", "preScore", "score"),
    ("VolumeBinding", "filter", "score"),
    ("DefaultPreemption", "preEnqueue", "postFilter"),
)
# Either both points are on or neither: the first refuses nodes or pods by itself, or leaves work to the second.
_TOGETHER = (
    ("NodeAffinity", "preFilter", "filter"),
    ("VolumeRestrictions", "preFilter", "filter"),
    ("VolumeZone", "preFilter", "filter"),
    ("VolumeBinding", "preFilter", "filter"),
    ("VolumeBinding", "filter", "reserve"),
    ("VolumeBinding", "filter", "preBind"),
)


def check_plugins(on: On, field: str) -> None:
    """Refuse combinations of plugins and points that cannot work, or that would not do what the file says.

    Raises:
        BadInput: the error names the point below ``field``.
    """
    for point, name in _NEEDED:
        if name not in on.at[point]:
            raise BadInput(f"{field}.{point}", f"{name} cannot be disabled")
    for name, first, second in _PREPARED:
        if name in on.at[second] and name not in on.at[first]:
            raise BadInput(
                f"{field}.{first}",
                f"{name} must be enabled here, because it is enabled at {second}",
            )
    for name, first, second in _TOGETHER:
        if (name in on.at[first]) != (name in on.at[second]):
            raise BadInput(
                f"{field}.{first if name not in on.at[first] else second}",
                f"{name} must be enabled at {first} and {second}, or at neither",
            )
