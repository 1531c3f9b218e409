"""Node affinity and topology spread that a profile sets for all its pods, checked as strictly as a pod's own.

A pod's own terms that cannot be read match no node; a profile's are refused.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from scheduler.api import selectors, values, wire
from scheduler.api.kube_plugins import AddedAffinity
from scheduler.api.pods import spread as of_pods
from scheduler.api.pods.spread import Constraints
from scheduler.api.selectors import NodeTerm
from scheduler.errors import BadInput, join_lines

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_INT32_MAX = 2**31 - 1
_CONSTRAINT = (
    "maxSkew", "topologyKey", "whenUnsatisfiable", "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy"
)  # fmt: skip
T = TypeVar("T")


def added_affinity(raw: Any, field: str) -> AddedAffinity:
    """``addedAffinity`` of NodeAffinity's arguments.

    Raises:
        BadInput: a term is none; names the field.
    """
    given = values.mapping(raw, field)
    values.known(given, field, (_REQUIRED, _PREFERRED))
    required, preferred = None, []
    if given.get(_REQUIRED) is not None:
        where = f"{field}.{_REQUIRED}"
        of_nodes = values.mapping(given[_REQUIRED], where)
        values.known(of_nodes, where, ("nodeSelectorTerms",))
        terms = values.items(of_nodes.get("nodeSelectorTerms"), f"{where}.nodeSelectorTerms", dict)
        found = [_term(one, f"{where}.nodeSelectorTerms[{i}]") for i, one in enumerate(terms)]
        required = tuple(one for one in found if one is not None)
    for i, one in enumerate(values.items(given.get(_PREFERRED), f"{field}.{_PREFERRED}", dict)):
        where = f"{field}.{_PREFERRED}[{i}]"
        values.known(one, where, ("weight", "preference"))
        weight = values.integer(one.get("weight", 0), f"{where}.weight", 0, _INT32_MAX)
        term = _term(one.get("preference"), f"{where}.preference")
        if weight and term is not None:
            preferred.append((weight, term))
    return AddedAffinity(required, tuple(preferred))


def _term(raw: Any, field: str) -> NodeTerm | None:
    """A term; None for an empty one, which matches no node."""
    given = values.mapping(raw, field)
    keys = ("matchExpressions", "matchFields")
    values.known(given, field, keys)
    for key in keys:
        for i, one in enumerate(values.items(given.get(key), f"{field}.{key}", dict)):
            where = f"{field}.{key}[{i}]"
            values.known(one, where, ("key", "operator", "values"))
    return selectors.read_node_term(_converted(given, wire.NodeTerm, field), field)


def spread(given: list[dict[str, Any]], field: str) -> Constraints:
    """``defaultConstraints`` of PodTopologySpread's arguments.

    Raises:
        BadInput: an API server would not take one of a pod, or it has a selector; names the field.
    """
    for i, one in enumerate(given):
        if one.get("labelSelector") is not None:
            raise BadInput(
                f"{field}[{i}].labelSelector", "must not be set: it is deduced for each pod"
            )
        values.known(one, f"{field}[{i}]", _CONSTRAINT)
        selectors.check_name(str(one.get("topologyKey", "")), f"{field}[{i}].topologyKey")
    return of_pods.constraints(
        [_converted(one, wire.Spread, f"{field}[{i}]") for i, one in enumerate(given)], field
    )


def _converted(given: Any, kind: type[T], field: str) -> T:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise BadInput(field, join_lines(error)) from error
