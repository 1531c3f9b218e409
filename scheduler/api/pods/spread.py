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
        topology_key: a label of nodes; the nodes of one value are one domain.
        max_skew: by how many pods a domain may exceed the emptiest.
        hard: a node that breaks it is refused; else it only scores less.
        selector: selects the pods that are counted, in the pod's own namespace.
        label_keys: labels of the pod itself whose values the counted pods must have, too.
        min_domains: if there are fewer domains, the emptiest counts as empty.
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

    def find_peers(self, namespace: str, labels: Labels) -> Peers:
        """Find the pods that are counted for a pod of this namespace with these labels.

        kube-scheduler counts none for a selector without any requirement, although it matches the pod
        itself; see ``countPodsMatchSelector``.
        """
        selector = affinity.add_own_values(self.selector, labels, self.label_keys)
        return Peers((namespace,), selectors.NOTHING, selector)


Constraints = tuple[Constraint, ...]

# For pods without constraints. The selector is made by ``make_implicit_selector``; pods without one are not spread.
SYSTEM_DEFAULTS: Constraints = (
    Constraint(names.HOSTNAME, 3, hard=False, selector=selectors.NOTHING),
    Constraint(names.ZONE, 5, hard=False, selector=selectors.NOTHING),
)


def read_own_constraints(given: list[wire.Spread] | None, problems: list[Mistake]) -> Constraints:
    """Read the constraints of a pod, in their order; none of them if an API server would refuse one.

    Mistakes are added to ``problems``.
    """
    try:
        return read_constraints(given or [], FIELD)
    except BadInput as error:
        problems.append(error.mistake)
        return ()


def read_constraints(given: list[wire.Spread], field: str) -> Constraints:
    """Read the constraints in a field, in their order.

    Raises:
        BadInput: an API server would refuse one; the error names the field.
    """
    found: dict[tuple[str, bool], Constraint] = {}
    for i, one in enumerate(given):
        made = _read_constraint(one, f"{field}[{i}]")
        if found.setdefault((made.topology_key, made.hard), made) is not made:
            raise BadInput(
                f"{field}[{i}]", "repeats topologyKey and whenUnsatisfiable of another constraint"
            )
    return tuple(found.values())


def _read_constraint(given: wire.Spread, field: str) -> Constraint:
    if not 1 <= given.max_skew <= _INT32_MAX:
        raise BadInput(f"{field}.maxSkew", f"{given.max_skew} is not within 1..{_INT32_MAX}")
    if not given.topology_key:
        raise BadInput(f"{field}.topologyKey", "must be set")
    hard = _read_choice(given.when_unsatisfiable, _HARD, _SOFT, f"{field}.whenUnsatisfiable")
    if given.min_domains is not None:
        where = f"{field}.minDomains"
        if not 1 <= given.min_domains <= _INT32_MAX:
            raise BadInput(where, f"{given.min_domains} is not within 1..{_INT32_MAX}")
        if not hard:
            raise BadInput(where, f"must not be set unless whenUnsatisfiable is {_HARD}")
    selector, keys = affinity.read_selector_and_keys(
        given.label_selector, given.match_label_keys, field
    )
    return Constraint(
        topology_key=given.topology_key,
        max_skew=given.max_skew,
        hard=hard,
        selector=selector,
        label_keys=keys,
        min_domains=given.min_domains or 1,
        honors_affinity=_read_policy(
            given.node_affinity_policy, _HONOR, f"{field}.nodeAffinityPolicy"
        ),
        honors_taints=_read_policy(given.node_taints_policy, _IGNORE, f"{field}.nodeTaintsPolicy"),
    )


def _read_policy(policy: str | None, default: str, field: str) -> bool:
    return _read_choice(default if policy is None else policy, _HONOR, _IGNORE, field)


def _read_choice(word: str, yes: str, no: str, field: str) -> bool:
    if word not in {yes, no}:
        raise BadInput(field, f"{selectors.quote(word)} is not one of {yes}, {no}")
    return word == yes


def make_implicit_selector(
    labels: Labels,
    services: Iterable[Mapping[str, str]],
    replication: Mapping[str, str],
    owner: Selector,
) -> Selector:
    """Make the selector of the pods among which a pod without constraints is spread.

    Args:
        labels: the labels of the pod.
        services: ``spec.selector`` of the Services of the pod's namespace; an empty one selects nothing.
        replication: the selector of the ReplicationController that controls the pod, empty when none does.
        owner: the selector of the ReplicaSet or StatefulSet that does, ``selectors.EVERYTHING`` when none does.

    Returns:
        ``selectors.EVERYTHING`` when the pod belongs to no group; then it is not spread.
    """
    common: dict[str, str] = {}
    for selector in services:
        if selector.items() <= labels.items():
            common |= selector
    common |= replication
    return owner.add_requirements(Requirement(key, "In", (value,)) for key, value in common.items())
