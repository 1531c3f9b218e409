"""Reads the queues, cohorts and flavors of Kueue, in both of its versions.

The rules are those of Kueue's own webhooks and CRDs (2026-08), which a cluster without Kueue does not have. Every
function raises ``BadInput``, which names the field and what is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from scheduler.api import kai, kueue, quantities, selectors, times, values
from scheduler.api.queues import amounts, bounds
from scheduler.api.queues import kai as kai_queues
from scheduler.api.queues.definitions import (
    Check,
    CheckRule,
    CohortDefinition,
    Flavor,
    FlavorQuotas,
    Fungibility,
    LocalQueueDefinition,
    Policy,
    Preemption,
    QueueDefinition,
    Quota,
    ResourceGroup,
    Stop,
)
from scheduler.errors import BadInput

_GROUPS_MAX, _ITEMS_MAX, _FLAVORS_MAX, _NODE_ITEMS_MAX = 16, 64, 256, 8
_NAME_MAX = 253
# The least weight that is not zero.
_WEIGHT_MIN = 1e-9
_BY_USAGE = "UsageBasedAdmissionFairSharing"
_SCOPES = ("NoAdmissionFairSharing", _BY_USAGE)
_STRATEGIES = ("BestEffortFIFO", "StrictFIFO")
# The words of both versions for a flavor that is taken, or passed over.
_STOPS, _SKIPS = ("MayStopSearch", "Borrow", "Preempt"), ("TryNextFlavor",)
_PREFERENCES = ("BorrowingOverPreemption", "PreemptionOverBorrowing")
_WITHIN = (Policy.NEVER, Policy.LOWER, Policy.LOWER_OR_NEWER)
_RECLAIM = (Policy.NEVER, Policy.LOWER, Policy.ANY)
_BORROW = (Policy.NEVER, Policy.LOWER)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

T = TypeVar("T")


def read_queue(found: kueue.ClusterQueue) -> QueueDefinition:
    """Read a ClusterQueue."""
    spec = values.read_mapping(found.spec, "spec")
    cohort = _read_name(spec, "spec", "cohortName") or _read_name(spec, "spec", "cohort")
    selector = spec.get("namespaceSelector")
    scope = values.read_mapping(spec.get("admissionScope"), "spec.admissionScope")
    mode = _read_choice(scope, "spec.admissionScope", "admissionMode", _SCOPES, _SCOPES[0])
    strategy = _read_choice(spec, "spec", "queueingStrategy", _STRATEGIES, _STRATEGIES[0])
    refused = "spec.concurrentAdmissionPolicy"
    return QueueDefinition(
        name=found.metadata.name,
        cohort=cohort,
        groups=_read_groups(spec),
        is_strict=strategy == "StrictFIFO",
        namespaces=selectors.NOTHING
        if selector is None
        else selectors.parse_selector(selector, "spec.namespaceSelector"),
        fungibility=_read_fungibility(spec),
        preemption=_read_preemption(spec),
        checks=_read_checks(spec),
        stop=_read_stop(spec),
        weight=_read_weight(spec),
        by_usage=mode == _BY_USAGE,
        refused=(refused,) if spec.get("concurrentAdmissionPolicy") is not None else (),
        is_going=found.metadata.deletion_timestamp is not None,
    )


def read_cohort(found: kueue.Cohort) -> CohortDefinition:
    """Read a Cohort."""
    spec = values.read_mapping(found.spec, "spec")
    parent = _read_name(spec, "spec", "parentName") or _read_name(spec, "spec", "parent")
    return CohortDefinition(
        name=found.metadata.name,
        parent=parent,
        groups=_read_groups(spec),
        weight=_read_weight(spec),
    )


def read_local_queue(found: kueue.LocalQueue) -> LocalQueueDefinition:
    """Read a LocalQueue."""
    spec, meta = values.read_mapping(found.spec, "spec"), found.metadata
    consumed, at = _find_history(found.status)
    return LocalQueueDefinition(
        namespace=meta.namespace,
        name=meta.name,
        queue=_read_name(spec, "spec", "clusterQueue"),
        stop=_read_stop(spec),
        weight=_read_weight(spec),
        consumed=tuple(sorted((name, _read_share(one)) for name, one in consumed.items())),
        consumed_at=float(times.read_time(str(at)) or 0),
        is_going=meta.deletion_timestamp is not None,
    )


def _read_share(given: Any) -> float:
    """Read an average that was written as a quantity; 0 if it is none."""
    try:
        return quantities.read_number(given)
    except quantities.BadQuantity:
        return 0.0


def _find_history(status: Any) -> tuple[Mapping[str, Any], Any]:
    """Find what a status says of what was used, and when; nobody but a controller writes it."""
    for key in ("fairSharing", "admissionFairSharingStatus"):
        status = status.get(key) if isinstance(status, Mapping) else None
    if not isinstance(status, Mapping):
        return {}, ""
    consumed = status.get("consumedResources")
    return consumed if isinstance(consumed, Mapping) else {}, status.get("lastUpdate", "")


def read_flavor(found: kueue.ResourceFlavor) -> Flavor:
    """Read a ResourceFlavor."""
    spec = values.read_mapping(found.spec, "spec")
    labels = values.read_mapping(spec.get("nodeLabels"), "spec.nodeLabels")
    _limit(labels, "spec.nodeLabels", _NODE_ITEMS_MAX)
    for key, label in labels.items():
        if not isinstance(label, str):
            raise BadInput(f"spec.nodeLabels[{key}]", f"{values.quote(label)} is not a text")
    taints = _read_few(spec, "spec", "nodeTaints", dict, _NODE_ITEMS_MAX)
    tolerations = _read_few(spec, "spec", "tolerations", dict, _NODE_ITEMS_MAX)
    return Flavor(
        name=found.metadata.name,
        labels=dict(labels),
        taints=tuple(_read_taint(one, f"spec.nodeTaints[{i}]") for i, one in enumerate(taints)),
        tolerations=tuple(
            (
                _read_text(one, f"spec.tolerations[{i}]", "key"),
                _read_text(one, f"spec.tolerations[{i}]", "operator") or "Equal",
                _read_text(one, f"spec.tolerations[{i}]", "value"),
                _read_text(one, f"spec.tolerations[{i}]", "effect"),
            )
            for i, one in enumerate(tolerations)
        ),
        # Kueue's schema wants labels, too. Without any, the nodes of the flavor are those that the topology has.
        topology=_read_name(spec, "spec", "topologyName"),
    )


def check_object(found: kueue.QueueObject | kai.Queue) -> None:
    """Refuse an object that cannot be read."""
    match found:
        case kueue.ClusterQueue():
            read_queue(found)
        case kueue.Cohort():
            read_cohort(found)
        case kueue.LocalQueue():
            read_local_queue(found)
        case kueue.ResourceFlavor():
            read_flavor(found)
        case kueue.LimitRange():
            bounds.read_limit_range(found.spec)
        case kai.Queue():
            kai_queues.read_queue(found)


def _read_taint(raw: Mapping[str, Any], field: str) -> tuple[str, str, str]:
    key = _read_text(raw, field, "key")
    if not key:
        raise BadInput(f"{field}.key", "must be set")
    effect = _read_choice(raw, field, "effect", _EFFECTS, "")
    return key, _read_text(raw, field, "value"), effect


def _read_groups(spec: Mapping[str, Any]) -> tuple[ResourceGroup, ...]:
    """Read ``spec.resourceGroups``."""
    raw = _read_few(spec, "spec", "resourceGroups", dict, _GROUPS_MAX)
    found = tuple(_read_group(one, f"spec.resourceGroups[{i}]") for i, one in enumerate(raw))
    n_flavors = sum(len(one.flavors) for one in found)
    if n_flavors > _FLAVORS_MAX:
        problem = f"has {n_flavors} flavors; at most {_FLAVORS_MAX} are allowed"
        raise BadInput("spec.resourceGroups", problem)
    _refuse_twice(found)
    return found


def _refuse_twice(groups: Sequence[ResourceGroup]) -> None:
    """Refuse a flavor with two quotas of a resource: it would not be known which one counts."""
    seen: set[tuple[str, str]] = set()
    for i, group in enumerate(groups):
        for k, flavor in enumerate(group.flavors):
            for resource in group.resources:
                if (flavor.flavor, resource) in seen:
                    field = f"spec.resourceGroups[{i}].flavors[{k}]"
                    raise BadInput(
                        field,
                        f"{resource} has two quotas in flavor {flavor.flavor}; one is allowed",
                    )
                seen.add((flavor.flavor, resource))


def _read_group(raw: Mapping[str, Any], field: str) -> ResourceGroup:
    resources = _read_few(raw, field, "coveredResources", str, _ITEMS_MAX)
    flavors = _read_few(raw, field, "flavors", dict, _ITEMS_MAX)
    for what, given in ("coveredResources", resources), ("flavors", flavors):
        if not given:
            raise BadInput(f"{field}.{what}", "must have an item at least")
    found = []
    for i, flavor in enumerate(flavors):
        where = f"{field}.flavors[{i}]"
        quotas = _read_few(flavor, where, "resources", dict, _ITEMS_MAX)
        covered = [_read_text(one, f"{where}.resources", "name") for one in quotas]
        if covered != resources:
            wanted = ", ".join(resources)
            problem = f"must be those of coveredResources, in their order: {wanted}"
            raise BadInput(f"{where}.resources", problem)
        name = _read_name(flavor, where, "name")
        if not name:
            raise BadInput(f"{where}.name", "must be set")
        found.append(
            FlavorQuotas(
                name,
                tuple(
                    _read_quota(one, resource, f"{where}.resources[{k}]")
                    for k, (one, resource) in enumerate(zip(quotas, resources, strict=True))
                ),
            )
        )
    return ResourceGroup(tuple(resources), tuple(found))


def _read_quota(raw: Mapping[str, Any], resource: str, field: str) -> Quota:
    nominal = raw.get("nominalQuota")
    if nominal is None:
        raise BadInput(f"{field}.nominalQuota", "must be set")
    return Quota(
        nominal=amounts.read_amount(resource, nominal, f"{field}.nominalQuota"),
        borrowing=_read_limit(raw, resource, field, "borrowingLimit"),
        lending=_read_limit(raw, resource, field, "lendingLimit"),
    )


def _read_limit(raw: Mapping[str, Any], resource: str, field: str, name: str) -> int | None:
    given = raw.get(name)
    return None if given is None else amounts.read_amount(resource, given, f"{field}.{name}")


def _read_fungibility(spec: Mapping[str, Any]) -> Fungibility:
    field = "spec.flavorFungibility"
    raw = values.read_mapping(spec.get("flavorFungibility"), field)
    choices = (*_STOPS, *_SKIPS)
    borrow = _read_choice(raw, field, "whenCanBorrow", choices, _STOPS[0])
    preempt = _read_choice(raw, field, "whenCanPreempt", choices, _SKIPS[0])
    preference = _read_choice(raw, field, "preference", _PREFERENCES, _PREFERENCES[0])
    return Fungibility(borrow in _SKIPS, preempt in _SKIPS, preference == _PREFERENCES[1])


def _read_preemption(spec: Mapping[str, Any]) -> Preemption:
    field = "spec.preemption"
    raw = values.read_mapping(spec.get("preemption"), field)
    under = f"{field}.borrowWithinCohort"
    borrow = values.read_mapping(raw.get("borrowWithinCohort"), under)
    return Preemption(
        within=Policy(_read_choice(raw, field, "withinClusterQueue", _WITHIN, Policy.NEVER)),
        reclaim=Policy(_read_choice(raw, field, "reclaimWithinCohort", _RECLAIM, Policy.NEVER)),
        borrows=_read_choice(borrow, under, "policy", _BORROW, Policy.NEVER) != Policy.NEVER,
        threshold=None
        if borrow.get("maxPriorityThreshold") is None
        else values.read_integer(
            borrow["maxPriorityThreshold"], f"{under}.maxPriorityThreshold", -(2**31), 2**31 - 1
        ),
    )


def read_check(found: kueue.AdmissionCheck) -> Check:
    """Read an admission check; one whose controller says nothing of itself is taken to be active."""
    spec = found.spec if isinstance(found.spec, dict) else {}
    status = found.status if isinstance(found.status, dict) else {}
    conditions = status.get("conditions")
    is_inactive = any(
        isinstance(one, dict) and (one.get("type"), one.get("status")) == ("Active", "False")
        for one in (conditions if isinstance(conditions, list) else ())
    )
    return Check(str(spec.get("controllerName") or ""), is_inactive)


def _read_checks(spec: Mapping[str, Any]) -> tuple[CheckRule, ...]:
    """Read the admission checks of both versions."""
    plain = _read_few(spec, "spec", "admissionChecks", str, _ITEMS_MAX)
    field = "spec.admissionChecksStrategy"
    strategy = values.read_mapping(spec.get("admissionChecksStrategy"), field)
    rules = _read_few(strategy, field, "admissionChecks", dict, _ITEMS_MAX)
    if plain and rules:
        raise BadInput("spec.admissionChecks", f"must not be set together with {field}")
    found = [CheckRule(name) for name in plain]
    for i, raw in enumerate(rules):
        where = f"{field}.admissionChecks[{i}]"
        flavors = _read_few(raw, where, "onFlavors", str, _ITEMS_MAX)
        found.append(CheckRule(_read_name(raw, where, "name"), frozenset(flavors)))
    return tuple(found)


def _read_stop(spec: Mapping[str, Any]) -> Stop:
    return Stop(_read_choice(spec, "spec", "stopPolicy", tuple(Stop), Stop.NONE))


def _read_weight(spec: Mapping[str, Any]) -> float:
    field = "spec.fairSharing.weight"
    given = values.read_mapping(spec.get("fairSharing"), "spec.fairSharing").get("weight")
    if given is None:
        return 1.0
    try:
        weight = quantities.read_number(given)
    except quantities.BadQuantity as error:
        raise BadInput(field, str(error)) from error
    if 0 < weight <= _WEIGHT_MIN:
        raise BadInput(field, f"must be 0, or more than {_WEIGHT_MIN:g}")
    return weight


def _read_choice(
    raw: Mapping[str, Any], under: str, key: str, choices: tuple[str, ...], default: str
) -> str:
    found = raw.get(key)
    if found is None or found == "":
        return default
    if found not in choices:
        wanted = ", ".join(choices)
        raise BadInput(f"{under}.{key}", f"{values.quote(found)} is not one of {wanted}")
    return str(found)


def _read_name(raw: Mapping[str, Any], under: str, key: str) -> str:
    found = _read_text(raw, under, key)
    if len(found) > _NAME_MAX:
        raise BadInput(f"{under}.{key}", f"has more than {_NAME_MAX} characters")
    return found


def _read_text(raw: Mapping[str, Any], under: str, key: str) -> str:
    found = raw.get(key)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise BadInput(f"{under}.{key}", f"{values.quote(found)} is not a text")
    return found


def _read_few(raw: Mapping[str, Any], under: str, key: str, kind: type[T], most: int) -> list[T]:
    found = values.read_items(raw.get(key), f"{under}.{key}", kind)
    _limit(found, f"{under}.{key}", most)
    return found


def _limit(found: Any, field: str, most: int) -> None:
    if len(found) > most:
        raise BadInput(field, f"has {len(found)} items; at most {most} are allowed")
