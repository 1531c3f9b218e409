"""Namespaces whose quotas are exceeded: if a pod left its node there, the API server would refuse its successor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler.api import quantities, steering
from scheduler.engine.engine import Engine
from scheduler.engine.questions.space_quotas import SpaceQuotaStates

EXCEEDED = (
    "in namespaces that use more than a ResourceQuota allows, which would refuse their successors"
)
# The limits that count pods and what they request; all others are about other objects.
_OF_PODS = frozenset({"pods", "count/pods", "cpu", "memory", "ephemeral-storage"})
_REQUESTS, _LIMITS, _PAGES = "requests.", "limits.", "hugepages-"
_OF_CLAIMS = "requests.storage"


def find_exceeded(quotas: Iterable[steering.ResourceQuota], engine: Engine) -> frozenset[str]:
    """Find the namespaces that use more of a resource of pods than one of their quotas allows.

    Kubernetes says in the status of a quota what is used of what it counts; the engine knows what is used of devices.
    """
    spaces = {one.metadata.namespace for one in quotas if _is_exceeded(one)}
    for state in engine.ask(SpaceQuotaStates()):
        if any(limit.used > limit.hard for limit in state.limits):
            spaces.add(state.quota.namespace)
    return frozenset(spaces)


def _is_exceeded(quota: steering.ResourceQuota) -> bool:
    hard, used = _read_amounts(quota.spec, "hard"), _read_amounts(quota.status, "used")
    return any(used.get(name, 0) > most for name, most in hard.items() if _counts_pods(name))


def _counts_pods(name: str) -> bool:
    if name in _OF_PODS:
        return True
    return name.startswith((_REQUESTS, _LIMITS, _PAGES)) and name != _OF_CLAIMS


def _read_amounts(section: Any, key: str) -> dict[str, int]:
    """Read the amounts in thousandths; what cannot be read says nothing."""
    given = section.get(key) if isinstance(section, Mapping) else None
    found = {}
    for name, amount in given.items() if isinstance(given, Mapping) else ():
        try:
            found[name] = quantities.read_milli(amount)
        except (ValueError, TypeError):
            continue
    return found
