"""Which taints of nodes a pod tolerates.

Source: component-helpers, ``ToleratesTaint``. kube-scheduler compares by Lt and Gt only with a feature gate that is off, and
without the gate the API server takes no such pod; Kueue compares for flavors.
"""

from __future__ import annotations

from collections.abc import Collection

from scheduler.api.selectors import is_beyond

# Key, operator, value and effect; an empty key or effect stands for all.
TolerationKey = tuple[str, str, str, str]
_HARD = frozenset({"NoSchedule", "NoExecute"})


def is_hard(taint: tuple[str, str, str]) -> bool:
    """Whether a taint keeps pods without a toleration off the node; other taints only make the node less preferred."""
    return taint[2] in _HARD


def tolerates(
    tolerations: Collection[TolerationKey], taint: tuple[str, str, str], *, compares: bool = False
) -> bool:
    """Whether any of some tolerations matches a taint (key, value, effect); ``compares``: Lt and Gt are known."""
    return any(_matches(toleration, taint, compares=compares) for toleration in tolerations)


def _matches(toleration: TolerationKey, taint: tuple[str, str, str], *, compares: bool) -> bool:
    key, operator, value, effect = toleration
    if (effect and effect != taint[2]) or (key and key != taint[0]):
        return False
    match operator:
        case "Exists":
            return True
        case "Equal":
            return value == taint[1]
        case "Lt" | "Gt":
            return compares and is_beyond(operator, taint[1], value)
        case _:
            return False
