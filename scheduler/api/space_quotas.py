"""ResourceQuotas as far as they limit devices: hard limits in HAMi's words, and which pods they are about.

A quota limits devices by ``limits.`` and a resource of devices, such as ``limits.nvidia.com/gpumem``. Kubernetes itself
counts extended resources under ``requests.`` only, so these limits are left to the scheduler.

Source: HAMi v2.10, ``pkg/device/quota.go``; scopes as in Kubernetes' ``pkg/quota/v1/evaluator/core/pods.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from scheduler.api import quantities, steering, values, wire
from scheduler.errors import BadInput

PREFIX = "limits."
_TERMINATING, _NOT_TERMINATING = "Terminating", "NotTerminating"
_BEST_EFFORT, _NOT_BEST_EFFORT = "BestEffort", "NotBestEffort"
_PRIORITY, _CROSSING = "PriorityClass", "CrossNamespacePodAffinity"
_IN, _NOT_IN, _EXISTS, _ABSENT = "In", "NotIn", "Exists", "DoesNotExist"
_COUNTED = "cpu", "memory"
_AMOUNT_MAX = 2**62 - 1
# More entries, and longer texts, are not those of a quota that somebody works with.
_ENTRIES_MAX = 1000


class Scope(NamedTuple):
    """Which pods a quota is about."""

    name: str
    operator: str = _EXISTS
    names: tuple[str, ...] = ()

    def includes(self, scopes: frozenset[str], priority_class: str) -> bool:
        """Whether it includes a pod, by the scopes that the pod is in and its priority class."""
        if self.name != _PRIORITY:
            return self.name in scopes
        match self.operator:
            case "In":
                return priority_class in self.names
            case "NotIn":
                return priority_class not in self.names
            case "DoesNotExist":
                return not priority_class
        return bool(priority_class)


class SpaceQuota(NamedTuple):
    """A ResourceQuota, as far as it limits devices.

    Attributes:
        hard: the limits, by the resource without ``limits.``.
        scopes: a pod has to be in all of them.
    """

    namespace: str
    name: str
    hard: tuple[tuple[str, int], ...] = ()
    scopes: tuple[Scope, ...] = ()

    def includes(self, scopes: frozenset[str], priority_class: str) -> bool:
        """Whether it is about a pod, as ``Scope.includes``."""
        return all(one.includes(scopes, priority_class) for one in self.scopes)


def read_quota(found: steering.ResourceQuota) -> SpaceQuota:
    """Read a quota.

    Raises:
        BadInput: a limit is no amount, or a scope cannot be; the error names the field.
    """
    meta, spec = found.metadata, values.read_mapping(found.spec, "spec")
    given = values.read_mapping(spec.get("hard"), "spec.hard")
    if len(given) > _ENTRIES_MAX:
        raise BadInput("spec.hard", f"has {len(given)} entries; at most {_ENTRIES_MAX} are read")
    hard = [
        (key.removeprefix(PREFIX), _read_amount(raw, f"spec.hard[{key}]"))
        for key, raw in sorted(given.items())
        # Of CPU and memory Kubernetes keeps limits itself.
        if key.startswith(PREFIX) and "/" in key
    ]
    if not hard:
        # Other quotas may have scopes that are not about pods.
        return SpaceQuota(meta.namespace, meta.name)
    scopes = [
        _check_scope(Scope(_read_text(one, f"spec.scopes[{i}]")), f"spec.scopes[{i}]")
        for i, one in enumerate(values.read_items(spec.get("scopes"), "spec.scopes", str))
    ]
    selector = values.read_mapping(spec.get("scopeSelector"), "spec.scopeSelector")
    where = "spec.scopeSelector.matchExpressions"
    for i, one in enumerate(values.read_items(selector.get("matchExpressions"), where, dict)):
        scopes.append(_read_expression(one, f"{where}[{i}]"))
    return SpaceQuota(meta.namespace, meta.name, tuple(hard), tuple(scopes))


def _read_amount(raw: Any, where: str) -> int:
    try:
        amount = quantities.read_value(raw)
    except (ValueError, TypeError) as error:
        raise BadInput(where, f"{values.quote(raw)} is not an amount, such as 16384") from error
    if amount < 0:
        raise BadInput(where, f"{values.quote(raw)} is not an amount of at least 0")
    # No namespace has so much: more allows no more.
    return min(amount, _AMOUNT_MAX)


def _read_text(raw: Any, where: str) -> str:
    if not isinstance(raw, str):
        raise BadInput(where, f"{values.quote(raw)} is not a text")
    return raw


def _read_expression(raw: Mapping[str, Any], where: str) -> Scope:
    name = _read_text(raw.get("scopeName"), f"{where}.scopeName")
    operator = _read_text(raw.get("operator", _EXISTS), f"{where}.operator")
    if operator not in {_IN, _NOT_IN, _EXISTS, _ABSENT}:
        allowed = f"{_IN}, {_NOT_IN}, {_EXISTS}, {_ABSENT}"
        raise BadInput(f"{where}.operator", f"{values.quote(operator)} is not one of {allowed}")
    named = values.read_items(raw.get("values"), f"{where}.values", str)
    return _check_scope(Scope(name, operator, tuple(named)), f"{where}.scopeName")


def _check_scope(scope: Scope, where: str) -> Scope:
    known = _TERMINATING, _NOT_TERMINATING, _BEST_EFFORT, _NOT_BEST_EFFORT, _PRIORITY, _CROSSING
    if scope.name not in known:
        allowed = ", ".join(known)
        raise BadInput(where, f"{values.quote(scope.name)} is not one of {allowed}")
    return scope


def list_scopes(spec: wire.PodSpec) -> frozenset[str]:
    """List the scopes that a pod is in."""
    ends = spec.active_deadline_seconds is not None and spec.active_deadline_seconds >= 0
    containers = (*spec.containers, *(spec.init_containers or ()))
    asked = any(
        name in given and given[name] not in {"0", 0}
        for one in (*containers, spec)
        if one.resources is not None
        for given in (one.resources.requests or {}, one.resources.limits or {})
        for name in _COUNTED
    )
    return _name_scopes(ends, asked, _crosses(spec))


@lru_cache(maxsize=8)
def _name_scopes(ends: bool, asked: bool, crosses: bool) -> frozenset[str]:
    return frozenset(
        {
            _TERMINATING if ends else _NOT_TERMINATING,
            _NOT_BEST_EFFORT if asked else _BEST_EFFORT,
            *((_CROSSING,) if crosses else ()),
        }
    )


def _crosses(spec: wire.PodSpec) -> bool:
    """Whether a pod has terms about pods of other namespaces."""
    affinity = spec.affinity
    if affinity is None:
        return False
    return any(_list_crossing(affinity.pod_affinity)) or any(
        _list_crossing(affinity.pod_anti_affinity)
    )


def _list_crossing(given: Any) -> Iterable[bool]:
    if given is None:
        return
    for term in given.required_during_scheduling_ignored_during_execution or ():
        yield bool(term.namespaces) or term.namespace_selector is not None
    for one in given.preferred_during_scheduling_ignored_during_execution or ():
        term = one.pod_affinity_term
        if term is not None:
            yield bool(term.namespaces) or term.namespace_selector is not None
