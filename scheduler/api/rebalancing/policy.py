"""What the spec of a RebalancePolicy means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from scheduler.api import names, selectors, values
from scheduler.api.groups.readers.reading import parse_seconds
from scheduler.api.kind import Kind
from scheduler.api.rebalancing.hours import ALL_HOURS, Hours, read_hours
from scheduler.api.selectors import EVERYTHING, Selector
from scheduler.api.steering import RebalancePolicy
from scheduler.errors import BadInput

# The most moves in an hour: each is remembered in the status for so long.
MOVES_MAX = 100
_FIELDS = (
    "dryRun",
    "when",
    "every",
    "minRun",
    "moveTimeout",
    "surge",
    "namespaceSelector",
    "podSelector",
    "budgets",
    "hours",
)
# With their defaults.
_BUDGETS = {"movesPerHour": 10, "movesPerNamespacePerHour": 5}
_EVERY_LEAST = 60.0


# The scheduler does not read it.
REBALANCE_POLICIES = Kind(
    name="RebalancePolicy",
    group=names.GROUP,
    version=names.VERSION,
    plural=names.REBALANCE_POLICIES,
    shape=RebalancePolicy,
    needed_by="moves of running pods",
    is_namespaced=False,
    absent="the RebalancePolicy CRD is not installed; no pod is moved",
)


class When(StrEnum):
    """For what pods are moved: whatever a move makes whole, or only to let waiting pods in."""

    ALWAYS = "Always"
    PODS_WAIT = "PodsWait"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalancing:
    """What a policy allows; times in seconds.

    Attributes:
        name: the name of the policy.
        is_dry: plan, and move nothing.
        when: for what pods are moved.
        every: how often a plan is made.
        min_run: for how long a pod must have run.
        move_seconds: how long a move may take, until the successor is ready.
        is_surge: let the successor come before the pod goes, where its workload allows that.
        namespaces, pods: by their labels, who may be moved.
        per_hour: the most moves within an hour.
        per_namespace: the most moves within an hour of pods of one namespace.
        hours: when moves may begin.
    """

    name: str
    is_dry: bool = False
    when: When = When.ALWAYS
    every: float = 600.0
    min_run: float = 600.0
    move_seconds: float = 600.0
    is_surge: bool = False
    namespaces: Selector = EVERYTHING
    pods: Selector = EVERYTHING
    per_hour: int = 10
    per_namespace: int = 5
    hours: Hours = ALL_HOURS


def read_policy(body: RebalancePolicy) -> Rebalancing:
    """Read the spec of a policy; the schema of the CRD refuses most mistakes before.

    Raises:
        BadInput: a field is not what is allowed; the error names it.
    """
    spec = values.read_mapping(body.spec, "spec")
    values.refuse_unknown(spec, "spec", _FIELDS)
    budgets = values.read_mapping(spec.get("budgets"), "spec.budgets")
    values.refuse_unknown(budgets, "spec.budgets", tuple(_BUDGETS))
    per_hour, per_namespace = (
        values.read_integer(budgets.get(key, default), f"spec.budgets.{key}", 1, MOVES_MAX)
        for key, default in _BUDGETS.items()
    )
    return Rebalancing(
        name=body.metadata.name,
        is_dry=values.read_flag(spec.get("dryRun", False), "spec.dryRun"),
        when=_read_when(spec.get("when", When.ALWAYS)),
        every=_read_seconds(spec, "every", _EVERY_LEAST),
        min_run=_read_seconds(spec, "minRun", 0.0),
        move_seconds=_read_seconds(spec, "moveTimeout", 0.0),
        is_surge=values.read_flag(spec.get("surge", False), "spec.surge"),
        namespaces=selectors.parse_selector(
            spec.get("namespaceSelector"), "spec.namespaceSelector"
        ),
        pods=selectors.parse_selector(spec.get("podSelector"), "spec.podSelector"),
        per_hour=per_hour,
        per_namespace=min(per_hour, per_namespace),
        hours=read_hours(spec.get("hours"), "spec.hours"),
    )


def _read_when(raw: Any) -> When:
    if raw not in list(When):
        allowed = " and ".join(When)
        raise BadInput("spec.when", f"{values.quote(raw)} is unknown; allowed are {allowed}")
    return When(raw)


def _read_seconds(spec: Mapping[str, Any], key: str, least: float) -> float:
    raw, where = spec.get(key, "10m"), f"spec.{key}"
    if not isinstance(raw, str):
        raise BadInput(
            where,
            f"{values.quote(raw)} is not a duration: write one such as 30m, in quotation marks",
        )
    seconds = parse_seconds(raw, where)
    if seconds < least:
        raise BadInput(where, f"{values.quote(raw)} is too short; at least {least:g} s are allowed")
    return seconds
