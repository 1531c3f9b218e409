"""Topology spread constraints of a pod, as plain values.

Source: api/core/v1 TopologySpreadConstraint; kube-scheduler's podtopologyspread/common.go and plugin.go,
helper/spread.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from scheduler.api import names, selectors, wire
from scheduler.api.pods import affinity
from scheduler.api.pods.affinity import Peers
from scheduler.api.selectors import Labels, Requirement, Selector
from scheduler.errors import BadInput, Mistake

FIELD = "spec.topologySpreadConstraints"
_HARD, _SOFT = "DoNotSchedule", "ScheduleAnyway"
_HONOR, _IGNORE = "Honor", "Ignore"
_INT32_MAX = 2**31 - 1


class Constraint(NamedTuple):
    """One constraint.

    Attributes:
        topology_key: label of nodes; those of one value are one domain.
        max_skew: by how many pods a domain may exceed the emptiest.
        hard: a node that breaks it is refused; else it only scores less.
        selector: of the pods that are counted, in the pod's own namespace.
        label_keys: labels of the pod itself whose values the counted ones have too.
        min_domains: with fewer domains the emptiest counts as empty.
        honors_affinity: nodes that the pod's own node affinity refuses are not counted.
        honors_taints: nodes with taints that the pod does not tolerate are not counted.
    """

    topology_key: str
    max_skew: int
    hard: bool
    selector: Selector
    label_keys: tuple[str, ...] = ()
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False

    def peers(self, namespace: str, labels: Labels) -> Peers:
        """The pods that are counted for a pod of this namespace with these labels.

        kube-scheduler counts none for a selector without any requirement, although it matches the pod
        itself; see ``countPodsMatchSelector``.
        """
        selector = affinity.with_own_values(self.selector, labels, self.label_keys)
        return Peers((namespace,), selectors.NOTHING, selector)


Constraints = tuple[Constraint, ...]

# Of pods without any constraint; their selector is ``implicit_selector``, and without one there are none.
SYSTEM_DEFAULTS: Constraints = (
    Constraint(names.HOSTNAME, 3, hard=False, selector=selectors.NOTHING),
    Constraint(names.ZONE, 5, hard=False, selector=selectors.NOTHING),
)


def of_pod(given: list[wire.Spread] | None, problems: list[Mistake]) -> Constraints:
    """The constraints of a pod, in their order; none of them when an API server would not take one.

    What is wrong is added to ``problems``.
    """
    try:
        return constraints(given or [], FIELD)
    except BadInput as error:
        problems.append(error.mistake)
        return ()


def constraints(given: list[wire.Spread], field: str) -> Constraints:
    """Constraints that stand in a field, in their order.

    Raises:
        BadInput: an API server would not take one; names the field.
    """
    found: dict[tuple[str, bool], Constraint] = {}
    for i, one in enumerate(given):
        made = _constraint(one, f"{field}[{i}]")
        if found.setdefault((made.topology_key, made.hard), made) is not made:
            raise BadInput(
                f"{field}[{i}]", "repeats topologyKey and whenUnsatisfiable of another constraint"
            )
    return tuple(found.values())


def _constraint(given: wire.Spread, field: str) -> Constraint:
    if not 1 <= given.max_skew <= _INT32_MAX:
        raise BadInput(f"{field}.maxSkew", f"{given.max_skew} is not within 1..{_INT32_MAX}")
    if not given.topology_key:
        raise BadInput(f"{field}.topologyKey", "must be set")
    hard = _one_of(given.when_unsatisfiable, _HARD, _SOFT, f"{field}.whenUnsatisfiable")
    if given.min_domains is not None:
        where = f"{field}.minDomains"
        if not 1 <= given.min_domains <= _INT32_MAX:
            raise BadInput(where, f"{given.min_domains} is not within 1..{_INT32_MAX}")
        if not hard:
            raise BadInput(where, f"must not be set unless whenUnsatisfiable is {_HARD}")
    selector, keys = affinity.selector_and_keys(given.label_selector, given.match_label_keys, field)
    return Constraint(
        topology_key=given.topology_key,
        max_skew=given.max_skew,
        hard=hard,
        selector=selector,
        label_keys=keys,
        min_domains=given.min_domains or 1,
        honors_affinity=_honors(given.node_affinity_policy, _HONOR, f"{field}.nodeAffinityPolicy"),
        honors_taints=_honors(given.node_taints_policy, _IGNORE, f"{field}.nodeTaintsPolicy"),
    )


def _honors(policy: str | None, default: str, field: str) -> bool:
    return _one_of(default if policy is None else policy, _HONOR, _IGNORE, field)


def _one_of(word: str, yes: str, no: str, field: str) -> bool:
    if word not in {yes, no}:
        raise BadInput(field, f"{selectors.quoted(word)} is not one of {yes}, {no}")
    return word == yes


def implicit_selector(
    labels: Labels,
    services: Iterable[Mapping[str, str]],
    replication: Mapping[str, str],
    owner: Selector,
) -> Selector:
    """What the pods are that a pod without constraints is spread among.

    Args:
        labels: the pod's.
        services: ``spec.selector`` of the Services of the pod's namespace; an empty one says nothing.
        replication: that of the ReplicationController that controls the pod, empty when none does.
        owner: that of the ReplicaSet or StatefulSet, ``selectors.EVERYTHING`` when none does.

    Returns:
        ``selectors.EVERYTHING`` when the pod belongs to nothing; then it is not spread.
    """
    common: dict[str, str] = {}
    for selector in services:
        if selector.items() <= labels.items():
            common |= selector
    common |= replication
    return owner.also(Requirement(key, "In", (value,)) for key, value in common.items())
