"""Plugins that a profile must not disable: those that work only together, and those that every pod needs."""

from __future__ import annotations

from scheduler.api.kubescheduler.points import On
from scheduler.errors import BadInput

# Without it kube-scheduler does not start, or pods would be bound that an API server does not bind.
_NEEDED = (
    ("preEnqueue", "SchedulingGates"),
    ("queueSort", "PrioritySort"),
    ("bind", "DefaultBinder"),
)
# The first half prepares the second, which cannot do without: kube-scheduler fails on every pod then, or may evict
# for a pod again before its victims are gone.
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
# Either both or neither: the first refuses nodes or pods by itself, or leaves work to the second.
_TOGETHER = (
    ("NodeAffinity", "preFilter", "filter"),
    ("VolumeRestrictions", "preFilter", "filter"),
    ("VolumeZone", "preFilter", "filter"),
    ("VolumeBinding", "preFilter", "filter"),
    ("VolumeBinding", "filter", "reserve"),
    ("VolumeBinding", "filter", "preBind"),
)


def check(on: On, field: str) -> None:
    """Refuse what cannot be, or would be another thing than it says.

    Raises:
        BadInput: names the point below ``field``.
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
