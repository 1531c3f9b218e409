"""Node affinity and topology spread that a profile sets for all its pods.

They are checked as strictly as a pod's own. A pod's own terms that cannot be read match no node; such terms of a
profile are refused.
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


def read_added_affinity(raw: Any, field: str) -> AddedAffinity:
    """Read ``addedAffinity`` of NodeAffinity's arguments.

    Raises:
        BadInput: a term cannot be read; the error names the field.
    """
    given = values.read_mapping(raw, field)
    values.refuse_unknown(given, field, (_REQUIRED, _PREFERRED))
    required, preferred = None, []
    if given.get(_REQUIRED) is not None:
        where = f"{field}.{_REQUIRED}"
        of_nodes = values.read_mapping(given[_REQUIRED], where)
        values.refuse_unknown(of_nodes, where, ("nodeSelectorTerms",))
        terms = values.read_items(
            of_nodes.get("nodeSelectorTerms"), f"{where}.nodeSelectorTerms", dict
        )
        found = [_read_term(one, f"{where}.nodeSelectorTerms[{i}]") for i, one in enumerate(terms)]
        required = tuple(one for one in found if one is not None)
    for i, one in enumerate(
        values.read_items(given.get(_PREFERRED), f"{field}.{_PREFERRED}", dict)
    ):
        where = f"{field}.{_PREFERRED}[{i}]"
        values.refuse_unknown(one, where, ("weight", "preference"))
        weight = values.read_integer(one.get("weight", 0), f"{where}.weight", 0, _INT32_MAX)
        term = _read_term(one.get("preference"), f"{where}.preference")
        if weight and term is not None:
            preferred.append((weight, term))
    return AddedAffinity(required, tuple(preferred))


def _read_term(raw: Any, field: str) -> NodeTerm | None:
    """Read a term; None for an empty one, which matches no node."""
    given = values.read_mapping(raw, field)
    keys = ("matchExpressions", "matchFields")
    values.refuse_unknown(given, field, keys)
    for key in keys:
        for i, one in enumerate(values.read_items(given.get(key), f"{field}.{key}", dict)):
            where = f"{field}.{key}[{i}]"
            values.refuse_unknown(one, where, ("key", "operator", "values"))
    return selectors.read_node_term(_convert(given, wire.NodeTerm, field), field)


def read_spread(given: list[dict[str, Any]], field: str) -> Constraints:
    """Read ``defaultConstraints`` of PodTopologySpread's arguments.

    Raises:
        BadInput: an API server would refuse such a constraint of a pod, or it has a selector; the error names the field.
    """
    for i, one in enumerate(given):
        if one.get("labelSelector") is not None:
            raise BadInput(
                f"{field}[{i}].labelSelector", "must not be set: it is deduced for each pod"
            )
        values.refuse_unknown(one, f"{field}[{i}]", _CONSTRAINT)
        selectors.check_name(str(one.get("topologyKey", "")), f"{field}[{i}].topologyKey")
    return of_pods.read_constraints(
        [_convert(one, wire.Spread, f"{field}[{i}]") for i, one in enumerate(given)], field
    )


def _convert(given: Any, kind: type[T], field: str) -> T:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise BadInput(field, join_lines(error)) from error
